"""What all blocks share is made once and read again."""

from pathlib import Path

import pytest
import torch
from tests.compress.blockwise.small import job, prepared

from formwright.compress.blockwise.prepared import prepare, read_prepared, read_tensors, read_times
from formwright.compress.folders import read_json, write_json
from formwright.core.errors import IllegalInput
from formwright.nn.hf.files import can_be_read


def test_what_was_fitted_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = job(tmp_path).started()
    selection = prepared(started, tmp_path / "out")
    monkeypatch.setattr("formwright.compress.blockwise.prepared.fit_bases", None)  # a second fit would fail
    again = prepare(started, selection.folders)
    assert again.losses == selection.prepared.losses
    assert set(again.losses) == set(started.menu.embeddings)
    assert again.losses[16] == 0.0
    assert torch.equal(again.bases[1].axes, selection.prepared.bases[1].axes)
    assert read_times(selection.folders, started.menu) == selection.costs.times


@pytest.mark.parametrize("name", ["bases.safetensors", "embeddings.safetensors", "embeddings.json"])
@pytest.mark.parametrize("damaged", [None, b"damaged", b"[]", b"{}"])
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


@pytest.mark.parametrize("kind", ["embeddings", "operations", "joints"])
def test_times_that_lack_an_operation_are_refused(tmp_path: Path, kind: str) -> None:
    started = job(tmp_path).started()
    folders = prepared(started, tmp_path / "out").folders
    times = read_json(folders.latency)
    write_json(folders.latency, {**times, kind: times[kind][1:]})
    with pytest.raises(IllegalInput, match="lacks times of operations; remove it, and they are measured anew"):
        read_times(folders, started.menu)
