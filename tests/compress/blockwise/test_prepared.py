"""What all blocks share is made once and read again."""

from pathlib import Path

import pytest
import torch
from tests.compress.blockwise.small import job, prepared

from formwright.compress.blockwise.prepared import can_be_read, prepare, read_prepared, read_tensors, read_times
from formwright.core.errors import IllegalInput


def test_what_was_fitted_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = job(tmp_path).started()
    selection = prepared(started, tmp_path / "out")
    monkeypatch.setattr("formwright.compress.blockwise.prepared.fit_bases", None)  # a second fit would fail
    again = prepare(started, selection.folders)
    assert again.losses == selection.prepared.losses
    assert set(again.losses) == set(started.menu.embeddings)
    assert again.losses[16] == 0.0
    assert torch.equal(again.bases[1].axes, selection.prepared.bases[1].axes)
    assert read_times(selection.folders) == selection.costs.times


@pytest.mark.parametrize("name", ["bases.safetensors", "embeddings.safetensors", "embeddings.json"])
@pytest.mark.parametrize("damaged", [None, b"damaged", b"[]"])
def test_what_is_missing_or_damaged_is_fitted_anew(tmp_path: Path, name: str, damaged: bytes | None) -> None:
    started = job(tmp_path).started()
    selection = prepared(started, tmp_path / "out")
    path = selection.folders.out / name
    before = path.read_bytes()
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    again = prepare(started, selection.folders)
    assert path.read_bytes() == before
    assert again.losses == selection.prepared.losses


def test_a_damaged_file_is_refused_where_it_is_only_read(tmp_path: Path) -> None:
    selection = prepared(job(tmp_path).started(), tmp_path / "out")
    selection.folders.bases.write_bytes(b"damaged")
    with pytest.raises(IllegalInput, match="remove it, and its stage is done anew"):
        read_prepared(selection.folders)
    with pytest.raises(IllegalInput, match="cannot read"):
        read_tensors(tmp_path / "absent")
    assert not can_be_read(selection.folders.bases)
    assert can_be_read(selection.folders.embeddings)
