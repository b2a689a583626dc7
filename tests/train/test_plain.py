"""Batches of text without labels."""

import numpy as np
import torch
from tests.supernet.lessons import CARD

from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.plain import Plain, plain
from formwright.train.prepare import encode_for
from formwright.train.streams import Shuffled

TEXT = PlainText(("a b c d", "a b", "c d a", "b c d a"))


def test_a_batch_has_the_tokens_of_its_rows() -> None:
    encoded = encode_for(CARD, TEXT, train_wordpiece(TEXT, 40), 12)
    found = plain(encoded, np.array([0, 1]))
    assert found.mask is not None
    assert found.mask.sum(1).tolist() == [6, 4]  # with the tokens at both ends
    assert plain(encoded, np.array([0, 3])).mask is None
    assert found.types is not None
    assert not found.types.any()


def test_the_same_step_has_the_same_batch() -> None:
    encoded = encode_for(CARD, TEXT, train_wordpiece(TEXT, 40), 12)
    first, second = (Plain(encoded, Shuffled(encoded.tokens.lengths, 2, 0)) for _ in range(2))
    assert all(torch.equal(first.batch(step).inputs, second.batch(step).inputs) for step in (0, 3, 1))
