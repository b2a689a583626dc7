"""A kind of data, in one record: its rows, examples, batches, head, loss, metrics, judge and predictions.

Everything that depends on the kind of a task asks its record: `kind_of(task).loss(scores, batch)`. Other packages add
a kind by an entry point in `formwright.kinds`, and `formwright.testing.kind_contract` checks it. A record is read
without torch: functions that need it are imported when they are called (`formwright.core.registry.Late`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.registry import Late, Registry
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.tables import Cells, WholeTable, read_whole_table, written_table

if TYPE_CHECKING:
    from formwright.tasks.task import Task

_CLASSES, _DISTILLED = Late("formwright.train.losses:classes"), Late("formwright.train.distil:classes_distillation")
_ENCODE, _SHUFFLED = Late("formwright.tasks.encode:encode_rows"), Late("formwright.train.streams:shuffled_stream")
_WORDPIECE = Late("formwright.tasks.tokeniser:train_wordpiece")
Pairs = Mapping[str, tuple[Any, Any]]  # by metric: predictions and truth


@dataclass(frozen=True, kw_only=True)
class Kind:
    """All that one kind of data needs, from a user's files to a model's predictions. Most fields have a default."""

    name: str
    about: str  # in a few words, for `formwright list kinds`

    # FILES: from what a user names to a task

    short: str = ""  # the name for `--task-kind`
    # `suits(path)` says why a path seems to be of this kind; empty if it does not
    suits: Callable[[Path], str] | None = None
    # `own_task(path, text=, label=, official_dev=)` makes the task
    own_task: "Callable[..., Task] | None" = None
    # whether a row of a table may be one step of a row of the task: `own_task` then takes `series=` too, the column
    # that names the row of the task
    in_steps: bool = False
    # whether the columns of a dataset of the Hugging Face hub can be such rows: texts with labels
    in_hub: bool = False
    # whether labels are names that a model must tell apart; such rows are divided class by class
    classes: bool = False

    # ROWS: from rows to batches

    # `train_tokeniser(rows, size)` makes a tokeniser of the training rows
    train_tokeniser: Callable[[Any, int], Any] = _WORDPIECE
    # for kinds without tokens, what is fitted to the training rows instead; it is written into the folder of a model
    # and read back
    preprocessor: type[Preprocessor] | None = None
    # words in texts that every tokeniser must read as tokens
    markers: tuple[str, ...] = ()
    # `examples(rows, tokeniser or preprocessor, length)` makes arrays: an object with a length, `labels` (or None),
    # `lengths` of its rows in tokens, and `uncut`, their lengths before truncation (None if nothing is ever truncated)
    examples: Callable[..., Any] = _ENCODE
    # whether long rows are truncated, or, with `windows`, read in several parts
    cuts: bool = True
    windows: bool = False
    # `fewer(examples, tokens, most)` names the option by which a row of some number of tokens has at most `most`
    fewer: Callable[[Any, int, int], str] | None = None
    # `batch(examples, numbers)` makes the batch of some rows
    batch: Callable[..., Any]
    # `stream(prepared, order)` returns the batches of training in a given order; by default those that `batch` makes
    stream: Callable[..., Any] = _SHUFFLED
    # names in `formwright.train.hyperparameters.AUGMENTATIONS` of the changes that training may make to the inputs
    augmentations: tuple[str, ...] = ()

    # MODEL: which designs read the rows, and what they learn

    # what a design must read: the type of its embedding (`tokens`, `patches`, `frames`)
    reads: str = "tokens"
    # `check(rows, embedding)` says why an embedding cannot read the rows, if so
    check: Callable[[Any, Any], str] | None = None
    # `remark(rows, embedding)` says what an embedding loses of the rows
    remark: Callable[[Any, Any], str] | None = None
    # the name of a head in `formwright.arch.heads`; it has `outputs` outputs, or one for each label of the task
    head: str
    outputs: int | None = None
    multi_label: bool = False  # whether a row may have several labels, or none
    # whether the model scores every token of the vocabulary
    of_words: bool = False
    # whether scores are (batch, tokens, ...)
    per_token: bool = False
    # `loss(scores, batch)` is what training minimises
    loss: Callable[..., Any] = _CLASSES
    # `distillation_loss(answers, batch, temperature)` is the distance of a student's scores from its teacher's
    distillation_loss: Callable[..., Any] = _DISTILLED
    # whether a model can be pretrained on such rows, by filling in masked tokens
    pretrainable: bool = False

    # SCORES: how well a model does

    # the usual metrics, of which the first decides
    metrics: tuple[str, ...]
    # metrics that are added for two labels
    binary_metrics: tuple[str, ...] = ()
    # `judge(model, prepared, part)` returns predictions and truth by metric
    judge: Callable[..., Pairs]
    # `answer(scores)` returns the answers to a batch, for kinds with one answer a row
    answer: Callable[[Any], Any] | None = None
    # `baseline(prepared, part)` describes the best answer that ignores the input and returns its predictions; None if
    # there is none
    baseline: Callable[..., tuple[str, Pairs] | None]
    # `constant(train labels, names)` describes the best constant answer and returns it
    constant: Callable[[NDArray[Any], Sequence[str]], tuple[str, Any]] | None = None
    # whether the ONNX and OpenVINO files of its models can be judged
    in_files: bool = False

    # PREDICTIONS: rows without answers

    # `read(path, columns)` reads rows from a file or a folder, in a form of its own or as a table; `columns` are those
    # of text, or of labels and series to leave out
    read: Callable[[Path, Sequence[str]], WholeTable] = read_whole_table
    # the columns of text of a table, if the model was trained on none
    columns: tuple[str, ...] = ()
    # `unlabelled(texts)` makes rows of what was read
    unlabelled: Callable[[Sequence[Any]], Any] | None = None
    # `predict(model, prepared, part, evaluation)` returns for each row a prediction and its probability (or None);
    # `evaluation` is what the model's folder records
    predict: Callable[..., list[tuple[Any, Any]]] | None = None
    # `write(rows, names, form)` writes rows with their predictions, as a table or in the form of its own called `form`
    write: Callable[[Sequence[Cells], Sequence[str], str], str] = written_table
    form: str = ""

    @property
    def has_tokens(self) -> bool:
        """Return whether its rows become tokens, so that its models need a tokeniser."""
        return self.reads == "tokens"

    def read_tokeniser(self, folder: Path, card: Card) -> Any:
        """Read what makes arrays of rows for the model in a folder: its tokeniser or its preprocessor."""
        if self.preprocessor is not None:
            return self.preprocessor.read(folder, card.stacks[0].embedding)
        return read_tokeniser(folder) if self.has_tokens else None

    def metrics_of(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return the metrics of a table with these labels."""
        return (*self.metrics, *(self.binary_metrics if len(labels) == 2 else ()))

    def constant_answers(self, train: NDArray[Any], labels: Sequence[str], rows: int) -> tuple[str, NDArray[Any]]:
        """Describe the constant answer that suits the training labels best, and give it to some rows."""
        assert self.constant is not None
        description, answer = self.constant(train, labels)
        return description, np.broadcast_to(answer, (rows, *np.shape(answer)))


_TEXT = "formwright.tasks.text_kinds"
KINDS: Registry[Kind] = Registry(
    "kind",
    {
        "sequence-classification": f"{_TEXT}:SEQUENCE_CLASSIFICATION",
        "multi-label-classification": f"{_TEXT}:MULTI_LABEL",
        "regression": f"{_TEXT}:REGRESSION",
        "span-extraction": f"{_TEXT}:SPAN_EXTRACTION",
        "relation-classification": f"{_TEXT}:RELATION_CLASSIFICATION",
        "token-classification": f"{_TEXT}:TOKEN_CLASSIFICATION",
        "masked-lm": f"{_TEXT}:MASKED_LM",
        "causal-lm": f"{_TEXT}:CAUSAL_LM",
        "seq2seq-lm": f"{_TEXT}:SEQ2SEQ_LM",
        "image-classification": "formwright.tasks.image_kinds:IMAGE_CLASSIFICATION",
        "frame-classification": "formwright.tasks.frame_kinds:FRAME_CLASSIFICATION",
    },
    "formwright.kinds",
    Kind,
)


def own_kinds() -> dict[str, Kind]:
    """Return the kinds that a user's own files can have, by the names for `--task-kind`."""
    return {kind.short: kind for kind in map(KINDS.get, KINDS.names()) if kind.own_task is not None}


def kind_named(name: str) -> Kind | None:
    """Return the kind that `--task-kind` names; None where nothing was named."""
    known = own_kinds()
    if name and name not in known:
        raise UnknownName("task kind", name, known)
    return known[name] if name else None


def kind_in_steps() -> Kind:
    """Return the kind of a table of which a row is one step, where `--series` is given and no kind is named."""
    found = {short: kind for short, kind in own_kinds().items() if kind.in_steps}
    if len(found) != 1:
        raise IllegalInput(f"--series suits several kinds: {', '.join(found)}; name one with --task-kind")
    return next(iter(found.values()))


def guess_words(kind: Kind, reason: str) -> str:
    """Say which kind was guessed, why, and how to say otherwise."""
    return f"guessed as {kind.short}, because {reason}; --task-kind overrides this"


def kind_of(task: "Task") -> Kind:
    """Return the record of a task's kind."""
    return KINDS.get(task.kind)
