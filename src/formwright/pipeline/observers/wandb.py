"""Track a run with Weights & Biases, online or in files that are uploaded later."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.extras import need
from formwright.core.options import option
from formwright.pipeline.observers import ObserverPart, Scalars, folder_of

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun


@dataclass(frozen=True)
class WeightsAndBiases(ObserverPart):
    """Track losses, trials and delivered models as one run of Weights & Biases; a resumed run has the same id.

    `mode` is `online`, `offline` (upload the files later with `wandb sync`) or empty for what $WANDB_MODE says.
    """

    NAME: ClassVar[str] = "wandb"
    MODULE: ClassVar[str] = "wandb"

    project: str = option("formwright", "project that the run belongs to")
    entity: str = option("", "user or team; by default that of the login")
    mode: str = option("", "online or offline; by default what $WANDB_MODE says")
    every: int = option(10, "training steps between two losses")

    def start(self, run: "PipelineRun") -> "_WandbRun":
        folder = folder_of(run, self.NAME)
        out = run.out.absolute()
        started = need(self.MODULE, self.NAME).init(
            project=self.project,
            entity=self.entity or None,
            mode=self.mode or None,
            dir=str(folder),
            name=out.name,
            id=hashlib.sha256(str(out).encode()).hexdigest()[:16],
            resume="allow",
            config=run.pipeline.to_json(),
        )
        for kind in ("trial", "loss"):  # each has steps of its own
            started.define_metric(f"{kind}/*", step_metric=f"{kind}/number")
        return _WandbRun(started, max(1, self.every))


class _WandbRun(Scalars):
    """One run of Weights & Biases."""

    def __init__(self, started: Any, every: int) -> None:
        self._run, self.every = started, every

    def stage(self, name: str) -> None:
        self._run.summary["stage"] = name

    def scalars(self, values: Mapping[str, float], kind: str, step: int) -> None:
        if kind == "model":
            self._run.summary.update(values)
        else:
            self._run.log({**values, f"{kind}/number": step})

    def end(self, run: "PipelineRun", state: str) -> None:
        self._run.finish(exit_code=0 if state == "finished" else 1)
