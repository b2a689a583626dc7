"""GLUE's nine tasks, from a folder in the official layout or from the Hugging Face hub."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.tasks.divide import hold_out
from formwright.tasks.glue_specs import GLUE, Glue
from formwright.tasks.hub import check_datasets, hub_table, hub_tables
from formwright.tasks.labels import Labelling
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.tables import Table, read_table
from formwright.tasks.task import Task

_SUFFIXES = (".tsv", ".tsv.gz")
_SUBSETS = {"train": "train_subset", "dev": "heldout_from_train"}  # parts of the official training set
_HUB = "nyu-mll/glue"


@dataclass(frozen=True)
class GlueFiles:
    """Read a task of GLUE from its training and dev files."""

    name: str
    train: Path
    dev: Path
    official_dev: bool

    def __call__(self) -> Splits[TextRows]:
        """Return all rows."""
        spec = GLUE[self.name]
        columns = (*spec.text, spec.label)
        train, dev = (read_table(file, columns, spec.header, spec.broken) for file in (self.train, self.dev))
        what = _called(spec, dev) if _is_official(self.dev) else f"file {self.dev.name} (not the official dev set)"
        return _splits(spec.labelling, train, dev, what, self.official_dev)


@dataclass(frozen=True)
class GlueHub:
    """Fetch a task of GLUE from the Hugging Face hub."""

    name: str
    official_dev: bool

    def __call__(self) -> Splits[TextRows]:
        """Return all rows."""
        spec = GLUE[self.name]
        found = hub_tables(_HUB, self.name, f"give the folder of {spec.folder} with --data DIR")
        dev = "validation" + spec.dev.removeprefix("dev")
        text = spec.hub_text or spec.text
        train, validation = (hub_table(found, split, text, "label") for split in ("train", dev))
        labelling = replace(spec.labelling, written=())  # the hub writes classes by name
        return _splits(labelling, train, validation, _called(spec, validation), self.official_dev)


def glue_task(name: str, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the GLUE task `name` (`sst2`): from the task's folder, or one that holds it; else from the hub.

    The test files of GLUE have no labels, so the official dev set is halved by a fixed seed into validation and test;
    with `official_dev` all of it is for validation, as in publications, and there is no test.
    """
    spec = GLUE[name]
    if data is None:
        check_datasets()
        return _described(spec, GlueHub(name, official_dev))
    folders = _folders(data, spec)
    train, dev = _file(folders, spec, "train", "train"), _file(folders, spec, "dev", spec.dev)
    if official_dev and not _is_official(dev):
        names = " or ".join(spec.dev + suffix for suffix in _SUFFIXES)
        raise IllegalInput(
            f"{dev.parent} lacks the official dev set, {names}: {dev.name} is a part of the training set"
        )
    notes = [f"; {file.name} is a part of the official training set" for file in (train, dev) if not _is_official(file)]
    return _described(spec, GlueFiles(name, train, dev, official_dev), "".join(notes))


def _described(spec: Glue, source: GlueFiles | GlueHub, notes: str = "") -> Task:
    labelling = spec.labelling
    metrics, about = spec.metrics, spec.about + notes
    return Task(f"glue/{spec.name}", labelling.kind, metrics[0], source, metrics, labelling.names, spec.chance, about)


def _splits(labelling: Labelling, train: Table, dev: Table, what: str, official_dev: bool) -> Splits[TextRows]:
    splits = hold_out(labelling.rows(train), labelling.rows(dev), what, dev.where, official_dev)
    left_out = train.left_out + dev.left_out
    return replace(splits, division=f"{splits.division}; broken rows left out: {left_out}") if left_out else splits


def _called(spec: Glue, dev: Table) -> str:
    return "official dev set" if len(dev) == spec.dev_rows else f"dev set (officially {spec.dev_rows:,} rows)"


def _folders(data: Path, spec: Glue) -> tuple[Path, ...]:
    """List where the files may be: in the task's own folder within the one given, or in the one given."""
    data = Path(os.path.abspath(data))
    if not os.path.isdir(data):  # says no to a name that is too long
        state = "a file" if os.path.exists(data) else "not there"
        raise IllegalInput(f"{data} is {state}; expected the folder {spec.folder} of GLUE, or one that holds it")
    inner = data / spec.folder
    return (inner,) if inner.is_dir() else (data,) if data.name == spec.folder else (inner, data)


def _file(folders: tuple[Path, ...], spec: Glue, part: str, stem: str) -> Path:
    names = [name + suffix for name in (stem, _SUBSETS[part]) for suffix in _SUFFIXES]
    for path in (folder / name for folder in folders for name in names):
        if path.exists():
            return path
    places = " and in ".join(str(folder) for folder in folders)
    raise IllegalInput(f"no {part} set of glue/{spec.name}: looked in {places} for {', '.join(names)}")


def _is_official(file: Path) -> bool:
    return file.name.split(".")[0] not in _SUBSETS.values()
