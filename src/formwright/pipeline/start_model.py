"""What the training of one model starts from: rows, a design or a pretrained model, and a teacher."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.arch.card import Card
from formwright.arch.layers import TokenEmbedding
from formwright.core.errors import IllegalInput
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel, refuse_head
from formwright.pipeline.designs import NamedCard, find
from formwright.pipeline.run_folder import refuse_run_folder
from formwright.pipeline.task_choice import TaskChoice
from formwright.tasks import FROM_DATA, TASKS, load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.row_length import FROM_SCRATCH, LEAST, PIECES, PRETRAINED
from formwright.tasks.rows import ImageRows, PlainText
from formwright.tasks.task import Task, contents
from formwright.tasks.tokeniser import Tokeniser, texts_of, train_wordpiece
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import Training, fresh_model, head_of, with_weights
from formwright.train.prepare import Prepared, prepare, tokeniser_for, usual_length
from formwright.train.pretrain import plain_text, sentence_pairs
from formwright.train.task_head import head_fits, replaced_head, task_model

if TYPE_CHECKING:
    from formwright.pipeline.model_training import Pretraining
    from formwright.pipeline.train_model import TrainModel


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
        return weights_digest(self.imported.weights)

    def model(self) -> TaskModel:
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


@dataclass(frozen=True, eq=False)
class StartModel:
    """A design and a task; `imported` is the pretrained model that the design came from, if any.

    `text` is what it is pretrained on first, `tokeniser` is None for images. `replaced` says why the head of a
    pretrained model is not kept.
    """

    name: str
    card: Card
    task: Task
    tokeniser: Tokeniser | None
    settings: Settings
    imported: Imported | None = None
    text: PlainText | None = None
    teacher: Teacher | None = None
    replaced: str = ""

    @property
    def from_scratch(self) -> bool:
        """Tell whether there are no trained weights to begin with."""
        return self.imported is None

    def prepared(self, length: int) -> Prepared:
        """Encode the rows of the task; those of the same length are encoded once."""
        return prepare(self.task, self.card, length, self.tokeniser)

    def digests(self) -> dict[str, Any]:
        """Give digests of the content of everything that a training starts from."""
        return {
            "card": self.card.digest,
            **contents(self.task),
            "text of pretraining": None if self.text is None else self.text.digest,
            "tokeniser": None if self.tokeniser is None else self.tokeniser.digest,
            "weights": None if self.imported is None else weights_digest(self.imported.weights),
            "teacher": None if self.teacher is None else self.teacher.digest,
        }

    def model(self, prepared: Prepared, training: Training, pretrained: Mapping[str, Any] | None = None) -> TaskModel:
        """Build the model that training begins with; `pretrained` weights go below a fresh head."""
        if self.imported is not None:
            return task_model(self.imported, prepared, training)
        model = fresh_model(self.card, prepared, training)
        return model if pretrained is None else with_weights(model, pretrained)

    def usual_length(self, *, of_pieces: bool) -> int:
        """Take the length of a row from the data; with `of_pieces`, enough for the text of pretraining."""
        if self.imported is not None:
            return usual_length(self.task, self.card, PRETRAINED, self.tokeniser)
        length = usual_length(self.task, self.card, FROM_SCRATCH, self.tokeniser, PIECES if of_pieces else LEAST)
        read = None if self.teacher is None else self.teacher.imported.card.stacks[0].embedding
        return min(length, read.length) if isinstance(read, TokenEmbedding) else length


def read_start(stage: "TrainModel", task: Task) -> StartModel:
    """Read what a stage trains, and its teacher; refuse what does not fit the task."""
    teacher = None if stage.distillation is None else read_teacher(stage.distillation.teacher, task)
    if isinstance(stage.source, str) and os.path.isdir(stage.source):
        start = _from_folder(stage.source, stage.pretraining, task)
    else:
        start = _from_card(stage, task, teacher)
    return replace(start, teacher=teacher)


def _from_card(stage: "TrainModel", task: Task, teacher: Teacher | None) -> StartModel:
    found = find(stage.source) if isinstance(stage.source, str) else _given(stage.source)
    if not isinstance(found, NamedCard):
        raise IllegalInput(f"{stage.source} is a search space; train one of its designs, or a published card")
    card = found.card
    refuse_head(card, head_of(task))
    text = None if stage.pretraining is None else _text(stage.pretraining, card, task, stage)
    if teacher is not None and teacher.tokeniser is not None:
        tokeniser: Tokeniser | None = teacher.tokeniser  # a design without weights reads whatever its teacher reads
    elif task.kind == "image-classification":
        tokeniser = None
    else:
        tokeniser = tokeniser_for(task, card) if text is None else _shared_tokeniser(card, task, text)
    return StartModel(found.name, card, task, tokeniser, Settings(), text=text)


def _given(data: Mapping[str, Any]) -> NamedCard:
    card = Card.from_json(data)
    return NamedCard(f"card-{card.digest[:8]}", card)


def _from_folder(source: str, pretraining: "Pretraining | None", task: Task) -> StartModel:
    folder = Path(source)
    if pretraining is not None:
        raise IllegalInput(f"{source} is a pretrained model; pretraining is for cards, which have no weights")
    refuse_run_folder(folder)
    imported = from_hf(folder)
    replaced = replaced_head(imported, task, folder)
    refuse_head(imported.card, head_of(task))
    tokeniser = None if task.kind == "image-classification" else read_tokeniser(folder)
    return StartModel(folder.name, imported.card, task, tokeniser, imported.settings, imported, replaced=replaced)


def _text(pretraining: "Pretraining", card: Card, task: Task, stage: "TrainModel") -> PlainText:
    refuse_head(card, HeadSpec("masked-lm"))
    name = "pydoc/masked" if pretraining.text == "pydoc" else pretraining.text
    text = plain_text((task if name == "self" else _other_task(name, stage.task)).search_view().train)
    if pretraining.next_sentence:
        sentence_pairs(text, stage.seed)  # refuses text without any
    return text


def _other_task(name: str, choice: TaskChoice | Task) -> Task:
    """Find a task besides the one that is trained on, with those of its options that have a use here."""
    if not isinstance(choice, TaskChoice) or name in TASKS.names():
        return load_task(name)
    if name in FROM_DATA:
        return load_task(name, None if choice.data is None else Path(choice.data))
    return load_task(name, text=choice.text, label=choice.label)


def _shared_tokeniser(card: Card, task: Task, text: PlainText) -> Tokeniser:
    both = PlainText((*text.texts, *plain_text(task.search_view().train).texts))
    embedding = card.stacks[0].embedding
    assert isinstance(embedding, TokenEmbedding), "designs without words are refused before"
    return train_wordpiece(both, embedding.vocabulary)
