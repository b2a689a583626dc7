"""What each of GLUE's tasks is: its files, columns, classes and metrics."""

from dataclasses import dataclass

from formwright.tasks.labels import Labelling

_PAIR = ("sentence1", "sentence2")
_NUMBERS = ("0", "1")


def _classes(*names: str, written: tuple[str, ...] = ()) -> Labelling:
    return Labelling("sequence-classification", names, written)


@dataclass(frozen=True)
class Glue:
    """Describe a task: the columns of its official files, and the texts by the hub's names where those differ.

    `chance` is what the commonest class reaches in the official dev set, which has `dev_rows` rows. Files without
    headings have `header`; in files that are `broken`, line breaks within a text have torn some rows apart.
    """

    name: str
    folder: str
    text: tuple[str, ...]
    label: str
    labelling: Labelling
    metrics: tuple[str, ...]
    chance: float
    dev_rows: int
    about: str
    header: tuple[str, ...] = ()
    dev: str = "dev"
    broken: bool = False
    hub_text: tuple[str, ...] = ()


_SPECS = (
    Glue(
        "cola",
        "CoLA",
        text=("sentence",),
        label="label",
        labelling=_classes("unacceptable", "acceptable", written=_NUMBERS),
        metrics=("matthews", "accuracy"),
        chance=0.0,
        dev_rows=1043,
        about="acceptability of a sentence",
        header=("source", "label", "mark", "sentence"),
    ),
    Glue(
        "sst2",
        "SST-2",
        text=("sentence",),
        label="label",
        labelling=_classes("negative", "positive", written=_NUMBERS),
        metrics=("accuracy",),
        chance=444 / 872,
        dev_rows=872,
        about="sentiment of a sentence from a film review",
    ),
    Glue(
        "mrpc",
        "MRPC",
        text=("#1 String", "#2 String"),
        label="Quality",
        labelling=_classes("not_equivalent", "equivalent", written=_NUMBERS),
        metrics=("accuracy", "f1"),
        chance=279 / 408,
        dev_rows=408,
        about="do two sentences of the news say the same",
        hub_text=_PAIR,
    ),
    Glue(
        "stsb",
        "STS-B",
        text=_PAIR,
        label="score",
        labelling=Labelling("regression", within=(0.0, 5.0)),
        metrics=("pearson", "spearman"),
        chance=0.0,
        dev_rows=1500,
        about="similarity of two sentences from 0 to 5",
    ),
    Glue(
        "mnli",
        "MNLI",
        text=_PAIR,
        label="gold_label",
        labelling=_classes("entailment", "neutral", "contradiction"),
        metrics=("accuracy",),
        chance=3479 / 9815,
        dev_rows=9815,
        about="does a premise entail a hypothesis, leave it open or contradict it (matched genres)",
        dev="dev_matched",
        hub_text=("premise", "hypothesis"),
    ),
    Glue(
        "rte",
        "RTE",
        text=_PAIR,
        label="label",
        labelling=_classes("entailment", "not_entailment"),
        metrics=("accuracy",),
        chance=146 / 277,
        dev_rows=277,
        about="does a text entail a hypothesis",
    ),
    Glue(
        "qnli",
        "QNLI",
        text=("question", "sentence"),
        label="label",
        labelling=_classes("entailment", "not_entailment"),
        metrics=("accuracy",),
        chance=0.505,
        dev_rows=5463,
        about="does a sentence answer a question",
    ),
    Glue(
        "qqp",
        "QQP",
        text=("question1", "question2"),
        label="is_duplicate",
        labelling=_classes("not_duplicate", "duplicate", written=_NUMBERS),
        metrics=("accuracy", "f1"),
        chance=0.632,
        dev_rows=40430,
        about="do two questions ask the same",
        broken=True,
    ),
    Glue(
        "wnli",
        "WNLI",
        text=_PAIR,
        label="label",
        labelling=_classes("not_entailment", "entailment", written=_NUMBERS),
        metrics=("accuracy",),
        chance=40 / 71,
        dev_rows=71,
        about="does a sentence with its pronoun replaced follow from the original",
    ),
)
GLUE = {spec.name: spec for spec in _SPECS}
