"""Tasks by name; other packages add theirs by an entry point."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Registry
from formwright.tasks.corpora import CORPORA, corpus_task
from formwright.tasks.glue import GLUE, glue_task
from formwright.tasks.hub import hub_task
from formwright.tasks.labels import kind_named
from formwright.tasks.squad import Version, squad_task
from formwright.tasks.tables import format_of
from formwright.tasks.task import Task
from formwright.tasks.user_tables import own_task

_HERE = "formwright.tasks"
MINI_GLUE = ("cola", "sst2", "mrpc", "stsb", "mnli", "rte", "qnli", "qqp", "wnli")
_SQUAD: dict[str, Version] = {"squad": "1.1", "squad_v2": "2.0"}
_ALIASES = {"mini-glue/sentiment": "mini-glue/sst2"}  # other names of builtin tasks
FROM_DATA = (*(f"glue/{name}" for name in GLUE), *_SQUAD, *CORPORA)

TASKS: Registry[Task] = Registry(
    "task",
    {
        **{f"mini-glue/{name}": f"{_HERE}.mini_glue:{name.upper()}" for name in MINI_GLUE},
        "pydoc/masked": f"{_HERE}.corpora:PYDOC_MASKED",
        "pydoc/causal": f"{_HERE}.corpora:PYDOC_CAUSAL",
        "digits": f"{_HERE}.digits:DIGITS",
        "translation": f"{_HERE}.translation:TRANSLATION",
    },
    "formwright.tasks",
    Task,
)


def load_task(
    name: str,
    data: Path | None = None,
    official_dev: bool = False,
    text: tuple[str, ...] = (),
    label: str = "",
    kind: str = "",
) -> Task:
    """Return a task by name.

    The name is that of a builtin task; one of `FROM_DATA`, read from the folder `data` or, except for `CORPORA`,
    downloaded from the Hugging Face hub; the path of a table or a folder of tables (see `own_task`); or a dataset
    `owner/name[:config]` of the hub. `text` and `label` name the columns of the latter two, and `kind` (one of
    `TASK_KINDS`) the meaning of the labels, which is guessed by default. `official_dev` keeps a given validation set
    whole, even if no test rows remain.
    """
    name = _ALIASES.get(name, name)
    if name in TASKS.names():
        _reject_options(name, data=data, official_dev=official_dev, text=text, label=label, task_kind=kind)
        return TASKS.get(name)
    named, known = kind_named(kind), [*TASKS.names(), *FROM_DATA]
    if name in FROM_DATA:
        _reject_options(name, text=text, label=label, task_kind=kind)
        found = _from_data(name, data, official_dev)
    else:
        _reject_options(name, data=data)
        if is_a_path(name):
            found = own_task(name, text or ("sentence",), label or "label", named, official_dev)
        elif name.count("/") != 1 or name.partition("/")[0] in {other.partition("/")[0] for other in known}:
            raise UnknownName("task", name, sorted(known))
        else:
            found = hub_task(name, text, label or "label", official_dev, named)
    given = {"official_dev": official_dev, "text": text, "label": label, "kind": kind}
    return replace(found, load={"name": name, "data": None if data is None else str(data), **given})


def text_columns(load: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the text columns of a task that `load_task` loads with these arguments; none if it has no table."""
    name = str(load.get("name", ""))
    if name in _SQUAD:
        return ("question", "context")
    if name.removeprefix("glue/") in GLUE and name.startswith("glue/"):
        return GLUE[name.removeprefix("glue/")].text
    return tuple(load.get("text") or ()) or (("sentence",) if is_a_path(name) else ())


def _from_data(name: str, data: Path | None, official_dev: bool) -> Task:
    if name in CORPORA:
        _reject_options(name, official_dev=official_dev)  # their test rows have answers
        return corpus_task(name, data)
    if name not in _SQUAD:
        return glue_task(name.removeprefix("glue/"), data, official_dev)
    return squad_task(_SQUAD[name], data, official_dev)


def _reject_options(name: str, **options: object) -> None:
    for option, given in options.items():
        if given:
            raise IllegalInput(f"the task {name!r} takes no --{option.replace('_', '-')}")


def is_a_path(name: str) -> bool:
    """Return whether the name of a task is the path of a file or a folder."""
    begins = name.startswith((os.sep, "."))
    return begins or format_of(Path(name)) is not None or os.path.exists(name)


@dataclass(frozen=True)
class TaskEntry:
    """A summary of a task; `rows` says where its rows come from."""

    name: str
    kind: str
    metric: str
    rows: str
    about: str


def catalogue() -> list[TaskEntry]:
    """List the builtin tasks and those whose data the user provides, without loading any rows."""
    builtin = [TASKS.get(name) for name in TASKS.names()]
    entries = [TaskEntry(task.name, task.kind, task.metric, "builtin", task.about) for task in builtin]
    return entries + [_real(name) for name in FROM_DATA]


def _real(name: str) -> TaskEntry:
    spec = GLUE.get(name.removeprefix("glue/"))
    if spec is not None:
        return TaskEntry(name, spec.labelling.kind, spec.metrics[0], "--data DIR, or download", spec.about)
    if name in CORPORA:
        corpus = CORPORA[name]
        return TaskEntry(name, corpus.kind, corpus.metrics[0], "--data DIR", corpus.about)
    about = "find the part of a text that answers a question"
    return TaskEntry(
        name, "span-extraction", "span-f1", "--data DIR", about + (" or see there is none" if "2" in name else "")
    )
