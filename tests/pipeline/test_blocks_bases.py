"""What all blocks share is made once and read again."""

from pathlib import Path

import pytest
import torch
from tests.pipeline.block_runs import begun, finished, here, pretended_times, stage

from formwright.core.errors import IllegalInput
from formwright.core.json_files import read_json, write_json
from formwright.pipeline.blocks_bases import BASES, TIMES, read_tensors, read_times

pytestmark = pytest.mark.slow


def test_what_was_fitted_is_read_again() -> None:
    run = finished()
    fitted, source = run.artifact(stage(run, "bases")), run.artifact(stage(run, "source"))
    assert set(fitted.losses) == set(source.menu.embeddings)
    assert fitted.losses[16] == 0.0
    tensors = read_tensors(here(run, "bases").folder / BASES)
    assert any(torch.equal(fitted.bases[1].mean, tensor) for tensor in tensors.values())
    assert read_times(here(run, "operation-times").folder / TIMES, source.menu) == run.artifact(
        stage(run, "operation-times")
    )


def test_what_is_fitted_again_is_the_same(tmp_path: Path) -> None:
    whole = finished()
    source = stage(whole, "source")
    run = begun(tmp_path, model=source.model, text=source.text)
    with pretended_times():
        stage(run, "bases").make(here(run, "bases"))
    for path in here(whole, "bases").folder.iterdir():
        if path.name != "done.json":
            assert (here(run, "bases").folder / path.name).read_bytes() == path.read_bytes()


def test_a_damaged_file_is_refused_where_it_is_only_read(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"damaged")
    for name in ("damaged", "absent"):
        with pytest.raises(IllegalInput, match="its stage runs again"):
            read_tensors(tmp_path / name)


@pytest.mark.parametrize("kind", ["embeddings", "operations", "joints"])
def test_times_that_lack_an_operation_are_refused(tmp_path: Path, kind: str) -> None:
    run = finished()
    times = read_json(here(run, "operation-times").folder / TIMES)
    write_json(tmp_path / TIMES, {**times, kind: times[kind][1:]})
    with pytest.raises(IllegalInput, match="lacks times of operations"):
        read_times(tmp_path / TIMES, run.artifact(stage(run, "source")).menu)
