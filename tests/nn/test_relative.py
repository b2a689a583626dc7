import math

import pytest
import torch
from tests.nn.helpers import close, filled, mask_of, normal
from torch import Tensor

from formwright.arch.ops import Relative, RelativeAttention
from formwright.nn.context import Context
from formwright.nn.relative import PositionTerm, RelativePositions


def slow_row(query: int, key: int, rows: int) -> int:
    """Find the row of a distance by hand: the middle is 0, the ends serve whatever is farther."""
    return min(max(key - query + rows // 2, 0), rows - 1)


def slow_grid_rows(query: int, key: int, rows: int, side: int, class_tokens: int) -> tuple[int, int]:
    """Find the vertical and horizontal rows as AutoFormer does: clip, shift by one, row 0 for a class token."""
    if query < class_tokens or key < class_tokens:
        return 0, 0
    reach = (rows - 2) // 2
    (down, right), (below, beside) = divmod(query - class_tokens, side), divmod(key - class_tokens, side)
    return tuple(max(-reach, min(reach, apart)) + reach + 1 for apart in (below - down, beside - right))  # type: ignore[return-value]


def slow_vector(table: Tensor, query: int, key: int, grid: tuple[int, int] | None) -> Tensor:
    rows = table.shape[1]
    if grid is None:
        return table[0, slow_row(query, key, rows)]
    vertical, horizontal = slow_grid_rows(query, key, rows, *grid)
    return table[0, vertical] + table[1, horizontal]


def slow_scores(query: Tensor, table: Tensor, grid: tuple[int, int] | None) -> Tensor:
    batch, heads, tokens, _ = query.shape
    result = query.new_zeros(batch, heads, tokens, tokens)
    for i in range(tokens):
        for j in range(tokens):
            result[:, :, i, j] = query[:, :, i] @ slow_vector(table, i, j, grid)
    return result


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 9, 40])  # shorter than, as long as and longer than the sentence
def test_scores_are_queries_times_the_vectors_of_clipped_distances(rows: int) -> None:
    module, query = filled(RelativePositions(Relative(rows), 4)), normal(2, 3, 9, 4)
    assert close(module.scores(query, Context()), slow_scores(query, module.keys, None))


def test_the_outermost_rows_serve_all_farther_distances() -> None:
    module, query = filled(RelativePositions(Relative(5), 4)), normal(1, 1, 1, 4).expand(1, 1, 9, 4)
    scores = module.scores(query, Context())[0, 0]
    assert torch.equal(scores[0, 2:], scores[0, 2].expand(7))
    assert torch.equal(scores[8, :7], scores[8, 6].expand(7))
    assert len(set(scores[4].tolist())) == 5


@pytest.mark.parametrize("class_tokens", [0, 1, 2])
@pytest.mark.parametrize("rows", [4, 6, 10])
def test_scores_on_a_grid_add_vertical_and_horizontal_vectors(rows: int, class_tokens: int) -> None:
    grid = (3, class_tokens)
    module, query = filled(RelativePositions(Relative(rows, axes=2), 4)), normal(2, 2, 9 + class_tokens, 4)
    assert close(module.scores(query, Context(grid=grid)), slow_scores(query, module.keys, grid))


@pytest.mark.parametrize("grid", [None, (3, 0), (3, 1)])
def test_value_vectors_are_summed_by_weight(grid: tuple[int, int] | None) -> None:
    tokens = 9 + (grid[1] if grid else 0)
    relative = Relative(6, axes=2 if grid else 1, values=True)
    module, weights = filled(RelativePositions(relative, 4)), normal(2, 3, tokens, tokens)
    assert module.values is not None
    expected = weights.new_zeros(2, 3, tokens, 4)
    for i in range(tokens):
        for j in range(tokens):
            expected[:, :, i] += weights[:, :, i, j, None] * slow_vector(module.values, i, j, grid)
    assert close(module.weighted_values(weights, Context(grid=grid)), expected)


def test_two_tables_of_different_reach_live_in_one_context() -> None:
    context, query = Context(), normal(1, 1, 7, 4)
    short, long = filled(RelativePositions(Relative(3), 4)), filled(RelativePositions(Relative(9), 4))
    for module in (short, long, short):
        assert close(module.scores(query, context), slow_scores(query, module.keys, None))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, [4, 7]])
def test_the_position_term_is_a_softmax_over_positions_alone(lengths: list[int] | None, causal: bool) -> None:
    module = filled(PositionTerm(RelativeAttention(2, 4, 5)), spread=2.0)
    query, value = normal(2, 2, 7, 4), normal(2, 2, 7, 4, seed=2)
    mask = mask_of(lengths, 7) if lengths else None
    result = module(query, value, Context(mask, causal=causal))
    for sentence, length in enumerate(lengths or [7, 7]):
        for head in range(2):
            for i in range(length):
                keys = [j for j in range(length) if j <= i or not causal]
                scores = [
                    query[sentence, head, i] @ module.positions.keys[0, slow_row(i, j, 5)] / math.sqrt(4) for j in keys
                ]
                expected = torch.stack(scores).softmax(0) @ value[sentence, head, keys]
                assert close(result[sentence, head, i], expected)
