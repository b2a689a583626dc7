"""Real text: a design is pretrained on WikiText-2, and fine-tuned on tasks of GLUE."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from autobert_zero_kit.runs import Job, Row
from autobert_zero_kit.setting import Real, Setting
from autobert_zero_kit.variants import bert_like
from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.resize import widened
from formwright.core.errors import IllegalInput
from formwright.core.records import Request
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final
from formwright.evaluate.training import Trainer
from formwright.nn.task_model import TaskModel
from formwright.tasks import load_task
from formwright.tasks.rows import PlainText
from formwright.tasks.task import shortened
from formwright.tasks.tokeniser import WordPiece, train_wordpiece
from formwright.train.fit import Run, Training, fresh_model, with_weights
from formwright.train.loop import Saving
from formwright.train.prepare import Prepared
from formwright.train.pretrain import pretrain

_SAVE_EVERY = 250  # steps of pretraining


def contestants(real: Real, found: Card) -> dict[str, Card]:
    """Give designs for real text: the one found, and a BERT as large."""
    sized = real_size(real, found)
    return {"found": sized, "found, BERT as large": bert_like(sized)}


def real_size(real: Real, card: Card) -> Card:
    """Widen a design, and give it room for the words of real text."""
    wider = widened(card, real.width)
    assert wider.encoder is not None
    assert isinstance(wider.encoder.embedding, TokenEmbedding)
    embedding = replace(wider.encoder.embedding, vocabulary=real.vocabulary)
    return replace(wider, encoder=replace(wider.encoder, embedding=embedding))


def rows_of(lines: list[str], words: int) -> list[str]:
    """Cut paragraphs into rows of a number of words; headings and what is left over at the end of one are left out."""
    paragraphs = [line.split() for line in lines if line.strip() and not line.strip().startswith("=")]
    starts = ((own, start) for own in paragraphs for start in range(0, len(own) - words + 1, words))
    return [" ".join(own[start : start + words]) for own, start in starts]


@cache
def wikitext(data: Path, words: int, most: int | None) -> PlainText:
    """Read the training text of WikiText-2 in rows."""
    path = data / "wikitext-2" / "train.txt.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return PlainText(tuple(rows_of(file.readlines(), words)[:most]))
    except OSError as error:
        raise IllegalInput(f"cannot read {path}: {error.strerror or error}; --data names the folder with it") from None


@cache
def tokeniser(data: Path, words: int, most: int | None, vocabulary: int) -> WordPiece:
    """Train the tokeniser that all tasks use on the text of pretraining."""
    return train_wordpiece(wikitext(data, words, most), vocabulary)


def place_of(setting: Setting, folder: Path, job: Job) -> Path:
    """Name the folder of what a training leaves to go on from; other settings have others."""
    return folder / f"real-{setting.digest('real')}-{job.name}-{job.seed}"


def judged(setting: Setting, folder: Path, data: Path, job: Job) -> Row:
    """Pretrain a design and fine-tune it on each task; what was killed goes on, and what is finished is cleared."""
    real, card = setting.real, job.design
    text = wikitext(data, real.words, real.texts)
    cut = tokeniser(data, real.words, real.texts, real.vocabulary)
    place = place_of(setting, folder, job)
    training = real.training(real.steps.pretraining)
    training = replace(training, recipe=replace(training.recipe, seed=job.seed))
    weights, losses = pretrain(card, text, cut, training, Run(Saving(place / "pretraining", _SAVE_EVERY)))

    def start(card: Card, prepared: Prepared, training: Training) -> TaskModel:
        return with_weights(fresh_model(card, prepared, training), weights)

    row: Row = {"params": params(card), "loss": sum(losses[-50:]) / len(losses[-50:])}
    for name in real.tasks:
        # nothing is chosen by these scores, so the whole official dev set may be their judge, as in publications
        task = shortened(load_task(name, data / "glue", official_dev=True), real.rows)
        final = Final(Trainer(task, real.training(real.steps.tuning), cut), start)
        found = final.verdict(Request(card), Context(job.seed, place / name.replace("/", "-")), test=False)
        row[name] = found.validation[task.metric]
    shutil.rmtree(place)
    return row
