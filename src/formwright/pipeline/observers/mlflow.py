"""Track a run with MLflow, in a local database or on a server."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.extras import need
from formwright.core.options import option
from formwright.pipeline.observers import ObserverPart, Scalars, folder_of

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun

_STATES = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_LONGEST, _MOST = 500, 100  # characters of a parameter, and parameters of a call, that MLflow takes
_ID = "run-id"


@dataclass(frozen=True)
class MLflow(ObserverPart):
    """Track losses, trials and delivered models as one run of MLflow; a resumed run continues the same one."""

    NAME: ClassVar[str] = "mlflow"
    MODULE: ClassVar[str] = "mlflow"

    uri: str = option("", "tracking server or database; by default $MLFLOW_TRACKING_URI, or a database in the run")
    experiment: str = option("formwright", "experiment that the run belongs to")
    every: int = option(50, "training steps between two losses")

    def start(self, run: "PipelineRun") -> "_MLflowRun":
        folder = folder_of(run, self.NAME)
        own = f"sqlite:///{folder / 'mlflow.db'}"
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI") or own
        client = need(self.MODULE, self.NAME).MlflowClient(tracking_uri=uri)
        tracked = _MLflowRun(client, max(1, self.every))
        known = folder / _ID
        if known.is_file():
            tracked.go_on(known.read_text(encoding="utf-8"))
            return tracked
        found = client.get_experiment_by_name(self.experiment)
        place = folder / "artifacts" if uri == own else None  # else MLflow would write into the current folder
        number = (
            found.experiment_id
            if found is not None
            else client.create_experiment(self.experiment, None if place is None else place.as_uri())
        )
        tracked.create(number, run)
        known.write_text(tracked.id, encoding="utf-8")
        return tracked


class _MLflowRun(Scalars):
    """One run of MLflow."""

    def __init__(self, client: Any, every: int) -> None:
        self._client, self.every, self.id = client, every, ""
        self._entities = need("mlflow.entities", "mlflow")

    def create(self, experiment: str, run: "PipelineRun") -> None:
        self.id = self._client.create_run(experiment, run_name=run.out.absolute().name).info.run_id
        options = {name: str(value)[:_LONGEST] for name, value in _flat(run.pipeline.to_json()["stages"])}
        options["recipe"] = run.pipeline.recipe or "none"
        params = [self._entities.Param(name, value) for name, value in options.items()]
        for first in range(0, len(params), _MOST):
            self._client.log_batch(self.id, params=params[first : first + _MOST])

    def go_on(self, known: str) -> None:
        self.id = known
        self._client.update_run(self.id, status="RUNNING")

    def scalars(self, values: Mapping[str, float], kind: str, step: int) -> None:
        now = time.time_ns() // 1_000_000
        found = [self._entities.Metric(_legal(name), float(value), now, step) for name, value in values.items()]
        self._client.log_batch(self.id, metrics=found)

    def stage(self, name: str) -> None:
        self._client.set_tag(self.id, "stage", name)

    def model(self, delivered: Any) -> None:
        super().model(delivered)
        self._client.set_tag(self.id, f"model.{_legal(delivered.name)}", str(delivered.path))

    def end(self, run: "PipelineRun", state: str) -> None:
        page = Path(run.out) / "report.html"
        if page.is_file():
            self._client.log_artifact(self.id, str(page))
        self._client.set_terminated(self.id, _STATES[state])


def _legal(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)


def _flat(value: Any, path: str = "") -> "list[tuple[str, Any]]":
    if not isinstance(value, Mapping):
        return [(_legal(path), value)]
    return [pair for name, item in value.items() for pair in _flat(item, f"{path}.{name}" if path else str(name))]
