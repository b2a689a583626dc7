"""The fine-tuned teacher of a distillation, and why one may be refused."""

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from formwright.arch.card import Card
from formwright.arch.layers import TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.task_model import TaskModel
from formwright.pipeline.run_folder import refuse_run_folder
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import ImageRows
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, texts_of
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import head_of
from formwright.train.prepare import Prepared
from formwright.train.task_head import head_fits

_COMPARED = 100  # texts that are encoded with both tokenisers, to see whether they agree
_OF_WORDS = ("masked-lm", "causal-lm", "seq2seq-lm")  # kinds of tasks with a score for every token of the vocabulary


@dataclass(frozen=True, eq=False)
class Teacher:
    """A model fine-tuned on the task; `tokeniser` is None for images."""

    folder: Path
    imported: Imported
    tokeniser: Tokeniser | None

    @property
    def digest(self) -> str:
        """Give the digest of its weights."""
        return weights_digest(self.imported.weights)

    def model(self) -> TaskModel:
        """Build the model."""
        model = self.imported.model()
        assert isinstance(model, TaskModel), "a teacher without a head is refused before"
        return model

    def refuse_for(self, card: Card, prepared: Prepared) -> None:
        """Refuse a student that reads other tokens, or more of them, or that scores another number."""
        if prepared.tokeniser is None or self.tokeniser is None:
            return
        if not _alike(prepared, self.tokeniser):
            raise IllegalInput(
                f"the tokeniser in {self.folder} is another than the student's, so that they read different tokens; "
                "take a teacher that was fine-tuned from the model that the student came from"
            )
        table = self.imported.card.stacks[0].embedding
        if isinstance(table, TokenEmbedding) and table.length < prepared.length:
            raise IllegalInput(
                f"the teacher in {self.folder} reads {table.length} tokens, the student {prepared.length}; "
                f"give --length {table.length}"
            )
        words, own = _words(self.imported.card), _words(card)
        if prepared.task.kind in _OF_WORDS and words != own:
            raise IllegalInput(
                f"the teacher in {self.folder} gives scores to {words} tokens, the student to {own}; "
                "take a student whose design has room for as many tokens"
            )


def read_teacher(name: str, task: Task) -> Teacher:
    """Read the teacher of a task from its folder; refuse one whose head is not for this task."""
    folder = Path(name)
    if not os.path.isdir(folder):
        raise IllegalInput(f"a teacher is the folder of a fine-tuned model, and there is no folder {name}")
    refuse_run_folder(folder)
    imported = from_hf(folder)
    if not head_fits(imported, task):
        raise IllegalInput(f"the model in {name} cannot teach {task.name}: {_why(imported, task)}")
    return Teacher(folder, imported, None if task.kind == "image-classification" else read_tokeniser(folder))


def _words(card: Card) -> int | None:
    """Give the size of the vocabulary that a card generates; a tokeniser may have fewer tokens."""
    table = card.stacks[-1].embedding
    return table.vocabulary if isinstance(table, TokenEmbedding) else None


def _why(imported: Imported, task: Task) -> str:
    wanted = head_of(task)
    if imported.head is None:
        return f"it has no head; fine-tune it first with `formwright train FOLDER --task {task.name}`"
    if imported.head.task != wanted.task:
        return f"its head is for {imported.head.task}, the task is {task.kind}"
    if imported.head.labels != wanted.labels:
        return f"it answers with {imported.head.labels} labels, the task has {wanted.labels}"
    if imported.head.multi_label != wanted.multi_label:
        gives = "any number of labels" if imported.head.multi_label else "one class"
        return f"it gives {gives} for a row, and the task is {task.kind}"
    return f"its labels are {', '.join(imported.labels)}, those of the task {', '.join(task.labels)}"


def _alike(prepared: Prepared, other: Tokeniser) -> bool:
    own, rows = prepared.text_tokeniser, prepared.train.rows
    assert not isinstance(rows, ImageRows)
    texts = list(islice(dict.fromkeys(texts_of(rows)), _COMPARED))
    same_roles = own.special == other.special and own.types == other.types
    return same_roles and own.size == other.size and own.encode(texts) == other.encode(texts)
