from pathlib import Path
from typing import Any

import pytest
from tests.report.compressed import CHANNELS, HEADS, LENGTH, SPACE, card_of, compressed_log, deliver, note_of
from tests.report.studies import WORKER
from tests.report.test_final_models import note

from formwright.core.records import Objective
from formwright.cost import macs
from formwright.report.compression import AskedTarget, CompressionFacts, SpaceTarget, compression, with_teacher
from formwright.report.facts import study_facts
from formwright.report.final_models import FinalModel

BEST = max(range(6), key=lambda number: macs(card_of(number), LENGTH))  # the costlier, the better


def test_the_last_note_counts_and_widths_are_sorted_and_stand_once() -> None:
    space = {**note_of()["space"], "heads": [[12, 0, 12]] * 4}
    found = compression([note(number, compress=note_of(model=f"model-{number}", space=space)) for number in (1, 2)])
    assert found is not None
    assert (found.model, found.heads) == ("model-2", ((0, 12),) * 4)


def read(data: Any) -> CompressionFacts | None:
    return compression([note(1, compress=data)])


def test_everything_is_read() -> None:
    found = read(note_of(targets=[{"target": 100.0, "cost": 104}]))
    assert found is not None
    assert (found.model, found.cost, found.layers) == ("MiniLM", "macs", 4)
    assert (found.full_heads, found.full_channels, found.hidden) == ((12,) * 4, (384,) * 4, (96,))
    assert (found.heads, found.channels) == (HEADS, CHANNELS)
    assert found.targets == (SpaceTarget(100.0, 104),)
    assert found.targets[0].off == pytest.approx(0.04)
    assert found.teacher.validation == {"accuracy": 0.83}
    assert (found.teacher.test, sorted(found.teacher.costs)) == ({}, ["latency_ms", "macs"])


@pytest.mark.parametrize(("hidden", "count"), [([], 3**8), ([96], 3**8), ([64, 96], 2 * 3**8)])
def test_sub_networks_are_counted(hidden: list[int], count: int) -> None:
    found = read(note_of(space={**note_of()["space"], "hidden": hidden}))
    assert found is not None
    assert found.count == count


@pytest.mark.parametrize(
    "change",
    [
        {"heads": [[4]] * 3},
        {"channels": [[]] * 4},
        {"channels": [["wide"]] * 4},
        {"heads": [[-1]] * 4},
        {"full": [[12]] * 4},
        {"full": []},
        {"heads": None},
    ],
)
def test_a_space_that_cannot_be_read_is_none(change: dict[str, Any]) -> None:
    assert read(note_of(space={**note_of()["space"], **change})) is None


@pytest.mark.parametrize("data", [None, [], "text", {}, {"space": 1}])
def test_a_note_of_another_kind_is_none(data: Any) -> None:
    assert read(data) is None
    assert compression([]) is compression([note(1, model={"name": "a"})]) is None


def test_what_is_missing_beside_the_space_is_left_out() -> None:
    found = read({"space": note_of()["space"], "targets": [{"target": 0, "cost": 1}, {"cost": 1}, None]})
    assert found is not None
    assert (found.model, found.targets, found.teacher.params) == ("unnamed", (), None)


def test_the_teacher_stands_first_until_it_is_delivered() -> None:
    found, small = read(note_of()), FinalModel("small", "front")
    assert found is not None
    assert with_teacher((small,), found) == (found.teacher, small)
    own = FinalModel("teacher", "teacher")
    assert with_teacher((own, small), found) == (own, small)
    assert with_teacher((small,), None) == (small,)


def test_a_limit_is_exceeded_by_what_the_model_costs_and_not_by_what_was_counted() -> None:
    limit, model = Objective.parse("latency_ms<=8"), FinalModel("eight", "front")
    assert AskedTarget("eight", limit, "x", model, counted=7.0, met=8.5).exceeded
    assert not AskedTarget("eight", limit, "x", model, counted=9.0, met=8.0).exceeded
    assert not AskedTarget("eight", limit).exceeded  # where there is none
    assert [AskedTarget(name, limit, "x", model).shared for name in ("eight", "nine")] == [False, True]


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
