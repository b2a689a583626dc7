"""Where a training run begins: the task, the card, and the weights it starts from."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.arch.card import Card
from formwright.arch.layers import TokenEmbedding
from formwright.cli.named import NamedCard, find
from formwright.cli.output import note
from formwright.cli.record import RECORD
from formwright.cli.train_teacher import Teacher, read_teacher
from formwright.core.errors import IllegalInput
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.final import Tested
from formwright.nn.heads import HeadSpec, refuse_head
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings
from formwright.nn.task_model import TaskModel
from formwright.study.conclusion import score_facts
from formwright.tasks import FROM_DATA, TASKS, load_task
from formwright.tasks.contents import contents
from formwright.tasks.evidence import Evidence
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.row_length import FROM_SCRATCH, LEAST, PIECES, PRETRAINED
from formwright.tasks.rows import PlainText
from formwright.tasks.shorten import shortened
from formwright.tasks.task import Task
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece
from formwright.train.fit import Training, fresh_model, head_of, with_weights
from formwright.train.imported import replaced_head, task_model
from formwright.train.next_sentence import sentence_pairs
from formwright.train.prepare import Prepared, prepare, usual_length
from formwright.train.pretrain import plain_text
from formwright.train.recipe import Recipe
from formwright.train.streams import Shuffled, lengths_of
from formwright.train.weights_digest import weights_digest

if TYPE_CHECKING:
    from formwright.cli.train_job import Job
    from formwright.nn.hf.imported import Imported


@dataclass(frozen=True)
class Start:
    """A design, the task in arrays, and the pretrained model that it came from, if any."""

    name: str
    card: Card
    prepared: Prepared
    settings: Settings
    imported: "Imported | None" = None
    text: PlainText | None = None
    teacher: Teacher | None = None

    @property
    def from_scratch(self) -> bool:
        """Tell whether there are no trained weights to begin with."""
        return self.imported is None

    @property
    def pretraining_text(self) -> PlainText:
        """Give the text to pretrain on."""
        assert self.text is not None
        return self.text

    def digests(self) -> dict[str, Any]:
        """Tell by content what a run begins with; a file may change and keep its name."""
        tokeniser = self.prepared.tokeniser
        return {
            "card": self.card.digest,
            **contents(self.prepared.task),
            "text of pretraining": None if self.text is None else self.text.digest,
            "tokeniser": None if tokeniser is None else tokeniser.digest,
            "weights": None if self.imported is None else weights_digest(self.imported.weights),
            **({} if self.teacher is None else {"teacher": self.teacher.digest}),
        }

    def model(self, training: Training, pretrained: Mapping[str, Any] | None) -> TaskModel:
        """Build the model that training begins with."""
        if self.imported is not None:
            return task_model(self.imported, self.prepared, training)
        model = fresh_model(self.card, self.prepared, training)
        return model if pretrained is None else with_weights(model, pretrained)

    def padding(self, recipe: Recipe) -> float:
        """Give the share of padding in the batches of training."""
        return Shuffled(lengths_of(self.prepared.train.examples), recipe.batch, recipe.seed).padding

    def save(
        self,
        model: TaskModel,
        folder: Path,
        metrics: Mapping[str, float],
        tested: Tested | None,
        evidence: Mapping[str, Evidence],
    ) -> Path:
        """Write the model as a folder that loads, with its scores."""
        task = self.prepared.task
        scores = score_facts(task.name, "validation", metrics, evidence["validation"])
        scores |= {} if tested is None else score_facts(task.name, "test", tested.metrics, tested.evidence)
        tokeniser = self.prepared.tokeniser
        labels = task.labels if model.spec.task == "sequence-classification" and model.spec.labels > 1 else ()
        return save_pretrained_folder(
            model.cpu().eval(),
            folder,
            tokenizer=tokeniser.tokenizer if tokeniser is not None else None,
            labels=labels,
            scores=scores,
            lineage={"trained from": self.name, "task": task.name},
            evaluation=evaluation_of(self.prepared, metrics, None if tested is None else tested.metrics, evidence),
            force=True,
        )


def read_task(job: "Job") -> Task:
    """Find the task of a job: a name, or a file of the user's own."""
    data = None if job.data is None else Path(job.data)
    task = load_task(job.task, data, job.official_dev, job.text, job.label, job.task_kind)
    return task if job.rows is None else shortened(task, job.rows)


def begin(job: "Job", task: Task) -> Start:
    """Find the design of a job, prepare its task for it, and read its teacher where it has one."""
    teacher = None if job.distil_from is None else read_teacher(job.distil_from, task)
    start = _from_folder(job, task) if os.path.isdir(job.source) else _from_card(job, task, teacher)
    if teacher is not None:
        teacher.refuse_for(start.card, start.prepared)
    return replace(start, teacher=teacher)


def _from_card(job: "Job", task: Task, teacher: Teacher | None) -> Start:
    found = find(job.source)
    if not isinstance(found, NamedCard):
        raise IllegalInput(f"{job.source} is a space of designs; train one of them, or a published card")
    refuse_head(found.card, head_of(task))
    text = _pretraining_text(job, found.card, task)
    if teacher is not None and teacher.tokeniser is not None:
        tokeniser: Tokeniser | None = teacher.tokeniser  # a design without weights reads whatever its teacher reads
    else:
        tokeniser = None if text is None else _tokeniser(found.card, task, text)
    length = job.length or _usual_length(job, task, found.card, tokeniser, teacher)
    prepared = prepare(task, found.card, length, tokeniser)
    return Start(found.name, found.card, prepared, Settings(), text=text)


def _from_folder(job: "Job", task: Task) -> Start:
    from formwright.nn.hf.load import from_hf

    if job.pretrain is not None or job.next_sentence:
        option = "--next-sentence" if job.pretrain is None else "--pretrain"
        raise IllegalInput(f"{job.source} is a pretrained model; {option} is for cards, which have no weights")
    if Path(job.source, RECORD).is_file():
        raise IllegalInput(f"{job.source} is the folder of a training run; its model is {Path(job.source, 'model')}")
    imported = from_hf(Path(job.source))
    if replaced := replaced_head(imported, task, Path(job.source)):
        note(replaced)
    refuse_head(imported.card, head_of(task))
    tokeniser = None if task.kind == "image-classification" else read_tokeniser(Path(job.source))
    length = job.length or usual_length(task, imported.card, PRETRAINED, tokeniser)
    prepared = prepare(task, imported.card, length, tokeniser)
    return Start(Path(job.source).name, imported.card, prepared, imported.settings, imported)


def _usual_length(job: "Job", task: Task, card: Card, tokeniser: Tokeniser | None, teacher: Teacher | None) -> int:
    """Take the length from the data: no more than a teacher reads, and enough for the text of pretraining."""
    least = LEAST if job.pretrain in (None, "self") else PIECES
    length = usual_length(task, card, FROM_SCRATCH, tokeniser, least)
    read = None if teacher is None else teacher.imported.card.stacks[0].embedding
    return min(length, read.length) if isinstance(read, TokenEmbedding) else length


def _pretraining_text(job: "Job", card: Card, task: Task) -> PlainText | None:
    if job.pretrain is None:
        if job.next_sentence:
            raise IllegalInput("--next-sentence is part of pretraining; say on what with --pretrain")
        return None
    refuse_head(card, HeadSpec("masked-lm"))
    name = "pydoc/masked" if job.pretrain == "pydoc" else job.pretrain
    text = plain_text((task if name == "self" else _other_task(name, job)).search_view().train)
    if job.next_sentence:
        sentence_pairs(text, job.seed)  # refuses text without any
    return text


def _other_task(name: str, job: "Job") -> Task:
    """Find a task beside the one of the job, with those of the job's options that it has a use for."""
    if name in FROM_DATA:
        return load_task(name, None if job.data is None else Path(job.data))
    return load_task(name) if name in TASKS.names() else load_task(name, text=job.text, label=job.label)


def _tokeniser(card: Card, task: Task, text: PlainText) -> Tokeniser:
    """Train one tokeniser on the text of pretraining and the task's own."""
    both = PlainText((*text.texts, *plain_text(task.search_view().train).texts))
    embedding = card.stacks[0].embedding
    assert isinstance(embedding, TokenEmbedding), "designs without words are refused before"
    return train_wordpiece(both, embedding.vocabulary)
