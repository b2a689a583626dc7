import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from formwright.core.errors import IllegalInput
from formwright.train.checkpoint import Checkpoint, newest, newest_step, weights_digest, write


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"weight": torch.full((3,), float(step))}, {"losses": [0.1] * step})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    assert newest(tmp_path / "nowhere") is None
    write(tmp_path, checkpoint(3))
    found = newest(tmp_path)
    assert (found.step, found.facts) == (3, {"losses": [0.1] * 3})
    assert torch.equal(found.tensors["weight"], torch.full((3,), 3.0))


def test_the_newest_two_are_kept_and_nothing_else(tmp_path: Path) -> None:
    for step in (1, 2, 10, 9):
        write(tmp_path, checkpoint(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000009", "step-000000010"]


@pytest.mark.parametrize("file", ["tensors.safetensors", "facts.json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-7],
        lambda content: b"",
        lambda content: b"x" + content[1:],
        lambda content: content[:-4] + bytes([content[-4] ^ 1]) + content[-3:],  # of tensors: another number
    ],
    ids=["shorter", "empty", "other beginning", "one bit"],
)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, file: str, damage: object) -> None:
    write(tmp_path, checkpoint(1))
    path = write(tmp_path, checkpoint(2)) / file
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert newest(tmp_path).step == 1


def test_a_whole_checkpoint_of_the_same_step_stays(tmp_path: Path) -> None:
    write(tmp_path, checkpoint(2))
    write(tmp_path, Checkpoint(2, {"weight": torch.zeros(1)}, {}))
    assert newest(tmp_path).tensors["weight"].shape == (3,)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000002"]


def test_a_kill_while_the_same_step_is_written_again_loses_nothing(tmp_path, monkeypatch) -> None:
    write(tmp_path, checkpoint(2))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, checkpoint(2))
    assert newest(tmp_path) is not None


def test_what_is_damaged_or_gone_is_passed_over_or_replaced(tmp_path: Path) -> None:
    (write(tmp_path, checkpoint(2)) / "tensors.safetensors").unlink()
    assert newest(tmp_path) is None
    (write(tmp_path, checkpoint(2)) / "facts.json").write_bytes(b"{")
    write(tmp_path, checkpoint(2))
    assert newest(tmp_path).step == 2


def test_drafts_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = platform.node()
    names = [f".step-000000007.{gone.pid}.{here}", f".step-000000007.{os.getppid()}.{here}", ".step-000000007.1.afar"]
    for name in (*names, ".step-000000006.1.afar"):
        (tmp_path / name).mkdir()
    os.utime(tmp_path / ".step-000000006.1.afar", (1, 1))
    write(tmp_path, checkpoint(8))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[1:], "step-000000008"])


def test_the_newest_step_is_told_without_reading(tmp_path: Path) -> None:
    assert newest_step(tmp_path) == newest_step(tmp_path / "nowhere") == 0
    for step in (9, 10):
        (write(tmp_path, checkpoint(step)) / "facts.json").unlink()
    (tmp_path / "step-by-step").mkdir()
    assert newest_step(tmp_path) == 10


@pytest.mark.parametrize("change", [{"step": 7}, {"facts": {"losses": [9.0, 0.1]}}, {"facts": None}, {"step": "x"}])
def test_facts_that_were_changed_are_damage(tmp_path: Path, change: dict[str, object]) -> None:
    write(tmp_path, checkpoint(1))
    path = write(tmp_path, checkpoint(2)) / "facts.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    assert newest(tmp_path).step == 1


def test_damaged_checkpoints_of_later_steps_do_not_push_out_a_new_one(tmp_path: Path) -> None:
    for step in (8, 9):
        (write(tmp_path, checkpoint(step)) / "tensors.safetensors").write_bytes(b"")
    (tmp_path / "step-by-step").mkdir()
    write(tmp_path, checkpoint(2))
    assert newest(tmp_path).step == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000002", "step-by-step"]


def test_a_file_in_the_way_is_replaced_or_named(tmp_path: Path) -> None:
    (tmp_path / "step-000000002").touch()
    write(tmp_path, checkpoint(2))
    assert newest(tmp_path) is not None
    (tmp_path / "file").touch()
    with pytest.raises(IllegalInput, match=r"cannot save step 2 in .*file: Not a directory"):
        write(tmp_path / "file", checkpoint(2))


def test_weights_are_told_apart_by_name_type_and_value() -> None:
    zero = torch.zeros(2, 3)
    different = [
        {"a": zero},
        {"b": zero},
        {"a": zero.reshape(3, 2)},
        {"a": zero.bfloat16()},
        {"a": zero + 1},
        {"a": zero, "b": torch.tensor(1.0)},
    ]
    assert len({weights_digest(weights) for weights in different}) == len(different)
    assert weights_digest({"b": zero, "a": zero.T}) == weights_digest({"a": zero.T.contiguous(), "b": zero})
