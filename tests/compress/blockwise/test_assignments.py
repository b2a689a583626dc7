"""Trainings that are handed to processes: named, sized, and left out where they are done."""

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from tests.compress.blockwise.small import PLAN, job

from formwright.compress.blockwise.assignments import blocks_left, students_left
from formwright.compress.blockwise.folders import Folders
from formwright.compress.folders import write, write_json
from formwright.nn.hf.files import CONFIG, WEIGHTS

ROWS = [{"width": 8, "operations": ["attention"], "loss": 0.5}]


def pretend_delivered(folders: Folders, name: str) -> None:
    """Write the least that a delivered student leaves."""
    write(folders.model(name) / WEIGHTS, save({"weight": torch.ones(2)}))
    write_json(folders.model(name) / CONFIG, {})
    write_json(folders.facts(name), {"steps": PLAN.student_steps})


def test_what_is_done_is_not_handed_out(tmp_path: Path) -> None:
    started, out = job(tmp_path).started(), tmp_path / "out"
    blocks, students = blocks_left(started, out, PLAN), students_left(started, out, PLAN)
    assert [work.name for work in blocks] == ["0", "1"]
    assert [work.name for work in students] == ["3k", "6k"]
    assert (blocks[0].steps, students[0].steps) == (12, 4)  # three times four, of two rounds and the rest
    write_json(Folders(out).table(0), ROWS)
    assert [work.name for work in blocks_left(started, out, PLAN)] == ["0", "1"]  # a table without weights is not whole
    write(Folders(out).weights(0), save({"weight": torch.ones(2)}))
    pretend_delivered(Folders(out), "6k")
    assert [work.name for work in blocks_left(started, out, PLAN)] == ["1"]
    assert [work.name for work in students_left(started, out, PLAN)] == ["3k"]


@pytest.mark.parametrize("path", [Folders.table, Folders.weights])
def test_what_is_damaged_is_handed_out_again_alone(tmp_path: Path, path: Callable[[Folders, int], Path]) -> None:
    started, folders = job(tmp_path).started(), Folders(tmp_path / "out")
    for number in range(2):
        write_json(folders.table(number), ROWS)
        write(folders.weights(number), save({"weight": torch.ones(2)}))
    assert blocks_left(started, folders.out, PLAN) == []
    path(folders, 1).write_bytes(path(folders, 1).read_bytes()[:-1])  # cut short
    assert [work.name for work in blocks_left(started, folders.out, PLAN)] == ["1"]


def test_a_student_taught_for_other_steps_is_taught_anew(tmp_path: Path) -> None:
    started, out = job(tmp_path).started(), tmp_path / "out"
    for name in ("3k", "6k"):
        pretend_delivered(Folders(out), name)
    assert students_left(started, out, PLAN) == []
    longer = replace(PLAN, student_steps=9)
    works = students_left(started, out, longer)
    assert [work.name for work in works] == ["3k", "6k"]
    assert works[0].saved != replace(works[0], plan=PLAN).saved  # never on from a checkpoint of another recipe


def test_a_student_whose_files_are_damaged_or_gone_is_taught_anew(tmp_path: Path) -> None:
    started, folders = job(tmp_path).started(), Folders(tmp_path / "out")
    for name in ("3k", "6k"):
        pretend_delivered(folders, name)
    weights = folders.model("6k") / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])  # cut short
    assert [work.name for work in students_left(started, folders.out, PLAN)] == ["6k"]
    pretend_delivered(folders, "6k")
    assert students_left(started, folders.out, PLAN) == []
    (folders.model("6k") / CONFIG).write_text("{", encoding="utf-8")
    assert [work.name for work in students_left(started, folders.out, PLAN)] == ["6k"]
    shutil.rmtree(folders.model("3k"))
    assert [work.name for work in students_left(started, folders.out, PLAN)] == ["3k", "6k"]


def test_an_assignment_travels(tmp_path: Path) -> None:
    work = blocks_left(job(tmp_path).started(), tmp_path / "out", PLAN)[0]
    assert pickle.loads(pickle.dumps(work)) == work
    assert work.saved == tmp_path / "out" / "checkpoints" / "block-0"
