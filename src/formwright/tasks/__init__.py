"""What models are trained and judged on, by name; other packages add theirs by an entry point."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Registry
from formwright.tasks.corpora import CORPORA, corpus_task
from formwright.tasks.glue import glue_task
from formwright.tasks.glue_specs import GLUE
from formwright.tasks.hub import hub_task
from formwright.tasks.labels import kind_named
from formwright.tasks.own import own_task
from formwright.tasks.squad import Version, squad_task
from formwright.tasks.tables import format_of
from formwright.tasks.task import Task

_HERE = "formwright.tasks"
MINI_GLUE = ("cola", "sst2", "mrpc", "stsb", "mnli", "rte", "qnli", "qqp", "wnli")
_SQUAD: dict[str, Version] = {"squad": "1.1", "squad_v2": "2.0"}
_ALIASES = {"mini-glue/sentiment": "mini-glue/sst2"}  # what a task is about, beside what it is called
FROM_DATA = (*(f"glue/{name}" for name in GLUE), *_SQUAD, *CORPORA)

TASKS: Registry[Task] = Registry(
    "task",
    {
        **{f"mini-glue/{name}": f"{_HERE}.mini_glue.{name}:TASK" for name in MINI_GLUE},
        "pydoc/masked": f"{_HERE}.pydoc:MASKED",
        "pydoc/causal": f"{_HERE}.pydoc:CAUSAL",
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
    """Return the task that a name stands for.

    That is a builtin task; one of `FROM_DATA`, read from the folder `data` or else, but for `CORPORA`, fetched from the
    Hugging Face hub; a table or a folder of tables, as in `own_task`; or a dataset `owner/name[:config]` of the hub.
    `text` and `label` name the columns of the latter two, and `kind` (one of `TASK_KINDS`) says what their labels are,
    which is guessed otherwise. `official_dev` keeps a given validation set whole, without a test if need be.
    """
    name = _ALIASES.get(name, name)
    if name in TASKS.names():
        _refuse(name, data=data, official_dev=official_dev, text=text, label=label, task_kind=kind)
        return TASKS.get(name)
    given = {"official_dev": official_dev, "text": text, "label": label, "kind": kind}
    found = _outside(name, data, official_dev, text, label, kind)
    return replace(found, load={"name": name, "data": None if data is None else str(data), **given})


def _outside(name: str, data: Path | None, official_dev: bool, text: tuple[str, ...], label: str, kind: str) -> Task:
    """Load a task that is not built in."""
    named = kind_named(kind)
    if name in FROM_DATA:
        _refuse(name, text=text, label=label, task_kind=kind)
        return _from_data(name, data, official_dev)
    _refuse(name, data=data)
    if is_a_path(name):
        return own_task(name, text or ("sentence",), label or "label", named, official_dev)
    known = [*TASKS.names(), *FROM_DATA]
    if name.count("/") != 1 or name.partition("/")[0] in {other.partition("/")[0] for other in known}:
        raise UnknownName("task", name, sorted(known))
    return hub_task(name, text, label or "label", official_dev, named)


def text_columns(load: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the columns of text of a task that `load_task` loads with these arguments; none where it has no table."""
    name = str(load.get("name", ""))
    if name in _SQUAD:
        return ("question", "context")
    if name.removeprefix("glue/") in GLUE and name.startswith("glue/"):
        return GLUE[name.removeprefix("glue/")].text
    return tuple(load.get("text") or ()) or (("sentence",) if is_a_path(name) else ())


def _from_data(name: str, data: Path | None, official_dev: bool) -> Task:
    if name in CORPORA:
        _refuse(name, official_dev=official_dev)  # their test rows have answers
        return corpus_task(name, data)
    if name not in _SQUAD:
        return glue_task(name.removeprefix("glue/"), data, official_dev)
    return squad_task(_SQUAD[name], data, official_dev)


def _refuse(name: str, **options: object) -> None:
    for option, given in options.items():
        if given:
            raise IllegalInput(f"the task {name!r} takes no --{option.replace('_', '-')}")


def is_a_path(name: str) -> bool:
    """Tell whether a task is named by a file or a folder."""
    begins = name.startswith((os.sep, "."))
    return begins or format_of(Path(name)) is not None or os.path.exists(name)
