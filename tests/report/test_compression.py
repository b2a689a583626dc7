from pathlib import Path
from typing import Any

import pytest
from tests.report.studies import (
    CHANNELS,
    COMPRESSED,
    HEADS,
    LENGTH,
    WORKER,
    card_of,
    compressed_log,
    deliver_card,
    note_of,
)

from formwright.core.records import Objective
from formwright.cost import macs
from formwright.report.compression import AskedTarget, CompressionFacts, SpaceTarget, compression, with_teacher
from formwright.report.facts import study_facts
from formwright.report.final_models import FinalModel, command_lines, final_models, mark_earlier
from formwright.study.events import Event

BEST = max(range(6), key=lambda number: macs(card_of(number), LENGTH))  # the costlier, the better


def test_the_last_note_counts_and_widths_are_sorted_and_stand_once() -> None:
    space = {**note_of()["space"], "heads": [[12, 0, 12]] * 4}
    found = compression([note(number, compress=note_of(model=f"model-{number}", space=space)) for number in (1, 2)])
    assert found is not None
    assert (found.model, found.heads) == ("model-2", ((0, 12),) * 4)


def read(data: Any) -> CompressionFacts | None:
    return compression([note(1, compress=data)])


def test_everything_is_read_and_what_is_missing_is_left_out() -> None:
    found = read(note_of(targets=[{"target": 100.0, "cost": 104}]))
    assert found is not None
    assert (found.model, found.cost, found.layers) == ("MiniLM", "macs", 4)
    assert (found.full_heads, found.full_channels, found.hidden) == ((12,) * 4, (384,) * 4, (96,))
    assert (found.heads, found.channels) == (HEADS, CHANNELS)
    assert found.targets == (SpaceTarget(100.0, 104),)
    assert found.targets[0].off == pytest.approx(0.04)
    assert found.teacher.validation == {"accuracy": 0.83}
    assert (found.teacher.test, sorted(found.teacher.costs)) == ({}, ["latency_ms", "macs"])
    found = read({"space": note_of()["space"], "targets": [{"target": 0, "cost": 1}, {"cost": 1}, None]})
    assert found is not None
    assert (found.model, found.targets, found.teacher.params) == ("unnamed", (), None)


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


def test_a_target_has_the_model_of_its_own_name_and_the_best_that_can_be_delivered(tmp_path: Path) -> None:
    log = compressed_log(tmp_path, delivered=0, asked={"a": "macs<=1e12", "b": "macs<=1e12"})
    for name in ("b", "a"):
        deliver_card(log, name, "front", card_of(BEST), 0.8)
    assert [one.model and one.model.name for one in study_facts(log, COMPRESSED).targets] == ["a", "b"]
    log = compressed_log(tmp_path / "other", delivered=0, asked={"all": "macs<=1e12"})
    assert study_facts(log, COMPRESSED).targets[0].digest == card_of(BEST).digest
    log.append("note", WORKER, {"undelivered": {"digest": card_of(BEST).digest}})
    assert study_facts(log, COMPRESSED).targets[0].digest != card_of(BEST).digest


def test_the_best_is_what_was_chosen_for_the_first_target(tmp_path: Path) -> None:
    cheap = min(range(6), key=lambda number: macs(card_of(number), LENGTH))
    asked = {"few": f"macs<={macs(card_of(cheap), LENGTH)}", "all": "macs<=1e12"}
    facts = study_facts(compressed_log(tmp_path, delivered=0, asked=asked), COMPRESSED)
    assert [one.digest for one in facts.targets] == [card_of(cheap).digest, card_of(BEST).digest]
    assert facts.best_row is not None
    assert facts.best_row.digest == card_of(cheap).digest


def note(number: int, **data: object) -> Event:
    return Event(number, "note", None, "worker", float(number), data)


def test_models_stand_in_order_and_the_last_note_of_a_name_counts() -> None:
    roles = ("baseline", "front", "teacher", "best")
    events = [note(number, model={"name": role, "role": role}) for number, role in enumerate(roles)]
    assert [model.name for model in final_models(events)] == ["teacher", "best", "front", "baseline"]
    events = [note(number, model={"name": "a", "role": "best", "params": 10 * number}) for number in (1, 2)]
    assert final_models(events) == (FinalModel("a", "best", params=20),)


def test_what_is_missing_or_no_number_is_left_out() -> None:
    (model,) = final_models([note(1, model={"test": {"f1": 0.5, "odd": "x"}, "params": None, "validation": None})])
    assert (model.name, model.role, model.params) == ("unnamed", "", None)
    assert (model.test, model.validation) == ({"f1": 0.5}, {})
    costs = {"latency_ms": 3.2, "macs": 110_000_000, "onnx_ms": float("nan"), "int8_ms": None}
    (model,) = final_models([note(1, model={"name": "a", "role": "front", "costs": costs})])
    assert model.costs == {"latency_ms": 3.2, "macs": 110_000_000}
    events = [Event(1, "started", None, "worker", 0.0, {"command": "x"}), note(2, other=1)]
    assert final_models(events) == ()
    assert command_lines(events) == ""


def test_every_command_stands_once_in_the_order_of_the_runs() -> None:
    lines = ("search", "resume", "resume", "resume --trials 9")
    events = [note(number, command=line) for number, line in enumerate(lines)]
    assert command_lines(events) == "search\nresume\nresume --trials 9"


def test_what_is_no_longer_wanted_is_called_earlier() -> None:
    models = [FinalModel(role, role, digest="old") for role in ("best", "front", "baseline")]
    told = mark_earlier([*models, FinalModel("new", "best", digest="new")], {"new"})
    assert [(model.name, model.role) for model in told] == [
        ("new", "best"),
        ("best", "earlier"),
        ("front", "earlier"),
        ("baseline", "baseline"),
    ]
