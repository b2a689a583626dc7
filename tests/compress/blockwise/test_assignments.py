"""Trainings that are handed to processes: named, sized, and left out where they are done."""

import pickle
from pathlib import Path

from tests.compress.blockwise.small import PLAN, job

from formwright.compress.blockwise.assignments import blocks_left, students_left
from formwright.compress.blockwise.folders import Folders
from formwright.compress.folders import write_json


def test_what_is_done_is_not_handed_out(tmp_path: Path) -> None:
    started, out = job(tmp_path).started(), tmp_path / "out"
    blocks, students = blocks_left(started, out, PLAN), students_left(started, out, PLAN)
    assert [work.name for work in blocks] == ["0", "1"]
    assert [work.name for work in students] == ["3k", "6k"]
    assert (blocks[0].steps, students[0].steps) == (12, 4)  # three times four, of two rounds and the rest
    write_json(Folders(out).table(0), [])
    write_json(Folders(out).facts("6k"), {})
    assert [work.name for work in blocks_left(started, out, PLAN)] == ["1"]
    assert [work.name for work in students_left(started, out, PLAN)] == ["3k"]


def test_an_assignment_travels(tmp_path: Path) -> None:
    work = blocks_left(job(tmp_path).started(), tmp_path / "out", PLAN)[0]
    assert pickle.loads(pickle.dumps(work)) == work
    assert work.saved == tmp_path / "out" / "checkpoints" / "block-0"
