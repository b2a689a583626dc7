"""What the report will find in the log."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.compress.conftest import Made, placed
from tests.compress.tiny import BERT, LENGTH

from formwright.cost import macs
from formwright.evaluate.final import openings
from formwright.nn.hf.beside import read_evaluation
from formwright.nn.seal import check_seal
from formwright.study.delivered import delivered

pytestmark = pytest.mark.slow


def test_the_teacher_and_the_space_are_noted_once(stages: Callable[..., Made], tmp_path: Path) -> None:
    made = stages()
    place = placed(made)
    for _ in range(2):
        made[0].note(place, made[1], made[2], made[3])
    with place.open() as opened:
        notes = [event.data for event in opened.log.read() if event.kind == "note"]
        (teacher,) = delivered(opened).values()
    assert len(notes) == 2
    assert (teacher.name, teacher.role, teacher.digest) == ("teacher", "teacher", BERT.digest)
    assert teacher.path == str(tmp_path / "out" / "models" / "teacher")
    assert teacher.costs.keys() == {"macs"}  # it is measured in the end, in turns with the others
    assert teacher.costs["macs"] == macs(BERT, LENGTH)
    assert teacher.test is not None
    assert teacher.validation.keys() == teacher.test.keys() == {"accuracy", "f1"}
    said = read_evaluation(Path(teacher.path))
    assert said is not None
    assert said["scores"] == {"validation": teacher.validation, "test": teacher.test}
    check_seal(Path(teacher.path))
    assert len(openings(tmp_path / "out" / "final" / "teacher")) == 1
    facts = next(note["compress"] for note in notes if "compress" in note)
    assert (facts["model"], facts["cost"], facts["space"]["full"]) == ("bert", "macs", [[4, 64]] * 2)
    assert facts["space"]["heads"] == [list(one) for one in made[2].heads]
    assert facts["space"]["hidden"] == [16]
    assert [one["cost"] for one in facts["targets"]] == [met.cost for met in made[3]]


def test_targets_of_several_costs_are_noted_apart(stages: Callable[..., Made]) -> None:
    made = stages(targets=("macs=75%", "params=90%"))
    place = placed(made)
    made[0].note(place, made[1], made[2], made[3])
    with place.open() as opened:
        facts = next(event.data["compress"] for event in opened.log.read() if "compress" in event.data)
    assert len(facts["targets"]) == 3
    assert [(one["measure"], one["cost"]) for one in facts["further"]] == [("params", made[3][-1].cost)]


def test_hidden_sizes_are_noted(stages: Callable[..., Made]) -> None:
    made = stages(hidden=(8,))
    place = placed(made)
    made[0].note(place, made[1], made[2], made[3])
    with place.open() as opened:
        facts = next(event.data["compress"] for event in opened.log.read() if "compress" in event.data)
    assert facts["space"]["hidden"] == [8, 16]
