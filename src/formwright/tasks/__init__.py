"""Tasks by name; other packages add theirs by an entry point."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from formwright.core.codec import write
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Registry
from formwright.tasks.corpora import CORPORA, corpus_task
from formwright.tasks.frame_options import FrameOptions, frame_options
from formwright.tasks.glue import GLUE, glue_task
from formwright.tasks.hub import hub_task
from formwright.tasks.idx import IDX_TASKS, idx_task
from formwright.tasks.kind import Kind, guess_words, kind_in_steps, kind_named, own_kinds
from formwright.tasks.own_files import training_file
from formwright.tasks.recordings import FSDD, fsdd_task, with_frame_options
from formwright.tasks.relations import ABOUT as RELATION_ABOUT
from formwright.tasks.relations import METRICS as RELATION_METRICS
from formwright.tasks.relations import SEMEVAL, semeval_task
from formwright.tasks.squad import squad_task
from formwright.tasks.tables import format_of
from formwright.tasks.task import Task
from formwright.tasks.text_files import refuse_archive
from formwright.tasks.user_tables import own_task

_HERE = "formwright.tasks"


def _corpus(name: str, data: Path | None, _: bool) -> Task:
    return corpus_task(name, data)


MINI_GLUE = ("cola", "sst2", "mrpc", "stsb", "mnli", "rte", "qnli", "qqp", "wnli")
_ALIASES = {"mini-glue/sentiment": "mini-glue/sst2"}  # other names of builtin tasks


@dataclass(frozen=True)
class Published:
    """A task whose files the user has: `make(data, official_dev)` reads them; `text` are columns of its table."""

    kind: str
    metric: str
    about: str
    make: Callable[[Path | None, bool], Task]
    rows: str = "--data DIR"
    text: tuple[str, ...] = ()
    has_dev: bool = True


_QUESTIONS, _ANSWER = ("question", "context"), "find the part of a text that answers a question"
PUBLISHED: dict[str, Published] = {
    **{
        f"glue/{name}": Published(
            spec.labelling.kind,
            spec.metrics[0],
            spec.about,
            partial(glue_task, name),
            "--data DIR, or download",
            spec.text,
        )
        for name, spec in GLUE.items()
    },
    "squad": Published("span-extraction", "span-f1", _ANSWER, partial(squad_task, "1.1"), text=_QUESTIONS),
    "squad_v2": Published(
        "span-extraction", "span-f1", f"{_ANSWER} or see there is none", partial(squad_task, "2.0"), text=_QUESTIONS
    ),
    **{
        # their test rows have answers, so that there is no dev set to keep whole
        name: Published(one.kind, one.metrics[0], one.about, partial(_corpus, name), has_dev=False)
        for name, one in CORPORA.items()
    },
    **{
        name: Published("image-classification", "accuracy", about, partial(idx_task, name))
        for name, (about, _) in IDX_TASKS.items()
    },
    FSDD: Published(
        "frame-classification", "accuracy", "spoken digits in WAV files", partial(fsdd_task, FSDD), has_dev=False
    ),
    SEMEVAL: Published("relation-classification", RELATION_METRICS[0], RELATION_ABOUT, semeval_task),
}
FROM_DATA = tuple(PUBLISHED)

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
    series: str = "",
    frames: FrameOptions | Mapping[str, Any] | None = None,
) -> Task:
    """Return a task by name.

    The name is that of a builtin task; one of `FROM_DATA`, read from the folder `data` or, except for `CORPORA`,
    downloaded from the Hugging Face hub; the path of a file or a folder of the user's own (see `own_kinds`); or a
    dataset `owner/name[:config]` of the hub. `text` and `label` name the columns of the latter two, and `kind` (one of
    `own_kinds()`) what the rows and their labels are, which is guessed by default. `series` is the column that names
    the series of a table of which a row is one step, and `frames` are how recordings become frames. `official_dev`
    keeps a given validation set whole, even if no test rows remain.
    """
    name = _ALIASES.get(name, name)
    if name in TASKS.names():
        _reject_options(
            name,
            data=data,
            official_dev=official_dev,
            text=text,
            label=label,
            task_kind=kind,
            series=series,
            frames=frames,
        )
        return TASKS.get(name)
    known = [*TASKS.names(), *FROM_DATA]
    if name in FROM_DATA:
        _reject_options(name, text=text, label=label, task_kind=kind, series=series)
        if not PUBLISHED[name].has_dev:
            _reject_options(name, official_dev=official_dev)
        found = PUBLISHED[name].make(data, official_dev)
    else:
        _reject_options(name, data=data)
        named = kind_in_steps() if series and not kind else kind_named(kind)
        if named is None or not named.in_steps:
            _reject_options(name, series=series)
        if is_a_path(name):
            by = {"series": series} if series else {}
            found = _own(name, named, text=text, label=label, official_dev=official_dev, **by)
        elif name.count("/") != 1 or name.partition("/")[0] in {other.partition("/")[0] for other in known}:
            raise UnknownName("task", name, sorted(known))
        else:
            found = hub_task(name, text, label or "label", official_dev, None if named is None else named.name)
    given = {"official_dev": official_dev, "text": text, "label": label, "kind": kind, "series": series}
    if frames is not None:
        options = frames if isinstance(frames, FrameOptions) else frame_options(frames)
        found, given = with_frame_options(found, options), {**given, "frames": write(options)}
    return replace(found, load={"name": name, "data": None if data is None else str(data), **given})


def _own(path: str, kind: Kind | None, **options: Any) -> Task:
    """Make a task of a user's own files: of the kind that is named, of one that they suit, or else of a table."""
    refuse_archive(Path(path))
    if kind is not None and kind.own_task is not None:
        return kind.own_task(path, **options)
    for one in own_kinds().values():
        if one.own_task is not None and one.suits is not None and (reason := one.suits(Path(path))):
            return replace(one.own_task(path, **options), guess=guess_words(one, reason))
    if os.path.isdir(path) and training_file(Path(path)) is None:
        raise IllegalInput(
            f"no training rows in {path}: expected a table or text called train, such as train.csv, or pictures or WAV "
            "files in a folder for each label (docs/tasks.md)"
        )
    return own_task(path, **options)


def text_columns(load: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the text columns of a task that `load_task` loads with these arguments; none if it has no table."""
    name = str(load.get("name", ""))
    if name in PUBLISHED:
        return PUBLISHED[name].text
    return tuple(load.get("text") or ()) or (("sentence",) if is_a_path(name) else ())


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
    published = [TaskEntry(name, one.kind, one.metric, one.rows, one.about) for name, one in PUBLISHED.items()]
    return entries + published
