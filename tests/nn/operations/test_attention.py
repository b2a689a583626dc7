import math
from itertools import product

import pytest
import torch
from tests.nn.helpers import close, filled, mask_of, normal
from torch import Tensor, nn

from formwright.arch.ops import Attention, CrossAttention, Relative, RelativeAttention
from formwright.nn.operations.attention import EncoderAttention, PositionTerm, RelativePositions, SelfAttention, dropout
from formwright.nn.settings import Settings
from formwright.nn.stack_context import StackContext

EAGER, FUSED = Settings(dropout=0.0, eager=True), Settings(dropout=0.0)
RELATIVES = [None, Relative(5), Relative(8), Relative(5, values=True)]
GRIDS = [Relative(6, axes=2), Relative(6, axes=2, values=True)]


def attention(operation: Attention, width: int, output: int | None = None, settings: Settings = FUSED) -> SelfAttention:
    return filled(SelfAttention(operation, width, output or width, 0, settings))


def unpacked(packed: Tensor, parts: int, heads: int) -> list[Tensor]:
    """Turn rows ordered head by head into one matrix (or bias) for each of query, key and value."""
    head_width = packed.shape[0] // parts // heads
    rows = packed.unflatten(0, (heads, parts, head_width))  # type: ignore[no-untyped-call]
    return [rows[:, part].flatten(0, 1) for part in range(parts)]


@torch.no_grad()
def torch_attention(ours: SelfAttention, width: int, bias: bool) -> nn.MultiheadAttention:
    """Give torch's own attention the weights of ours."""
    theirs = nn.MultiheadAttention(width, ours.heads, bias=bias, batch_first=True, dtype=torch.float64).eval()
    theirs.in_proj_weight.copy_(torch.cat(unpacked(ours.query_key_value.weight, 3, ours.heads)))
    theirs.out_proj.weight.copy_(ours.output.weight)
    if bias:
        theirs.in_proj_bias.copy_(torch.cat(unpacked(ours.query_key_value.bias, 3, ours.heads)))
        theirs.out_proj.bias.copy_(ours.output.bias)
    return theirs


@torch.no_grad()
@pytest.mark.parametrize("settings", [EAGER, FUSED], ids=["eager", "fused"])
@pytest.mark.parametrize(("bias", "causal", "padded"), list(product([True, False], repeat=3)))
def test_sdp_attention_is_torch_multihead_attention(settings: Settings, bias: bool, causal: bool, padded: bool) -> None:
    ours, x = attention(Attention(3, 4, bias=bias), 12, settings=settings), normal(2, 7, 12)
    real = mask_of([7, 4 if padded else 7], 7)
    mask = real if padded else None
    future = torch.ones(7, 7, dtype=torch.bool).triu(1) if causal else None
    expected, _ = torch_attention(ours, 12, bias)(
        x, x, x, key_padding_mask=~mask if mask is not None else None, attn_mask=future, need_weights=False
    )
    assert close(ours(x, StackContext(mask, causal=causal))[real], expected[real])


def slow_attention(module: SelfAttention, x: Tensor, visible: Tensor, grid: tuple[int, int] | None) -> Tensor:
    """Attend token by token and head by head, straight from the definitions."""
    maps = zip(*(unpacked(p, 3, module.heads) for p in module.query_key_value.parameters()), strict=True)
    query, key, value = ((x @ weight.T + bias).unflatten(-1, (module.heads, -1)) for weight, bias in maps)
    size = query.shape[-1]
    middle = module.bilinear if module.bilinear is not None else torch.eye(size, dtype=x.dtype) / math.sqrt(size)
    result = torch.zeros_like(query)
    for b, h, i in product(range(x.shape[0]), range(module.heads), range(x.shape[1])):
        keys = [j for j in range(x.shape[1]) if visible[b, i, j]]
        scores = [query[b, i, h] @ middle @ key[b, j, h] for j in keys]
        values = [value[b, j, h] for j in keys]
        if module.relative is not None:
            apart = [slow_vector(module.relative.keys, i, j, grid) for j in keys]
            scores = [s + query[b, i, h] @ r / math.sqrt(size) for s, r in zip(scores, apart, strict=True)]
            if module.relative.values is not None:
                values = [
                    v + slow_vector(module.relative.values, i, j, grid) for v, j in zip(values, keys, strict=True)
                ]
        result[b, i, h] = torch.stack(scores).softmax(0) @ torch.stack(values)
    return result.flatten(2) @ module.output.weight.T + module.output.bias


@torch.no_grad()
@pytest.mark.parametrize("settings", [EAGER, FUSED], ids=["eager", "fused"])
@pytest.mark.parametrize("score", ["sdp", "wma"])
@pytest.mark.parametrize("relative", [*RELATIVES, *GRIDS])
@pytest.mark.parametrize(("causal", "padded"), [(False, False), (True, False), (False, True), (True, True)])
def test_attention_is_the_slow_loop(settings, score, relative, causal, padded) -> None:
    grid = (2, 1) if relative in GRIDS else None
    tokens = 5 if grid else 6
    module = attention(Attention(3, 4, score, relative), 10, 7, settings)  # type: ignore[arg-type]
    x, lengths = normal(2, tokens, 10), [tokens, 3 if padded else tokens]
    mask = mask_of(lengths, tokens)
    visible = mask[:, None, :].expand(2, tokens, tokens)
    visible = visible.tril() if causal else visible
    result = module(x, StackContext(mask if padded else None, causal=causal, grid=grid))
    assert close(result[mask], slow_attention(module, x, visible, grid)[mask])


@torch.no_grad()
def test_wma_with_the_scaled_identity_is_sdp() -> None:
    wma, sdp = attention(Attention(2, 8, "wma", Relative(5)), 12), attention(Attention(2, 8, relative=Relative(5)), 12)
    sdp.load_state_dict({name: tensor for name, tensor in wma.state_dict().items() if name != "bilinear"})
    assert not close(wma(normal(2, 5, 12), StackContext()), sdp(normal(2, 5, 12), StackContext()), 1e-3)
    wma.bilinear.copy_(torch.eye(8, dtype=torch.float64) / math.sqrt(8))
    assert close(wma(normal(2, 5, 12), StackContext()), sdp(normal(2, 5, 12), StackContext()))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relative", RELATIVES)
def test_fused_and_eager_give_equal_outputs_and_gradients(relative: Relative | None, causal: bool, left: bool) -> None:
    mask = mask_of([6, 2], 6, left=left)
    outputs = []
    for settings in (EAGER, FUSED):
        module = filled(SelfAttention(Attention(2, 4, "wma", relative), 8, 8, 0, settings), dtype=torch.float32)
        y = module(normal(2, 6, 8, dtype=torch.float32), StackContext(mask, causal=causal))[mask]
        y.square().sum().backward()
        outputs.append((y, *(parameter.grad for parameter in module.parameters())))
    for eager, fused in zip(*outputs, strict=True):
        assert close(fused, eager, 1e-5)


@pytest.mark.parametrize("settings", [EAGER, FUSED], ids=["eager", "fused"])
@pytest.mark.parametrize("relative", RELATIVES)
def test_left_padding_under_a_causal_mask_stays_finite(settings: Settings, relative: Relative | None) -> None:
    module = attention(Attention(2, 4, relative=relative), 8, settings=settings)
    assert module(normal(2, 6, 8), StackContext(mask_of([6, 2], 6, left=True), causal=True)).isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("settings", [Settings(dropout=0.5, eager=True), Settings(dropout=0.5)], ids=["eager", "fused"])
def test_attention_weights_drop_out_in_training_only(settings: Settings) -> None:
    x, memory = normal(2, 9, 8), (normal(2, 9, 6),)
    own = filled(SelfAttention(Attention(2, 4), 8, 8, 0, settings))
    cross = filled(EncoderAttention(CrossAttention(2, 4), 8, 8, 6, settings))
    for module in (own, cross):
        context = StackContext(memory=memory)
        assert torch.equal(module(x, context), module(x, context))
        module.train()
        assert not torch.equal(module(x, context), module(x, context))


@torch.no_grad()
@pytest.mark.parametrize("settings", [EAGER, FUSED], ids=["eager", "fused"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("bias", "padded"), list(product([True, False], repeat=2)))
def test_cross_attention_is_torch_attention_over_all_memories(settings, layers, bias, padded) -> None:
    ours = filled(EncoderAttention(CrossAttention(2, 4, layers, bias), 8, 8, 6, settings))
    theirs = nn.MultiheadAttention(8, 2, bias=bias, kdim=6, vdim=6, batch_first=True, dtype=torch.float64).eval()
    key, value = unpacked(ours.key_value.weight, 2, 2)
    for to, tensor in ((theirs.q_proj_weight, ours.query.weight), (theirs.k_proj_weight, key)):
        to.copy_(tensor)
    theirs.v_proj_weight.copy_(value)
    theirs.out_proj.weight.copy_(ours.output.weight)
    if bias:
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, *unpacked(ours.key_value.bias, 2, 2))))
        theirs.out_proj.bias.copy_(ours.output.bias)
    memory = tuple(normal(2, 5, 6, seed=seed) for seed in range(10, 14))  # the first is never read
    mask = mask_of([5, 2], 5) if padded else None
    read = torch.cat(memory[-layers:], 1)
    hidden = torch.cat([~mask] * layers, 1) if mask is not None else None
    x = normal(2, 7, 8)
    expected, _ = theirs(x, read, read, key_padding_mask=hidden, need_weights=False)
    assert close(ours(x, StackContext(causal=True, memory=memory, memory_mask=mask)), expected)


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
    assert close(module.scores(query, StackContext()), slow_scores(query, module.keys, None))


@pytest.mark.parametrize("class_tokens", [0, 1, 2])
@pytest.mark.parametrize("rows", [4, 6, 10])
def test_scores_on_a_grid_add_vertical_and_horizontal_vectors(rows: int, class_tokens: int) -> None:
    grid = (3, class_tokens)
    module, query = filled(RelativePositions(Relative(rows, axes=2), 4)), normal(2, 2, 9 + class_tokens, 4)
    assert close(module.scores(query, StackContext(grid=grid)), slow_scores(query, module.keys, grid))


@pytest.mark.parametrize("grid", [None, (3, 0), (3, 1)])
def test_value_vectors_are_summed_by_weight(grid: tuple[int, int] | None) -> None:
    tokens = 9 + (grid[1] if grid else 0)
    relative = Relative(6, axes=2 if grid else 1, values=True)
    module, weights = filled(RelativePositions(relative, 4)), normal(2, 3, tokens, tokens)
    expected = weights.new_zeros(2, 3, tokens, 4)
    for i in range(tokens):
        for j in range(tokens):
            expected[:, :, i] += weights[:, :, i, j, None] * slow_vector(module.values, i, j, grid)
    assert close(module.weighted_values(weights, StackContext(grid=grid)), expected)


@pytest.mark.parametrize(("side", "class_tokens", "width", "rows"), [(3, 1, 8, 8), (8, 1, 64, 18), (8, 0, 64, 6)])
def test_a_grid_gives_the_outputs_and_gradients_of_the_vectors_of_all_pairs(
    side: int, class_tokens: int, width: int, rows: int
) -> None:
    """A small grid adds up the vectors of every pair, a large one multiplies with rows and columns: both are equal."""
    tokens, context = side**2 + class_tokens, StackContext(grid=(side, class_tokens))
    module = filled(RelativePositions(Relative(rows, 2, values=True), width), dtype=torch.float32)
    query, weights = torch.randn(2, 2, tokens, width), torch.randn(2, 2, tokens, tokens).softmax(-1)
    assert (module.vectors(module.keys, tokens, context)[1] is None) == (side == 3)
    module.scores(query, context).square().sum().backward()
    module.weighted_values(weights, context).square().sum().backward()
    outputs = (module.scores(query, context), module.weighted_values(weights, context))
    found = (*outputs, module.keys.grad, module.values.grad)
    module.zero_grad()
    keys, values = (
        torch.stack([slow_vector(table, i, j, (side, class_tokens)) for i in range(tokens) for j in range(tokens)])
        for table in (module.keys, module.values)
    )
    scores = torch.einsum("bhqd,qkd->bhqk", query, keys.unflatten(0, (tokens, tokens)))
    summed = torch.einsum("bhqk,qkd->bhqd", weights, values.unflatten(0, (tokens, tokens)))
    (scores.square().sum() + summed.square().sum()).backward()
    for one, other in zip(found, (scores, summed, module.keys.grad, module.values.grad), strict=True):
        assert (one - other).abs().max() <= 1e-5 * other.abs().max()


def test_tables_of_relative_positions() -> None:
    module, query = filled(RelativePositions(Relative(5), 4)), normal(1, 1, 1, 4).expand(1, 1, 9, 4)
    scores = module.scores(query, StackContext())[0, 0]
    assert torch.equal(scores[0, 2:], scores[0, 2].expand(7))
    assert torch.equal(scores[8, :7], scores[8, 6].expand(7))
    assert len(set(scores[4].tolist())) == 5
    context, query = StackContext(), normal(1, 1, 7, 4)
    short, long = filled(RelativePositions(Relative(3), 4)), filled(RelativePositions(Relative(9), 4))
    for module in (short, long, short):
        assert close(module.scores(query, context), slow_scores(query, module.keys, None))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [None, [4, 7]])
def test_the_position_term_is_a_softmax_over_positions_alone(lengths: list[int] | None, causal: bool) -> None:
    module = filled(PositionTerm(RelativeAttention(2, 4, 5)), spread=2.0)
    query, value = normal(2, 2, 7, 4), normal(2, 2, 7, 4, seed=2)
    result = module(query, value, StackContext(mask_of(lengths, 7) if lengths else None, causal=causal))
    for sentence, length in enumerate(lengths or [7, 7]):
        for head in range(2):
            for i in range(length):
                keys = [j for j in range(length) if j <= i or not causal]
                scores = [
                    query[sentence, head, i] @ module.positions.keys[0, slow_row(i, j, 5)] / math.sqrt(4) for j in keys
                ]
                expected = torch.stack(scores).softmax(0) @ value[sentence, head, keys]
                assert close(result[sentence, head, i], expected)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_each_number_falls_with_the_given_probability_and_the_mean_stays(probability: float) -> None:
    torch.manual_seed(0)
    kept = dropout(torch.ones(1001, 401), probability, True)  # not a multiple of the numbers in one draw
    fell = kept == 0
    assert fell.float().mean().item() == pytest.approx(probability, abs=0.003)
    assert kept[~fell].unique().tolist() == pytest.approx([1 / (1 - probability)], rel=1e-4)
    assert kept.mean().item() == pytest.approx(1, abs=0.01)
    for place in range(4):  # all four numbers of a draw are treated alike
        assert fell.flatten()[place::4].float().mean().item() == pytest.approx(probability, abs=0.006)
    neighbours = fell.flatten()[:400_000].float().view(-1, 4).T  # the numbers of one draw, side by side
    assert (torch.corrcoef(neighbours) - torch.eye(4)).abs().max() < 0.02


def test_the_seed_decides_whatever_the_threads() -> None:
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(3)
        results.append(dropout(torch.ones(300, 301), 0.3, True))
    torch.set_num_threads(before)
    assert torch.equal(*results)
    assert not torch.equal(results[0], dropout(torch.ones(300, 301), 0.3, True))


@pytest.mark.parametrize(("probability", "training"), [(0.5, False), (0.0, True)])
def test_nothing_happens_otherwise(probability: float, training: bool) -> None:
    x = torch.ones(3)
    assert dropout(x, probability, training) is x


def test_gradients_pass_where_numbers_stay() -> None:
    x = torch.ones(5, 7, requires_grad=True)
    y = dropout(x, 0.4, True)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert dropout(torch.ones(50), 1.0, True).eq(0).all()
    assert dropout(torch.ones(50), 1e-9, True).allclose(torch.ones(50))
