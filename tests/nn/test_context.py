import pytest
import torch
from tests.nn.helpers import mask_of, normal

from formwright.nn.context import Context

CPU = torch.device("cpu")


def test_nothing_is_hidden_without_mask_and_causality() -> None:
    assert Context().visible(4, CPU) is None


def test_a_mask_hides_keys_from_every_query() -> None:
    visible = Context(mask_of([2, 3], 3)).visible(3, CPU)
    assert visible is not None
    assert visible.expand(2, 1, 3, 3)[0, 0].tolist() == [[True, True, False]] * 3
    assert visible.all(-1).flatten().tolist() == [False, True]


def test_a_causal_context_shows_the_past_and_the_present() -> None:
    visible = Context(causal=True).visible(3, CPU)
    assert visible is not None
    assert visible[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("left", [False, True])
def test_a_causal_mask_hides_the_future_and_padding(left: bool) -> None:
    mask = mask_of([2, 4], 4, left=left)
    visible = Context(mask, causal=True).visible(4, CPU)
    assert visible is not None
    for sentence in range(2):
        for query in range(4):
            for key in range(4):
                if mask[sentence, query]:
                    assert visible[sentence, 0, query, key] == (key <= query and bool(mask[sentence, key]))


@pytest.mark.parametrize("left", [False, True])
def test_every_query_sees_something_so_that_padding_stays_finite(left: bool) -> None:
    visible = Context(mask_of([1, 3], 5, left=left), causal=True).visible(5, CPU)
    assert visible is not None
    assert visible.any(-1).all()


def test_real_sets_padding_to_zero_and_leaves_the_rest() -> None:
    x = normal(2, 3, 4)
    result = Context(mask_of([1, 3], 3)).real(x)
    assert torch.equal(result[0, 0], x[0, 0])
    assert torch.equal(result[1], x[1])
    assert not result[0, 1:].any()
    assert Context().real(x) is x


@pytest.mark.parametrize("left", [False, True])
def test_positions_and_lengths_count_real_tokens_only(left: bool) -> None:
    mask = mask_of([2, 4, 1], 4, left=left)
    context, x = Context(mask), normal(3, 4, 8)
    assert context.lengths(x).tolist() == [[2], [4], [1]]
    for sentence, length in enumerate([2, 4, 1]):
        assert context.positions(x)[sentence][mask[sentence]].tolist() == list(range(length))
    assert context.positions(x).min() == 0
    assert context.positions(x).max() == 3


def test_positions_and_lengths_without_a_mask_are_those_of_the_row() -> None:
    x = normal(2, 5, 8)
    assert Context().lengths(x).tolist() == [[5]]
    assert Context().positions(x).tolist() == [[0, 1, 2, 3, 4]]


def test_once_computes_for_the_first_caller_only() -> None:
    context, calls = Context(), []

    def compute() -> torch.Tensor:
        calls.append(1)
        return torch.zeros(1)

    assert context.once("a", compute) is context.once("a", compute)
    assert context.once("b", compute) is not context.once("a", compute)
    assert len(calls) == 2
