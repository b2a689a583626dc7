"""`formwright compress --recipe nas-bert`: its options, and what it refuses before anything is trained."""

from pathlib import Path

import pytest
from tests.cli.blocks import line
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--task", "mini-glue/sst2"), "--task: the recipe nas-bert"),
        (("--target", "macs=50%", "--trials", "9"), "--target, --trials"),
        (("--sizes", "5Q"), "'5Q'"),
        (("--sizes", "1M"), "sizes reach from"),
        (("--text", "nowhere.txt"), "cannot read the text nowhere.txt"),
        (("--text", "wikitext"), "name their folder with --data"),
        (("--recipe", "nasbert"), "Nearest: 'nas-bert'"),
        (("--set", "blocks.round=2"), "rounds"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    run: Run, tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    done = run(*line(tmp_path, *options))
    assert (done.code, done.out) == (2, "")
    assert why in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()


def test_a_dry_run_lists_the_stages_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    done = run(*line(tmp_path, "--dry-run"))
    assert done.code == 0, done.err
    assert all(name in done.out for name in ("source", "operation-times", "bases", "blocks", "choices", "students"))
    assert not (tmp_path / "out").exists()


def test_the_other_recipe_has_no_sizes_and_needs_a_task(run: Run, tmp_path: Path) -> None:
    done = run("compress", tmp_path / "bert", "--task", "mini-glue/sst2", "--sizes", "5M")
    assert done.code == 2
    assert "--sizes: the recipe eftnas" in done.err
    done = run("compress", tmp_path / "bert")
    assert done.code == 2
    assert "with --task" in done.err
