"""Targets of a study, with the models that were delivered for them."""

from pathlib import Path

from tests.report.compressed import LENGTH, SPACE, card_of, compressed_log, deliver
from tests.report.studies import SPACE as SMALL
from tests.report.studies import WORKER, small_study

from formwright.core.records import Objective
from formwright.cost import macs
from formwright.report.facts import study_facts
from formwright.report.models import FinalModel
from formwright.report.targets import AskedTarget

BEST = max(range(6), key=lambda number: macs(card_of(number), LENGTH))  # the costlier, the better


def test_a_limit_is_exceeded_by_what_the_model_costs_and_not_by_what_was_counted() -> None:
    limit, model = Objective.parse("latency_ms<=8"), FinalModel("eight", "front")
    assert AskedTarget("eight", limit, "x", model, counted=7.0, met=8.5).exceeded
    assert not AskedTarget("eight", limit, "x", model, counted=9.0, met=8.0).exceeded
    assert not AskedTarget("eight", limit).exceeded  # where there is none
    assert [AskedTarget(name, limit, "x", model).shared for name in ("eight", "nine")] == [False, True]


def test_studies_without_targets_have_none(tmp_path: Path) -> None:
    assert study_facts(small_study(tmp_path), SMALL).targets == ()


def test_the_model_of_the_target_s_own_name_comes_first(tmp_path: Path) -> None:
    log = compressed_log(tmp_path, delivered=0, asked={"a": "macs<=1e12", "b": "macs<=1e12"})
    for name in ("b", "a"):
        deliver(log, name, "front", card_of(BEST), 0.8)
    assert [one.model and one.model.name for one in study_facts(log, SPACE).targets] == ["a", "b"]


def test_the_best_is_what_was_chosen_for_the_first_target(tmp_path: Path) -> None:
    cheap = min(range(6), key=lambda number: macs(card_of(number), LENGTH))
    asked = {"few": f"macs<={macs(card_of(cheap), LENGTH)}", "all": "macs<=1e12"}
    facts = study_facts(compressed_log(tmp_path, delivered=0, asked=asked), SPACE)
    assert [one.digest for one in facts.targets] == [card_of(cheap).digest, card_of(BEST).digest]
    assert facts.best_row is not None
    assert facts.best_row.digest == card_of(cheap).digest


def test_what_cannot_be_delivered_is_not_chosen(tmp_path: Path) -> None:
    log = compressed_log(tmp_path, delivered=0, asked={"all": "macs<=1e12"})
    assert study_facts(log, SPACE).targets[0].digest == card_of(BEST).digest
    log.append("note", WORKER, {"undelivered": {"digest": card_of(BEST).digest}})
    assert study_facts(log, SPACE).targets[0].digest != card_of(BEST).digest
