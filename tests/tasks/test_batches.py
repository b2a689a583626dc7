import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.batches import padding_share, plan_batches, take
from formwright.tasks.encode import Encoded, Ragged, encode_rows
from formwright.tasks.rows import TranslationRows
from formwright.tasks.tokeniser import train_wordpiece

LENGTHS = derive(0, "lengths").integers(5, 40, size=1000)


def encoded(lengths) -> Encoded:
    tokens = Ragged.of([[row + 1] * int(length) for row, length in enumerate(lengths)])
    return Encoded(tokens, Ragged(tokens.values * 0, tokens.offsets), np.arange(len(lengths)))


@given(st.lists(st.integers(1, 30), max_size=70), st.integers(1, 20), st.booleans(), st.booleans())
def test_every_row_comes_exactly_once(lengths, size, random, bucketed) -> None:
    plan = plan_batches(np.array(lengths, np.int64), size, derive(1) if random else None, bucketed)
    assert sorted(row for batch in plan for row in batch) == list(range(len(lengths)))
    assert sum(len(batch) < size for batch in plan) <= 1


def test_bucketing_saves_most_of_the_padding() -> None:
    plain = padding_share(LENGTHS, plan_batches(LENGTHS, 32, derive(0), bucketed=False))
    bucketed = padding_share(LENGTHS, plan_batches(LENGTHS, 32, derive(0)))
    assert plain > 0.35
    assert bucketed < 0.1


def test_the_share_of_padding_is_that_of_the_masks() -> None:
    rows = encoded(LENGTHS)
    found = [take(rows, places) for places in plan_batches(LENGTHS, 32, derive(3))]
    real, computed = sum(batch.mask.sum() for batch in found), sum(batch.mask.size for batch in found)
    share = padding_share(LENGTHS, [batch.rows for batch in found])
    assert share == pytest.approx(1 - real / computed)


def test_order_depends_on_the_generator_alone() -> None:
    first, again, other = (plan_batches(LENGTHS, 32, derive(seed)) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(first, other, strict=True))


def test_random_batches_do_not_come_in_order_of_length() -> None:
    longest = [int(LENGTHS[rows].max()) for rows in plan_batches(LENGTHS, 32, derive(0))]
    assert longest != sorted(longest)


def test_a_batch_holds_its_rows() -> None:
    batch = take(encoded([2, 1, 3]), np.array([2, 0]))
    assert batch.tokens.tolist() == [[3, 3, 3], [1, 1, 0]]
    assert batch.mask.tolist() == [[True] * 3, [True, True, False]]
    assert batch.labels is not None
    assert batch.labels.tolist() == [2, 0]


def test_targets_are_padded_too() -> None:
    rows = TranslationRows(("a", "b a"), ("b a b", "a"))
    batch = take(encode_rows(rows, train_wordpiece(rows), 8), np.arange(2))
    assert batch.targets is not None
    assert batch.targets_mask is not None
    assert batch.targets.shape == batch.targets_mask.shape == (2, 5)


def test_rows_are_filled_up_with_the_token_for_it() -> None:
    ragged = Ragged.of([[7, 8], [9]])
    batch = take(Encoded(ragged, ragged, targets=ragged, pad=4), np.array([0, 1]))
    assert batch.tokens.tolist() == [[7, 8], [9, 4]]
    assert batch.targets is not None
    assert batch.targets.tolist() == [[7, 8], [9, 4]]
    assert batch.types.tolist() == [[7, 8], [9, 0]]


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(IllegalInput, match="at least one row"):
        plan_batches(LENGTHS, 0)


def test_no_rows_make_no_batches() -> None:
    assert padding_share(np.array([], np.int64), plan_batches(np.array([], np.int64), 4)) == 0.0
