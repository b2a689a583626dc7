from pathlib import Path

import pytest
import torch

from formwright.train.checkpoint import Checkpoint, newest, write


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"weight": torch.full((3,), float(step))}, {"losses": [0.1] * step})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    assert newest(tmp_path / "nowhere") is None
    write(tmp_path, checkpoint(3))
    found = newest(tmp_path)
    assert found is not None
    assert (found.step, found.facts) == (3, {"losses": [0.1] * 3})
    assert torch.equal(found.tensors["weight"], torch.full((3,), 3.0))


def test_the_newest_two_are_kept_and_nothing_else(tmp_path: Path) -> None:
    for step in (1, 2, 10, 9):
        write(tmp_path, checkpoint(step))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000009", "step-000000010"]


@pytest.mark.parametrize("file", ["tensors.safetensors", "facts.json"])
@pytest.mark.parametrize(
    "damage", [lambda content: content[:-7], lambda content: b"", lambda content: b"x" + content[1:]]
)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, file: str, damage: object) -> None:
    write(tmp_path, checkpoint(1))
    path = write(tmp_path, checkpoint(2)) / file
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_file_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    (write(tmp_path, checkpoint(2)) / "tensors.safetensors").unlink()
    assert newest(tmp_path) is None


def test_a_checkpoint_can_be_written_twice(tmp_path: Path) -> None:
    write(tmp_path, checkpoint(2))
    write(tmp_path, Checkpoint(2, {"weight": torch.zeros(1)}, {}))
    found = newest(tmp_path)
    assert found is not None
    assert found.tensors["weight"].shape == (1,)
