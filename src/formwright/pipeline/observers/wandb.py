"""Track a run with Weights & Biases, online or in files that are uploaded later."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.extras import need
from formwright.core.options import option
from formwright.pipeline.observers import Observer, ObserverPart, folder_of, scores_of

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

    def start(self, run: "PipelineRun") -> "_Tracked":
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
        return _Tracked(started, max(1, self.every))


class _Tracked(Observer):
    """One run of Weights & Biases."""

    def __init__(self, started: Any, every: int) -> None:
        self._run, self._every = started, every

    def stage(self, name: str) -> None:
        self._run.summary["stage"] = name

    def step(self, stage: str, step: int, loss: float) -> None:
        if step % self._every == 0:
            self._run.log({f"loss/{stage}": loss, "loss/number": step})

    def trial(self, number: int, metrics: Mapping[str, float], reason: str) -> None:
        found = {f"trial/{name}": value for name, value in metrics.items()} or {"trial/failed": 1.0}
        self._run.log(found | {"trial/number": number})

    def model(self, delivered: Any) -> None:
        found = {f"model/{delivered.name}/{name}": value for name, value in scores_of(delivered).items()}
        self._run.summary.update(found)

    def end(self, run: "PipelineRun", state: str) -> None:
        self._run.finish(exit_code=0 if state == "finished" else 1)
