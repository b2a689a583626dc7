"""The store that follows from the files of finished trials."""

import errno
import os
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.evaluate.toy import files, finished, history
from tests.supernet.branched import QK, QKV, card, changed, random_cards, same, store
from torch import Tensor

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.core.records import History, Observation, Request, Trial
from formwright.evaluate import branch_files
from formwright.evaluate.branch_files import BRANCHES, is_whole, keep, put_back, store_after
from formwright.supernet.branch_store import Store, returned, taken, written

START = store()
CARDS = (card(QK, 3), card(5, QKV), *random_cards(4))


def trial(folder: Path, number: int) -> tuple[Trial, dict[str, Tensor]]:
    """Give a finished trial that left a file, and its weights."""
    design = CARDS[number]
    weights = changed(taken(START, design), number + 1.0)
    name = keep(written(design, weights), folder)
    return finished(number, design, Observation({"accuracy": 0.5}, artifacts={BRANCHES: name})), weights


def after(folder: Path, *trials: Trial) -> Store:
    return store_after(START, history(*trials), folder)


def test_the_store_is_the_files_of_finished_trials_in_their_order(tmp_path: Path) -> None:
    made = [trial(tmp_path, number) for number in range(len(CARDS))]
    expected = START
    for number, (_, weights) in enumerate(made):
        expected = returned(expected, CARDS[number], weights)
    assert same(after(tmp_path, *(one for one, _ in made)), expected)
    assert expected.version == len(CARDS)


def test_without_trials_it_is_the_fresh_one(tmp_path: Path) -> None:
    assert same(after(tmp_path), START)


def test_only_finished_trials_that_left_a_file_count(tmp_path: Path) -> None:
    (first, _), (second, _) = trial(tmp_path, 0), trial(tmp_path, 1)
    others = (
        Trial(2, Request(CARDS[2])),
        Trial(3, Request(CARDS[3]), "failed", reason="diverged"),
        finished(4, CARDS[4], Observation({"accuracy": 0.5})),
    )
    assert same(after(tmp_path, first, second, *others), after(tmp_path, first, second))


def test_the_order_in_which_files_are_written_does_not_matter(tmp_path: Path) -> None:
    stores = []
    for place, order in enumerate(permutations(range(3))):
        folder = tmp_path / str(place)
        made = {number: trial(folder, number)[0] for number in order}
        stores.append(after(folder, *(made[number] for number in sorted(made))))
    assert all(same(one, stores[0]) for one in stores)


def test_files_are_named_by_their_content_and_hold_what_was_written(tmp_path: Path) -> None:
    weights = written(CARDS[0], taken(START, CARDS[0]))
    name = keep(weights, tmp_path)
    assert keep(weights, tmp_path) == name
    assert files(tmp_path) == [name]
    found = load_file(tmp_path / name)
    assert found.keys() == weights.keys()
    assert all(found[key].equal(weights[key]) for key in weights)
    other = keep(written(CARDS[0], changed(taken(START, CARDS[0]))), tmp_path)
    assert files(tmp_path) == sorted([name, other])


def test_a_file_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    weights = written(CARDS[0], taken(START, CARDS[0]))
    path = tmp_path / keep(weights, tmp_path)
    before = path.stat().st_ino
    keep(weights, tmp_path)
    assert path.stat().st_ino == before
    path.write_bytes(b"what a fault of the disk left")
    keep(weights, tmp_path)
    assert load_file(path).keys() == weights.keys()


def test_a_file_has_only_what_the_design_has(tmp_path: Path) -> None:
    found = load_file(tmp_path / keep(written(card(QK, QK), taken(START, card(QK, QK))), tmp_path))
    assert not any(name.startswith("convolution") or "inputs.V" in name for name in found)
    assert len(found) < len(START.tensors)


def test_of_overwritten_tensors_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design, read = card(QK, QKV), list[str]()
    opened = branch_files.safe_open

    def watched(path: Path, framework: str) -> Any:
        read.append(path.name)
        return opened(path, framework=framework)

    trials = []
    for number in range(4):
        name = keep(written(design, changed(taken(START, design), number)), tmp_path)
        trials.append(finished(number, design, Observation({"accuracy": 0.5}, artifacts={BRANCHES: name})))
    monkeypatch.setattr(branch_files, "safe_open", watched)
    after(tmp_path, *trials)
    counts = [read.count(Path(one.observation.artifacts[BRANCHES]).name) for one in trials if one.observation]
    assert counts == [1, 1, 1, 1 + len(written(design, taken(START, design)))]  # once for the names


@pytest.mark.parametrize("damage", ["gone", "cut short", "emptied", "a folder", "one bit"])
def test_a_damaged_file_is_noticed(damage: str, tmp_path: Path) -> None:
    one, _ = trial(tmp_path, 3)
    after(tmp_path, one)
    assert is_whole(one, tmp_path)
    assert one.observation is not None
    path = tmp_path / one.observation.artifacts[BRANCHES]
    content = bytearray(path.read_bytes())
    path.unlink()
    content[-5] ^= 1
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes({"cut short": content[:200], "emptied": b"", "one bit": content}[damage])
    assert not is_whole(one, tmp_path)
    told = rf"from the weights that trial 3 left: {'there is no' if damage == 'gone' else '.*safetensors is damaged'}"
    with pytest.raises(EvaluationFailed, match=f"{told}.*put the file back from a copy of the study, then resume it"):
        after(tmp_path, one)


def test_a_file_is_put_back_with_what_it_held_and_nothing_else(tmp_path: Path) -> None:
    one, weights = trial(tmp_path, 0)
    assert one.observation is not None
    path = tmp_path / one.observation.artifacts[BRANCHES]
    content = path.read_bytes()
    path.write_bytes(b"what a fault of the disk left")
    put_back(one, written(CARDS[0], changed(weights)), tmp_path)
    assert (path.read_bytes(), len(files(tmp_path))) == (b"what a fault of the disk left", 1)
    put_back(one, written(CARDS[0], weights), tmp_path)
    assert path.read_bytes() == content


def test_a_file_is_on_the_disk_before_its_name_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    name = keep(written(CARDS[0], taken(START, CARDS[0])), tmp_path)
    assert synced == [str(tmp_path / name), str(tmp_path / BRANCHES)]


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(branch_files, "write_whole", full)
    with pytest.raises(IllegalInput, match=r"cannot write .*No space left") as told:
        trial(tmp_path, 0)
    assert isinstance(told.value.__cause__, OSError)


def test_histories_without_this_studys_files_are_no_trouble(tmp_path: Path) -> None:
    assert store_after(START, History(), tmp_path / "nowhere").version == 0
