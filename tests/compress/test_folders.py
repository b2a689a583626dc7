"""Files of a compression: whole, the same when read, and named where they cannot be."""

from pathlib import Path

import numpy as np
import pytest

from formwright.compress.folders import (
    Folders,
    read_importance,
    read_json,
    read_stored,
    write,
    write_importance,
    write_json,
)
from formwright.compress.plan import Plan
from formwright.core.errors import IllegalInput
from formwright.cost.latency_table import LatencyTable
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.importance import Importance

SCORES = (np.array([0.5, -1.0]), np.array([1e-300, 2.0, 3.0]), np.array([7.0])) * 5  # more than ten, whose names sort


@pytest.mark.parametrize(
    "importance",
    [Importance(SCORES), Importance(SCORES, np.arange(4.0)), Importance(SCORES, np.arange(4.0), np.arange(3.0)[::-1])],
)
def test_importance_survives_its_file(importance: Importance, tmp_path: Path) -> None:
    path = tmp_path / "below" / "importance.safetensors"
    write_importance(path, importance)
    again = read_importance(path)
    assert [scores.tolist() for scores in again.scores] == [scores.tolist() for scores in importance.scores]
    for name in ("hidden", "pooled"):
        before, after = getattr(importance, name), getattr(again, name)
        assert (after is None) == (before is None)
        assert before is None or after.tolist() == before.tolist()


def test_json_survives_its_file(tmp_path: Path) -> None:
    write_json(tmp_path / "plan.json", {"steps": [1, 2.5, None]})
    assert read_json(tmp_path / "plan.json") == {"steps": [1, 2.5, None]}
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_files_that_cannot_be_read_are_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"{")
    for name in ("absent", "broken"):
        with pytest.raises(IllegalInput, match=rf"cannot read .*{name}.*remove it, and its stage is done anew"):
            read_json(tmp_path / name)
        with pytest.raises(IllegalInput, match=rf"cannot read .*{name}.*remove it and the teacher"):
            read_importance(tmp_path / name)


def test_files_that_hold_something_else_are_named_with_the_way_out(tmp_path: Path) -> None:
    for meaning in (Plan.from_json, LatencyTable.from_json, ElasticChoices.from_json):
        for data in ([], {}, {"card": 1}, None):
            write_json(tmp_path / "stored.json", data)
            with pytest.raises(IllegalInput, match=r"cannot read .*stored\.json: .*[^.]; remove it, and its stage is"):
                read_stored(tmp_path / "stored.json", meaning)


def test_files_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IllegalInput, match=r"cannot write .*plan"):
        write(tmp_path / "file" / "plan", "text")


def test_no_two_stages_share_a_place(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    names = ("plan", "teacher", "importance", "space", "latency", "network")
    places = [getattr(folders, name) for name in names] + [folders.checkpoints(one) for one in ("teacher", "network")]
    assert len(set(places)) == len(places)
    assert all(tmp_path in place.parents for place in places)
