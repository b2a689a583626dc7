"""Pretraining: a transformer learns to fill in masked tokens before it learns its task."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build, initialise
from formwright.nn.settings import Spread
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import first_tokens
from formwright.tasks.rows import AnyRows, PlainText, TextRows
from formwright.tasks.tokeniser import Tokeniser
from formwright.train.device import choose_device, threads
from formwright.train.fit import Run, Training
from formwright.train.loop import train
from formwright.train.losses import loss_of
from formwright.train.prepare import encode_for
from formwright.train.streams import Batch, Masked, Masking, Shuffled

_END = re.compile(r"(?<=[.!?])\s+")


def sentence_pairs(texts: PlainText, seed: int = 0) -> TextRows:
    """Pair every sentence with its successor (label 1) or, equally often, with one of another text (label 0).

    Texts of one sentence are skipped.
    """
    documents = [[part for part in _END.split(text) if part] for text in texts.texts]
    documents = [sentences for sentences in documents if len(sentences) > 1]
    if len(documents) < 2:
        raise IllegalInput("predicting the next sentence needs at least two texts of two sentences each")
    rng = derive(seed, "next sentence")
    pairs, labels = [], []
    for number, sentences in enumerate(documents):
        for first, second in pairwise(sentences):
            follows = int(rng.integers(2))
            if not follows:
                other = documents[(number + 1 + int(rng.integers(len(documents) - 1))) % len(documents)]
                second = other[int(rng.integers(len(other)))]  # noqa: PLW2901  the pair is what is being drawn
            pairs.append((first, second))
            labels.append(follows)
    return TextRows(tuple(pairs), tuple(labels))


class WithNextSentence(nn.Module):
    """A masked language model that also predicts whether the second sentence follows the first."""

    def __init__(self, model: TaskModel, seed: int = 0, spread: Spread = "bert") -> None:
        super().__init__()
        self.model = model
        self.next_sentence = nn.Linear(model.transformer.card.output_width, 2)
        initialise(self.next_sentence, torch.Generator().manual_seed(seed), spread)

    def forward(self, *inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the vocabulary scores of the masked tokens, and for each pair (does not follow, follows)."""
        (*read, positions), mask = inputs, inputs[1]
        output = self.model.transformer(*read)
        pooled = output.pooled if output.pooled is not None else first_tokens(output.hidden, mask)
        return self.model.answer(output, mask, positions), self.next_sentence(pooled)


def words_and_order(scores: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """Return the sum of the masked-token loss and the next-sentence loss, as in BERT."""
    assert batch.follows is not None
    return F.cross_entropy(scores[0], batch.labels) + F.cross_entropy(scores[1], batch.follows)


def plain_text(rows: AnyRows) -> PlainText:
    """Return the distinct texts of some rows, without labels."""
    if isinstance(rows, PlainText):
        return rows
    if not hasattr(rows, "all_texts"):
        raise IllegalInput("these rows have no text to pretrain on; name a task of text, or a file of texts")
    return PlainText(tuple(dict.fromkeys(rows.all_texts)))


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
    """Pretrain an encoder by masked language modelling; return the weights of its transformer, and every loss.

    With `next_sentence` it also learns next-sentence prediction, as BERT does. A `model` of the card with a masked-LM
    head is trained further, in place; without one, training starts from new weights.
    """
    run = run or Run()
    recipe = training.recipe
    if model is None:
        model = cast(TaskModel, build(card, training.settings, HeadSpec("masked-lm"), recipe.seed, training.spread))
    rows: TextRows | PlainText = sentence_pairs(text, recipe.seed) if next_sentence else text
    encoded = encode_for(card, rows, tokeniser, training.length)
    stream = Masked(encoded, Shuffled(encoded.tokens.lengths, recipe.batch, recipe.seed), Masking.of(tokeniser))
    learner = WithNextSentence(model, recipe.seed, training.spread) if next_sentence else model
    loss = words_and_order if next_sentence else loss_of("masked-lm")
    learner.to(choose_device(training.device))
    with threads(training.threads):
        losses = train(learner, stream, loss, recipe, run.saving, run.after_step, until=run.until)
    return {name: tensor.cpu() for name, tensor in model.transformer.state_dict().items()}, losses
