"""The note of a compression is read whole, and what cannot be read makes no section."""

from typing import Any

import pytest
from tests.report.compressed import CHANNELS, HEADS, note_of
from tests.report.test_models import note

from formwright.report.compression import Compression, Target, compression, with_teacher
from formwright.report.models import FinalModel


def read(data: Any) -> Compression | None:
    return compression([note(1, compress=data)])


def test_everything_is_read() -> None:
    found = read(note_of(targets=[{"target": 100.0, "cost": 104}]))
    assert found is not None
    assert (found.model, found.cost, found.layers) == ("MiniLM", "macs", 4)
    assert (found.full_heads, found.full_channels, found.hidden) == ((12,) * 4, (384,) * 4, (96,))
    assert (found.heads, found.channels) == (HEADS, CHANNELS)
    assert found.targets == (Target(100.0, 104),)
    assert found.targets[0].off == pytest.approx(0.04)
    assert found.teacher.validation == {"accuracy": 0.83}
    assert (found.teacher.test, sorted(found.teacher.costs)) == ({}, ["latency_ms", "macs"])


@pytest.mark.parametrize(("hidden", "count"), [([], 3**8), ([96], 3**8), ([64, 96], 2 * 3**8)])
def test_sub_networks_are_counted(hidden: list[int], count: int) -> None:
    found = read(note_of(space={**note_of()["space"], "hidden": hidden}))
    assert found is not None
    assert found.count == count


def test_the_last_note_counts() -> None:
    events = [note(number, compress=note_of(model=f"model-{number}")) for number in (1, 2)]
    found = compression(events)
    assert found is not None
    assert found.model == "model-2"


def test_widths_are_sorted_and_stand_once() -> None:
    found = read(note_of(space={**note_of()["space"], "heads": [[12, 0, 12]] * 4}))
    assert found is not None
    assert found.heads == ((0, 12),) * 4


def test_without_a_note_there_is_none() -> None:
    assert compression([]) is None
    assert compression([note(1, model={"name": "a"})]) is None


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
