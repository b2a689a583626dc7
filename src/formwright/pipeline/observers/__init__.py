"""Observers follow a run and write what they see where people already look: TensorBoard, MLflow, Weights & Biases.

An observer is a part with options, or any object with some of the methods of `Observer`. It is called at stages,
training steps, trials and delivered models, in the process that runs the pipeline. What goes wrong in it never stops a
run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.extras import need
from formwright.core.files import write_whole
from formwright.core.options import Part, PartReader
from formwright.core.registry import Registry

if TYPE_CHECKING:
    from formwright.pipeline.run import PipelineRun
    from formwright.study.store import Log

_HERE = "formwright.pipeline.observers"
FOLDER = "observers"  # in the folder of a run
_SEEN = "seen.json"

OBSERVERS: Registry[Any] = Registry(
    "observer",
    {
        "tensorboard": f"{_HERE}.tensorboard:TensorBoard",
        "mlflow": f"{_HERE}.mlflow:MLflow",
        "wandb": f"{_HERE}.wandb:WeightsAndBiases",
    },
    "formwright.observers",
)


class Observer:
    """Follow one run; every method may be left out."""

    def stage(self, name: str) -> None:
        """Take note that a stage begins."""

    def step(self, stage: str, step: int, loss: float) -> None:
        """Take a training step and its loss."""

    def trial(self, number: int, metrics: Mapping[str, float], reason: str) -> None:
        """Take a trial that ended: its scores and costs, or the reason why it failed."""

    def model(self, delivered: Any) -> None:
        """Take a delivered model: its `name`, `path`, `params`, `validation`, `test` and `costs`."""

    def end(self, run: "PipelineRun", state: str) -> None:
        """Take note that the run ended: `finished`, `stopped` by the user, or `failed`."""


class Scalars(Observer):
    """Follow one run by numbers with steps: losses, every few steps, trials and delivered models."""

    every: int = 1

    def scalars(self, values: Mapping[str, float], kind: str, step: int) -> None:
        """Write numbers by name at a step; `kind` is loss, trial or model, each with steps of its own."""

    def step(self, stage: str, step: int, loss: float) -> None:
        if step % self.every == 0:
            self.scalars({f"loss/{stage}": loss}, "loss", step)

    def trial(self, number: int, metrics: Mapping[str, float], reason: str) -> None:
        found = {f"trial/{name}": value for name, value in metrics.items()}
        self.scalars(found or {"trial/failed": 1.0}, "trial", number)

    def model(self, delivered: Any) -> None:
        """Write scores on validation and test rows, and costs."""
        found = {f"validation_{name}": value for name, value in delivered.validation.items()}
        found |= {f"test_{name}": value for name, value in (delivered.test or {}).items()}
        found |= {"params": float(delivered.params), **delivered.costs}
        self.scalars({f"model/{delivered.name}/{name}": value for name, value in found.items()}, "model", 0)


class ObserverPart(Part):
    """Base class of observers chosen by name: `start` gives what follows the run; the extra `NAME` brings `MODULE`."""

    MODULE: ClassVar[str] = ""

    @classmethod
    def registry(cls) -> Registry[Any]:
        return OBSERVERS

    def start(self, run: "PipelineRun") -> Observer:
        """Begin to follow a run."""
        raise TypeError(f"{type(self).__name__} follows nothing")


def choose_observers(given: Iterable[Any] | None) -> tuple[Any, ...]:
    """Give observers as they are, or by `NAME` or `NAME:OPTION=VALUE,...`; refuse one whose package is missing."""
    if isinstance(given, str):
        given = (given,)
    found = tuple(_named(one) if isinstance(one, str) else one for one in given or ())
    for one in found:
        if isinstance(one, type):
            raise IllegalInput(f"an observer is an object: write {one.__name__}(), not {one.__name__}")
        if isinstance(one, ObserverPart) and one.MODULE:
            need(one.MODULE, one.NAME)
    return found


def _named(text: str) -> Any:
    from formwright.pipeline.files import read_options

    name, _, rest = text.partition(":")
    OBSERVERS.get(name)  # an unknown name is reported as such
    options = read_options(rest, f"{name}:")
    reader = PartReader()
    return reader.finished(reader.read(ObserverPart, {"name": name, **options}, "observer"), "observer")


@contextmanager
def observing(run: "PipelineRun") -> Iterator[None]:
    """Start the observers of a run, whose folder exists, and end them with it, however it ends."""
    from formwright.pipeline.run import Interrupted

    run.observers = tuple(_Guarded(one, run) for one in run.observers)
    state = "failed"
    try:
        yield
        state = "finished"
    except (Interrupted, KeyboardInterrupt):
        state = "stopped"
        raise
    finally:
        for observer in run.observers:
            observer.call("end", run, state)


class _Guarded:
    """Call an observer; one that fails is reported once and left out, and the run continues."""

    def __init__(self, observer: Any, run: "PipelineRun") -> None:
        self.name = getattr(observer, "NAME", "") or type(observer).__name__
        self._run = run
        self._file = run.out / FOLDER / self.name / _SEEN
        self._seen: dict[str, int] = {}
        with suppress(OSError, ValueError):  # nothing was seen yet, or nobody knows
            self._seen = json.loads(self._file.read_bytes())
        self._observer: Any = observer
        self._observer = self.call("start", run) or self._observer

    def call(self, method: str, *arguments: Any) -> Any:
        function = getattr(self._observer, method, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except Exception as error:  # of a foreign package, and no reason to lose a training
            detail = str(error) if isinstance(error, FormwrightError) else f"{type(error).__name__}: {error}"
            self._run.display.tell(f"warning: the observer {self.name} failed, and is left out: {detail}")
            self._observer = None
            return None

    def stage(self, name: str) -> None:
        self.call("stage", name)

    def step(self, stage: str, step: int, loss: float) -> None:
        self.call("step", stage, step, loss)

    def model(self, delivered: Any) -> None:
        self.call("model", delivered)

    def follow(self, stage: str, log: "Log") -> None:
        """Tell of each trial of a study once, also of those that ended while nobody looked."""
        events = log.read(self._seen.get(stage, 0))
        for event in events:
            if event.kind in ("told", "failed") and event.number is not None:
                metrics = event.data.get("observation", {}).get("metrics", {})
                self.call("trial", event.number, metrics, str(event.data.get("reason", "")))
        if events:
            self._seen[stage] = events[-1].id
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_whole(self._file, json.dumps(self._seen))


def folder_of(run: "PipelineRun", name: str, chosen: str = "") -> Path:
    """Give the folder of an observer: the chosen one, or its own in that of the run; make it."""
    folder = Path(chosen).absolute() if chosen else (run.out / FOLDER / name).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
