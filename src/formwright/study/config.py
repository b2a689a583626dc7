"""Everything that is needed to repeat a study, as one value that is plain JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from formwright.core.checks import folder_name, put
from formwright.core.errors import Fault, IllegalDesign, IllegalInput, nearest
from formwright.study.stop import Stop

VERSION = 1
EVALUATORS = ("full", "staged", "inherited", "pretrained", "bi-branch", "proxy", "shared")
GO_ON_FROM_OTHERS = ("staged", "inherited", "pretrained", "bi-branch")  # evaluators that read what trials kept
TEXTS = ("task", "pydoc")
FINAL_WEIGHTS = ("fresh", "store")
T = TypeVar("T")


@dataclass(frozen=True)
class TaskChoice:
    """Name a task and where its rows come from; `kind` says what its labels are, where that is not to be guessed."""

    name: str
    data: str | None = None
    official_dev: bool = False
    text: tuple[str, ...] = ()
    label: str = ""
    rows: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class TrainingChoice:
    """Say how every design is trained, and on which device it is trained, judged and measured.

    A search on this machine keeps the device that `auto` stood for, so that it is resumed on the same.
    """

    steps: int = 300
    batch: int = 64
    learning_rate: float = 2e-3
    warmup: float = 0.3
    decay: str = "linear"
    weight_decay: float = 0.01
    length: int = 64
    dropout: float = 0.0
    device: str = "auto"


@dataclass(frozen=True)
class PretrainingChoice:
    """Say how the evaluators `pretrained` and `bi-branch` pretrain a design, and with which weights that begins.

    The text is that of the task's own training rows, or `pydoc`. `least_overlap` is the share of layers, counted from
    the input, that a trained design must have in common with a new one to spare it pretraining by `pretrained`.
    `from_scratch` lets `bi-branch` pretrain every design from fresh weights, instead of those that designs share.
    """

    steps: int = 300
    text: str = "task"
    least_overlap: float = 0.8
    from_scratch: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be pretrained."""
        if self.steps < 1:
            raise IllegalInput(f"pretraining takes at least 1 step, not {self.steps}")
        if self.text not in TEXTS:
            raise IllegalInput(f"there is no text called {self.text!r} to pretrain on; there are {' and '.join(TEXTS)}")
        if not 0 <= self.least_overlap <= 1:
            raise IllegalInput(f"the least overlap is a share from 0 to 1, not {self.least_overlap}")


@dataclass(frozen=True)
class DistillationChoice:
    """Say from which model the designs that are kept learn in the end, and how much the labels weigh beside it."""

    teacher: str
    labels: float
    temperature: float


@dataclass(frozen=True)
class Config:
    """Hold a study: what is searched, for what, how, how it is judged, and when it ends.

    `objectives` are goals such as `accuracy:max`, `limits` bounds such as `params<=5e6`. `options` are the searcher's.
    `final_steps` is how long the designs that are kept are trained at most: they keep the weights that score best on
    validation. `final_weights` is what their training begins with: `fresh` weights, or the `store` of those that the
    trials of the evaluator `bi-branch` shared.
    `weights` is the folder of the model out of which the evaluator `shared` takes sub-networks, `latency_table` a file
    by which latency is added up instead of measured. `targets` are limits such as `macs<=1e8` by name: for each the
    best design within it is delivered.
    `first` are designs, as their space writes them, that are judged before the searcher has its say. `distillation`
    names the teacher of the last training. `judged_rows` are the rows of validation, chosen at random, that the
    evaluator `shared` judges by; without a number all. Paths of what the study itself made are kept as seen from its
    folder.
    """

    space: str
    task: TaskChoice
    objectives: tuple[str, ...]
    stop: Stop
    limits: tuple[str, ...] = ()
    searcher: str = "regularized-evolution"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    evaluator: str = "full"
    proxies: tuple[str, ...] = ()
    training: TrainingChoice = TrainingChoice()
    keep: int = 1
    final_steps: int = 1000
    seed: int = 0
    pretraining: PretrainingChoice = PretrainingChoice()
    weights: str | None = None
    latency_table: str | None = None
    targets: Mapping[str, str] = field(default_factory=dict, hash=False)
    first: tuple[Any, ...] = field(default=(), hash=False)
    distillation: DistillationChoice | None = None
    final_weights: str = "fresh"
    judged_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no study can do."""
        if self.evaluator not in EVALUATORS:
            raise IllegalInput(f"no evaluator is called {self.evaluator!r}; there are {', '.join(EVALUATORS)}")
        if (self.evaluator == "shared") != (self.weights is not None):
            raise IllegalInput("the evaluator shared, and no other, needs the folder of a super-network as its weights")
        least = 0 if self.evaluator == "shared" else 1  # sub-networks of trained weights need no further training
        if self.keep < 1 or self.final_steps < least:
            told = f"keep must be at least 1 and final_steps {least}, not {self.keep} and {self.final_steps}"
            raise IllegalInput(told)
        if self.judged_rows is not None and (self.judged_rows < 1 or self.evaluator != "shared"):
            raise IllegalInput("judged_rows is a number of rows, at least 1, and the evaluator shared alone knows it")
        self._refuse_final_weights()
        for name in self.targets:
            folder_name("a target", name)  # and so is the folder of its model
        put(self, options=dict(self.options), targets=dict(self.targets))

    def _refuse_final_weights(self) -> None:
        """Refuse to begin with what is not there."""
        if self.final_weights not in FINAL_WEIGHTS:
            told = " and ".join(FINAL_WEIGHTS)
            raise IllegalInput(f"there are no final weights called {self.final_weights!r}; there are {told}")
        if self.final_weights == "store" and (self.evaluator != "bi-branch" or self.pretraining.from_scratch):
            raise IllegalInput(
                "final weights from the store need trials that leave one: those of the evaluator bi-branch, unless it "
                "trains every design from scratch"
            )

    def seen_from(self, folder: Path) -> "Config":
        """Give the configuration with the paths of what stands in the study's folder made whole."""

        def whole(path: str | None) -> str | None:
            return None if path is None else str(folder / path)

        taught = self.distillation
        return replace(
            self,
            space=str(folder / self.space) if self.space.endswith(".json") else self.space,
            weights=whole(self.weights),
            latency_table=whole(self.latency_table),
            distillation=None if taught is None else replace(taught, teacher=str(folder / taught.teacher)),
        )

    def to_json(self) -> dict[str, Any]:
        """Give plain JSON data."""
        data = asdict(self)
        data["searcher"] = {"name": data.pop("searcher"), "options": data.pop("options")}
        data["evaluator"] = {"name": data.pop("evaluator"), "proxies": list(data.pop("proxies"))}
        return {"version": VERSION, **_plain(data)}

    @classmethod
    def from_json(cls, data: Any) -> "Config":
        """Read what `to_json` gave; every fault is reported at once."""
        faults: list[Fault] = []
        if not isinstance(data, Mapping) or data.get("version") != VERSION:
            known = data.get("version") if isinstance(data, Mapping) else None
            raise IllegalInput(f"this study has version {known!r}; this formwright reads version {VERSION}: update it")
        values = {key: value for key, value in data.items() if key not in ("version", "searcher", "evaluator")}
        values |= _named("searcher", "options", data, faults) | _named("evaluator", "proxies", data, faults)
        values.setdefault("pretraining", {})  # studies of earlier versions have none
        for name, kind in _PARTS.items():
            values[name] = _read(kind, values.get(name), name, faults)
        if values.get("distillation") is not None:
            values["distillation"] = _read(DistillationChoice, values["distillation"], "distillation", faults)
        config = _read(cls, values, "", faults)
        if faults or config is None:
            raise IllegalDesign(faults, what="configuration of a study")
        return config


_PARTS: Mapping[str, type[Any]] = {
    "task": TaskChoice,
    "stop": Stop,
    "training": TrainingChoice,
    "pretraining": PretrainingChoice,
}


def _named(part: str, beside: str, data: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
    """Read a part that has a name and something beside it; where it is left out, the default holds."""
    if part not in data:
        return {}
    given = data[part]
    if not isinstance(given, Mapping) or not {"name"} <= given.keys() <= {"name", beside}:
        faults.append(Fault(part, f"must be an object with a name and, if need be, {beside}"))
        return {}
    return {part: given["name"]} | ({beside: given[beside]} if beside in given else {})


def _read(kind: type[T], data: Any, where: str, faults: list[Fault]) -> T | None:
    if not isinstance(data, Mapping):
        faults.append(Fault(where, f"must be an object, not {type(data).__name__}"))
        return None
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    for name in data.keys() - set(known):
        close = nearest(name, known)
        faults.append(Fault(where, f"has no field {name!r}" + (f"; nearest: {close[0]!r}" if close else "")))
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in known}
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        faults.append(Fault(where, str(error)))
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
