"""BERT's second task of pretraining: to tell whether one sentence follows the other."""

import re
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import Spread, initialise
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import first_tokens
from formwright.tasks.rows import PlainText, TextRows
from formwright.train.batch import Batch

_END = re.compile(r"(?<=[.!?])\s+")


def sentence_pairs(texts: PlainText, seed: int = 0) -> TextRows:
    """Pair every sentence with the one that follows it in its text (label 1) or, as often, with one from elsewhere (0).

    A text is at least two sentences long to be of use.
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
    """A masked language model that also tells whether the second sentence follows the first."""

    def __init__(self, model: TaskModel, seed: int = 0, spread: Spread = "bert") -> None:
        super().__init__()
        self.model = model
        self.next_sentence = nn.Linear(model.transformer.card.output_width, 2)
        initialise(self.next_sentence, torch.Generator().manual_seed(seed), spread)

    def forward(
        self,
        inputs: Tensor,
        mask: Tensor | None,
        types: Tensor | None,
        targets: Tensor | None,
        targets_mask: Tensor | None,
        positions: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the vocabulary scores of the hidden tokens, and for each pair (does not follow, follows)."""
        output = self.model.transformer(inputs, mask, types, targets, targets_mask)
        pooled = output.pooled if output.pooled is not None else first_tokens(output.hidden, mask)
        return self.model.answer(output, mask, positions), self.next_sentence(pooled)


def words_and_order(scores: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """Add the losses of the hidden tokens and of the order of the sentences, as BERT does."""
    assert batch.follows is not None
    return F.cross_entropy(scores[0], batch.labels) + F.cross_entropy(scores[1], batch.follows)
