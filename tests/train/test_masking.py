from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.train.cases import ENCODER, encoded
from torch.nn import functional as F

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build
from formwright.nn.task_model import HeadSpec
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import CLASS, MASK, PAD, SEPARATOR, Special, train_wordpiece
from formwright.train.masking import Masked, Masking, masked
from formwright.train.streams import Shuffled

MASKING = Masking(MASK, (PAD, CLASS, SEPARATOR, MASK), 40)
sequences = st.lists(
    st.lists(st.integers(5, 39), min_size=1, max_size=9).map(lambda words: [CLASS, *words, SEPARATOR]),
    min_size=1,
    max_size=12,
)


def test_shares_are_those_of_bert() -> None:
    tokens = np.full((400, 100), 7, np.int32)
    read, chosen = MASKING.hide(tokens, np.ones_like(tokens, bool), derive(0))
    number = chosen.sum()
    assert abs(number - 0.15 * tokens.size) < 5 * np.sqrt(0.15 * 0.85 * tokens.size)
    hidden, same = (read[chosen] == MASK).sum(), (read[chosen] == 7).sum()
    for found, share in ((hidden, 0.8 + 0.1 / 40), (same, 0.1 + 0.1 / 40), (number - hidden - same, 0.1 * 38 / 40)):
        assert abs(found - share * number) < 5 * np.sqrt(share * (1 - share) * number)
    assert (read[~chosen] == 7).all()
    assert read.max() == 39  # every token may stand in for another


@given(sequences, st.integers(0, 1000))
def test_words_alone_are_chosen_and_are_the_labels(rows: list[list[int]], seed: int) -> None:
    batch = masked(encoded(rows), np.arange(len(rows)), MASKING, derive(seed))
    original = torch.full(batch.inputs.shape, PAD)
    for place, row in enumerate(rows):
        original[place, : len(row)] = torch.tensor(row)
    assert batch.positions.any()
    assert not set(original[batch.positions].tolist()) & set(MASKING.spared)
    assert original[batch.positions].tolist() == batch.labels.tolist()
    assert torch.equal(batch.inputs[~batch.positions], original[~batch.positions])
    assert batch.mask is None or torch.equal(batch.mask, original != PAD)


def test_a_step_hides_the_same_and_another_epoch_hides_others() -> None:
    examples = encoded([[CLASS, *range(5, 35), SEPARATOR] for _ in range(8)])

    def stream(seed: int = 0) -> Masked:
        return Masked(examples, Shuffled(examples.tokens.lengths, 8, seed), MASKING)

    one, again = stream().batch(3), stream().batch(3)
    assert torch.equal(one.inputs, again.inputs)
    assert torch.equal(one.labels, again.labels)
    for other in (stream().batch(4), stream(1).batch(3)):
        assert not torch.equal(one.positions, other.positions)


@torch.inference_mode()
def test_scores_of_hidden_tokens_alone_equal_those_of_all() -> None:
    model = build(ENCODER, head=HeadSpec("masked-lm"), seed=1).eval()
    rows = [[CLASS, *range(5, 5 + length), SEPARATOR] for length in (3, 17, 9, 25)]
    batch = masked(encoded(rows), np.arange(4), replace(MASKING, share=0.4), derive(0))
    some = model(batch.inputs, batch.mask, batch.types, positions=batch.positions)
    whole = model(batch.inputs, batch.mask, batch.types)
    targets = torch.full(batch.inputs.shape, -100)
    targets[batch.positions] = batch.labels
    expected = F.cross_entropy(whole.flatten(0, 1), targets.flatten(), ignore_index=-100)
    assert float(F.cross_entropy(some, batch.labels)) == pytest.approx(float(expected), abs=1e-6)


def test_the_special_tokens_are_those_of_the_tokeniser() -> None:
    tokeniser = train_wordpiece(PlainText(("some words",)), 50)
    assert Masking.of(tokeniser) == Masking(MASK, (PAD, CLASS, SEPARATOR, MASK), tokeniser.size)

    class Maskless:
        special = Special(0, 0)

    with pytest.raises(IllegalInput, match="no mask token"):
        Masking.of(Maskless())  # type: ignore[arg-type]
