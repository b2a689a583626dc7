"""GLUE's nine tasks, from a folder in the official layout or from the Hugging Face hub."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.tasks.hub import check_datasets, hub_table, hub_tables
from formwright.tasks.labels import Labelling
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.splitting import hold_out
from formwright.tasks.tables import Table, read_table
from formwright.tasks.task import Task


def _classes(*names: str) -> Labelling:
    return Labelling("sequence-classification", names)


def _numbered(*names: str) -> Labelling:
    """Return the labels of a task whose files number its two classes."""
    return Labelling("sequence-classification", names, written=("0", "1"))


@dataclass(frozen=True)
class Glue:
    """A GLUE task: the columns of its official files, and the text columns of the hub if they differ.

    `chance` is the score of the majority class on the official dev set of `dev_rows` rows. `header` is for files that
    lack one; in `broken` files, line breaks within a text have split some rows.
    """

    name: str
    folder: str
    text: tuple[str, ...]
    label: str
    labelling: Labelling
    metrics: tuple[str, ...]
    chance: float
    dev_rows: int
    header: tuple[str, ...] = ()
    dev: str = "dev"
    broken: bool = False
    hub_text: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return _ABOUT[self.name]


_ABOUT = {
    "cola": "acceptability of a sentence",
    "sst2": "sentiment of a sentence from a film review",
    "mrpc": "do two sentences of the news say the same",
    "stsb": "similarity of two sentences from 0 to 5",
    "mnli": "does a premise entail a hypothesis, leave it open or contradict it (matched genres)",
    "rte": "does a text entail a hypothesis",
    "qnli": "does a sentence answer a question",
    "qqp": "do two questions ask the same",
    "wnli": "does a sentence with its pronoun replaced follow from the original",
}
_PAIR, _ONE, _ACCURACY = ("sentence1", "sentence2"), ("sentence",), ("accuracy",)
_SCORES = Labelling("regression", within=(0.0, 5.0))
_COLA, _COLA_HEADER = _numbered("unacceptable", "acceptable"), ("source", "label", "mark", "sentence")
_SST2 = _numbered("negative", "positive")
_MRPC, _MRPC_TEXT = _numbered("not_equivalent", "equivalent"), ("#1 String", "#2 String")
_MNLI, _MNLI_HUB = _classes("entailment", "neutral", "contradiction"), ("premise", "hypothesis")
_RTE = _classes("entailment", "not_entailment")
_QQP, _QQP_TEXT = _numbered("not_duplicate", "duplicate"), ("question1", "question2")
_WNLI = _numbered("not_entailment", "entailment")
_SPECS = (
    Glue("cola", "CoLA", _ONE, "label", _COLA, ("matthews", "accuracy"), 0.0, 1043, header=_COLA_HEADER),
    Glue("sst2", "SST-2", _ONE, "label", _SST2, _ACCURACY, 444 / 872, 872),
    Glue("mrpc", "MRPC", _MRPC_TEXT, "Quality", _MRPC, ("accuracy", "f1"), 279 / 408, 408, hub_text=_PAIR),
    Glue("stsb", "STS-B", _PAIR, "score", _SCORES, ("pearson", "spearman"), 0.0, 1500),
    Glue(
        "mnli", "MNLI", _PAIR, "gold_label", _MNLI, _ACCURACY, 3479 / 9815, 9815, dev="dev_matched", hub_text=_MNLI_HUB
    ),
    Glue("rte", "RTE", _PAIR, "label", _RTE, _ACCURACY, 146 / 277, 277),
    Glue("qnli", "QNLI", ("question", "sentence"), "label", _RTE, _ACCURACY, 0.505, 5463),
    Glue("qqp", "QQP", _QQP_TEXT, "is_duplicate", _QQP, ("accuracy", "f1"), 0.632, 40430, broken=True),
    Glue("wnli", "WNLI", _PAIR, "label", _WNLI, _ACCURACY, 40 / 71, 71),
)
GLUE = {spec.name: spec for spec in _SPECS}

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
        spec = GLUE[self.name]
        found = hub_tables(_HUB, self.name, f"give the folder of {spec.folder} with --data DIR")
        dev = "validation" + spec.dev.removeprefix("dev")
        text = spec.hub_text or spec.text
        train, validation = (hub_table(found, split, text, "label") for split in ("train", dev))
        labelling = replace(spec.labelling, written=())  # the hub writes classes by name
        return _splits(labelling, train, validation, _called(spec, validation), self.official_dev)


def glue_task(name: str, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the GLUE task `name` (`sst2`) from its folder or the parent folder, or else from the hub.

    The test files of GLUE have no labels, so the official dev set is halved by a fixed seed into validation and test;
    with `official_dev` all of it is the validation set, as in publications, and there is no test.
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
    kind, labels, metrics = spec.labelling.kind, spec.labelling.names, spec.metrics
    return Task(f"glue/{spec.name}", kind, metrics[0], source, metrics, labels, spec.chance, spec.about + notes)


def _splits(labelling: Labelling, train: Table, dev: Table, what: str, official_dev: bool) -> Splits[TextRows]:
    splits = hold_out(labelling.rows(train), labelling.rows(dev), what, dev.where, official_dev)
    left_out = train.left_out + dev.left_out
    return replace(splits, division=f"{splits.division}; broken rows left out: {left_out}") if left_out else splits


def _called(spec: Glue, dev: Table) -> str:
    return "official dev set" if len(dev) == spec.dev_rows else f"dev set (officially {spec.dev_rows:,} rows)"


def _folders(data: Path, spec: Glue) -> tuple[Path, ...]:
    """List the folders to search: the task's own folder within the given one, and the given one."""
    data = Path(os.path.abspath(data))
    if not os.path.isdir(data):  # unlike `Path.is_dir`, returns false for a name that is too long
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
