"""Block-wise compressions of a BERT of two layers that take a second or two, on a text of a few hundred words."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.compressions import Told, bert

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import params
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions, StageRun
from formwright.pipeline.runner import prepare, run_pipeline
from formwright.recipes.nas_bert import nas_bert
from formwright.report.page import write_run_page

SIZES = "3k,6k"
QUICK = {
    "source.batch": 8,
    "blocks.steps": 4,
    "blocks.rounds": 2,
    "blocks.candidates": 60,
    "blocks.bins": 2,
    "blocks.least": 4,
    "choices.checked": 2,
    "students.steps": 4,
}


def pretended(card: Card) -> float:
    """Take a time that follows from the design alone."""
    assert card.encoder is not None
    return 1e-5 * params(card) + 0.01 * len(card.encoder.layers)


@contextmanager
def pretended_times() -> Iterator[None]:
    """Let every design take the time that is pretended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formwright.nn.latency.quick", lambda *_: pretended)
        yield


def text(folder: Path, lines: int = 80) -> Path:
    """Write a text of letters and numbers."""
    rng = derive(0, "text")
    words = [" ".join("abcdefgh0123456789"[index] for index in rng.integers(18, size=8)) for _ in range(lines)]
    path = folder / "text.txt"
    path.write_text("\n".join(words), encoding="utf-8")
    return path


def blockwise(folder: Path, sizes: str = SIZES, settings: dict[str, Any] | None = None, **changes: Any) -> Pipeline:
    """Give a quick compression; `folder` gets the model and the text."""
    model = folder / "bert" if (folder / "bert").is_dir() else bert(folder)
    values = {"model": str(model), "text": str(text(folder)), "length": 12, "device": "cpu", **changes}
    made = nas_bert(sizes=sizes, **values)
    return made.with_options([(path.split("."), value) for path, value in (QUICK | (settings or {})).items()])


def begun(folder: Path, out: str = "out", *, workers: int = 1, **changes: Any) -> PipelineRun:
    """Give a run that may be resumed, or only looked at; nothing is written yet."""
    options = RunOptions(workers, save_every=2, hours=changes.pop("hours", None))
    return PipelineRun(blockwise(folder, **changes), folder / out, options, Told(), page=write_run_page)


def made(folder: Path, out: str = "out", **changes: Any) -> PipelineRun:
    """Run a compression to its end."""
    with pretended_times():
        return run_pipeline(begun(folder, out, **changes))


def steps_of(run: PipelineRun, what: str) -> list[int]:
    """List the steps that a run has shown."""
    assert isinstance(run.display, Told)
    return run.display.steps_of(what)


def stage(run: PipelineRun, name: str) -> Any:
    """Give a stage of a run."""
    return run.pipeline.named[name]


def here(run: PipelineRun, name: str) -> StageRun:
    """Give what a stage of a run is given."""
    return run.stage(stage(run, name))


@cache
def finished() -> PipelineRun:
    """Give a compression that was never interrupted; tests that change its files work on a copy."""
    folder = Path(tempfile.mkdtemp(prefix="formwright-blocks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return made(folder)


def copied(folder: Path, **changes: Any) -> PipelineRun:
    """Give a run that resumes a copy of the finished one."""
    whole = finished()
    shutil.copytree(whole.out.parent, folder, dirs_exist_ok=True)
    # the model and the text stay where they are: a run that reads others is another one
    source = stage(whole, "source")
    return begun(folder, model=source.model, text=source.text, **changes)


def settled(run: PipelineRun) -> PipelineRun:
    """Settle and check the options of a run."""
    with pretended_times():
        prepare(run)
    return run


def artifacts(run: PipelineRun) -> dict[str, bytes]:
    """Read everything that stages wrote, and the weights of the models."""
    paths = [path for path in run.out.rglob("*") if path.suffix in (".json", ".safetensors")]
    kept = [path for path in paths if path.name not in ("run.json", "plan.json", "done.json")]
    return {str(path.relative_to(run.out)): path.read_bytes() for path in kept}
