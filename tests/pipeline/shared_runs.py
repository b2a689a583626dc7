"""What tests of shared weights have in common: small trainings, kills and what runs leave."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, Quiet, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.testing.stage_contract import Killed

DIGITS = TaskChoice("digits", rows=200)
QUICK = TrainingChoice(batch=8, device="cpu")
STEPS = 6
MIXED = TrainShared("flexibert-nano", TaskChoice("mini-glue/sst2", rows=60), steps=3, training=QUICK)


def stage(**options: Any) -> TrainShared:
    return TrainShared("autoformer-nano", DIGITS, **{"steps": STEPS, "training": QUICK, **options})


def made(pipeline: Pipeline, out: Path, every: int = 2) -> PipelineRun:
    return run_pipeline(PipelineRun(pipeline, out, RunOptions(save_every=every)))


def files(out: Path) -> dict[str, bytes]:
    """Read what stages leave, but for the record of the run, its plan of time and its lock."""
    found = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if name not in ("run.json", "plan.json", ".lock")}


def after(number: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """Call something, and be killed when that was done so many times."""
    left = [number]

    def killing(*arguments: Any, **named: Any) -> Any:
        found = call(*arguments, **named)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return found

    return killing


class Lines(Quiet):
    """Keep the lines that a run tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)


def assert_close(found: torch.nn.Module, wanted: torch.nn.Module) -> None:
    other = dict(wanted.named_parameters())
    assert all(torch.allclose(weight, other[name], atol=1e-6) for name, weight in found.named_parameters())
