"""What a run would take, estimated before it begins: time, disk, and what the designs of its searches cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from formwright.core.options import inputs_of
from formwright.pipeline.pacing import begin_pacing, describe_plan
from formwright.pipeline.run import PipelineRun, Quiet

BYTES = 4  # of a parameter


@dataclass(frozen=True)
class Forecast:
    """What a stage is expected to take: seconds, bytes on disk, and the costs of its designs, from least to most.

    None stands for what is not known before the run.
    """

    seconds: float | None = None
    disk: int | None = None
    costs: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class StageForecast:
    """A stage of a run with what it does, the stages that it reads from, and what it is expected to take."""

    stage: str
    what: str
    reads: tuple[str, ...]
    expected: Forecast


@dataclass(frozen=True)
class RunPlan:
    """What a run would do: its pipeline with every option settled, as JSON data, and its stages."""

    pipeline: Mapping[str, Any]
    stages: Sequence[StageForecast]


def forecast_run(run: PipelineRun) -> list[StageForecast]:
    """Estimate what each stage of a run takes; its options are settled, and nothing is written."""
    quiet = replace(run, display=Quiet())  # the plan of time would be shown twice
    planned = {row.stage: row for row in describe_plan(run, begin_pacing(quiet))}
    found = []
    for name, stage in run.pipeline.named.items():
        expected = stage.forecast(run.stage(stage)) or Forecast()
        if planned[name].seconds is not None:
            expected = replace(expected, seconds=planned[name].seconds)
        reads = tuple(run.pipeline.name_of(one) for one in inputs_of(stage))
        what = planned[name].what or (type(stage).__doc__ or "").strip().split("\n")[0]
        found.append(StageForecast(name, what, reads, expected))
    return found
