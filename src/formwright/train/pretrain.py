"""Pretraining: a transformer learns to fill in hidden words before it learns its task."""

from collections.abc import Mapping

from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import ImageRows, PlainText, Rows, TextRows
from formwright.tasks.spans import SpanRows
from formwright.tasks.tokeniser import Tokeniser, texts_of
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run, Training
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.masking import Masked, Masking
from formwright.train.next_sentence import WithNextSentence, sentence_pairs, words_and_order
from formwright.train.prepare import encode_for
from formwright.train.streams import Shuffled


def plain_text(rows: Rows | SpanRows) -> PlainText:
    """Give the text of some rows without labels, each different text once."""
    if isinstance(rows, ImageRows):
        raise IllegalInput("images have no text to pretrain on")
    return rows if isinstance(rows, PlainText) else PlainText(tuple(dict.fromkeys(texts_of(rows))))


def pretrain(
    card: Card,
    text: PlainText,
    tokeniser: Tokeniser,
    training: Training,
    run: Run | None = None,
    *,
    next_sentence: bool = False,
    model: TaskModel | None = None,
) -> tuple[Mapping[str, Tensor], list[float]]:
    """Train an encoder to fill in hidden words of a text; return the weights of its transformer, and every loss.

    With `next_sentence` it also learns whether one sentence of the text follows another, as BERT does. A `model` of the
    card that fills in words is trained on, in place; without one, training begins with fresh weights.
    """
    run = run or Run()
    recipe = training.recipe
    model = model or _fresh(card, training)
    rows: TextRows | PlainText = sentence_pairs(text, recipe.seed) if next_sentence else text
    encoded = encode_for(card, rows, tokeniser, training.length)
    stream = Masked(encoded, Shuffled(encoded.tokens.lengths, recipe.batch, recipe.seed), Masking.of(tokeniser))
    learner = WithNextSentence(model, recipe.seed, training.spread) if next_sentence else model
    loss = words_and_order if next_sentence else loss_of("masked-lm")
    learner.to(choose_device(training.device))
    with threads(training.threads):
        losses = train(learner, stream, loss, recipe, run.saving, run.after_step, until=run.until)
    return {name: tensor.cpu() for name, tensor in model.transformer.state_dict().items()}, losses


def _fresh(card: Card, training: Training) -> TaskModel:
    model = build(card, training.settings, HeadSpec("masked-lm"), training.recipe.seed, training.spread)
    assert isinstance(model, TaskModel)
    return model
