"""GLUE's nine tasks, from a folder in the official layout or from the Hugging Face hub."""

from dataclasses import dataclass, replace
from pathlib import Path

from formwright.core.errors import IllegalInput
from formwright.core.extras import need
from formwright.tasks.hub import hub_table, hub_tables
from formwright.tasks.labels import Labelling
from formwright.tasks.rows import Splits, TextRows
from formwright.tasks.splitting import hold_out
from formwright.tasks.tables import read_table
from formwright.tasks.task import Task
from formwright.tasks.text_files import data_folder, find_file


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

_SUBSETS = {"train": "train_subset", "dev": "heldout_from_train"}  # parts of the official training set
_HUB = "nyu-mll/glue"


@dataclass(frozen=True)
class GlueRows:
    """Read a task of GLUE from its training and dev files, or without files from the Hugging Face hub."""

    name: str
    files: tuple[Path, Path] | None
    official_dev: bool

    def __call__(self) -> Splits[TextRows]:
        spec = GLUE[self.name]
        labelling = spec.labelling
        if self.files is None:
            found = hub_tables(_HUB, self.name, f"give the folder of {spec.folder} with --data DIR")
            splits, text = ("train", "validation" + spec.dev.removeprefix("dev")), spec.hub_text or spec.text
            train, dev = (hub_table(found, split, text, "label") for split in splits)
            labelling = replace(labelling, written=())  # the hub writes classes by name
        else:
            columns = (*spec.text, spec.label)
            train, dev = (read_table(file, columns, spec.header, spec.broken) for file in self.files)
        what = "official dev set" if len(dev) == spec.dev_rows else f"dev set (officially {spec.dev_rows:,} rows)"
        if self.files is not None and not _is_official(self.files[1]):
            what = f"file {self.files[1].name} (not the official dev set)"
        made = hold_out(labelling.rows(train), labelling.rows(dev), what, dev.where, self.official_dev)
        left_out = train.left_out + dev.left_out
        return replace(made, division=f"{made.division}; broken rows left out: {left_out}") if left_out else made


def glue_task(name: str, data: Path | None = None, official_dev: bool = False) -> Task:
    """Make the GLUE task `name` (`sst2`) from its folder or the parent folder, or else from the hub.

    The test files of GLUE have no labels, so the official dev set is halved by a fixed seed into validation and test;
    with `official_dev` all of it is the validation set, as in publications, and there is no test.
    """
    spec, files, about = GLUE[name], None, GLUE[name].about
    if data is None:
        need("datasets", "hub")  # before anything is planned
    else:
        folder = data_folder(data, spec.folder)
        train, dev = (
            find_file(folder, f"{part} set of glue/{name}", f"{stem}.tsv", f"{_SUBSETS[part]}.tsv")
            for part, stem in (("train", "train"), ("dev", spec.dev))
        )
        if official_dev and not _is_official(dev):
            raise IllegalInput(
                f"{folder} lacks the official dev set, {spec.dev}.tsv or {spec.dev}.tsv.gz: {dev.name} is a part of "
                "the training set"
            )
        parts = [file.name for file in (train, dev) if not _is_official(file)]
        about += "".join(f"; {part} is a part of the official training set" for part in parts)
        files = (train, dev)
    kind, labels, metrics = spec.labelling.kind, spec.labelling.names, spec.metrics
    source = GlueRows(name, files, official_dev)
    return Task(f"glue/{name}", kind, metrics[0], source, metrics, labels, spec.chance, about)


def _is_official(file: Path) -> bool:
    return file.name.split(".")[0] not in _SUBSETS.values()
