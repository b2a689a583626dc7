from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.supernet.small import BERT, CASES, ELECTRA, SPANS, SPEC, VIT, inputs_of, model
from torch import nn

from formwright.arch.card import Card
from formwright.arch.layers import Block, FrameEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention, Convolution, Identity, Transform
from formwright.core.errors import IllegalInput
from formwright.nn.build import build, skeleton
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec
from formwright.supernet import groups as groups_module
from formwright.supernet.groups import Group, hidden_group, pooled_group, stream_groups

ORDER = torch.randperm(16, generator=torch.Generator().manual_seed(5))


def moved(group: Group, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    result = dict(weights)
    for piece in (*group.weights, *group.biases):
        result[piece.name] = piece.taken(result[piece.name], ORDER)
    return result


def axes(card: Card, head: HeadSpec | None) -> dict[str, list[int]]:
    group, found = hidden_group(card, head), {}
    for piece in (*group.weights, *group.biases):
        found.setdefault(piece.name.removeprefix("transformer."), []).append(piece.axis)
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_between_layers_move_and_the_answers_stay(case: str) -> None:
    card, spec = CASES[case]
    whole = model(1, of=card, spec=spec)
    inputs = inputs_of(card)
    before, answers = whole.transformer(*inputs), whole(*inputs)
    whole.load_state_dict(moved(hidden_group(card, spec), dict(whole.named_parameters())))
    after = whole.transformer(*inputs)
    assert torch.allclose(whole(*inputs), answers, atol=1e-5)
    for old, new in zip(before.layers, after.layers, strict=True):
        assert torch.allclose(new, old[..., ORDER], atol=1e-5)


def test_a_bare_transformer_has_names_without_a_prefix() -> None:
    whole = build(BERT, Settings(dropout=0.0), seed=3).eval()
    inputs = inputs_of(BERT)
    before = whole(*inputs)
    whole.load_state_dict(moved(hidden_group(BERT, None), dict(whole.named_parameters())))
    after = whole(*inputs)
    assert torch.allclose(after.hidden, before.hidden[..., ORDER], atol=1e-5)
    assert torch.allclose(after.pooled, before.pooled, atol=1e-6)  # the pooler's outputs have their own order


def test_every_tensor_that_follows_is_found_by_cutting_it() -> None:
    """A tensor follows along the axes that a smaller hidden size makes shorter, except for outputs of the pooler."""
    for card, spec in CASES.values():
        layers = tuple(replace(layer, width=7) for layer in card.encoder.layers)
        narrow = replace(card.encoder, embedding=replace(card.encoder.embedding, width=7), layers=layers)
        small = dict(skeleton(replace(card, encoder=narrow), head=spec).named_parameters())
        cut = {
            (name, axis)
            for name, tensor in skeleton(card, head=spec).named_parameters()
            for axis, length in enumerate(tensor.shape)
            if small[name].shape[axis] != length
        }
        found = {(p.name, p.axis) for g in stream_groups(card, spec) for p in (*g.weights, *g.biases)}
        unread = {("transformer.pooler.weight", 0), ("transformer.pooler.bias", 0)}  # where no head reads the pooler
        assert found <= cut
        assert cut - found <= (unread if card.pooler and pooled_group(card, spec) is None else set())


def test_the_group_stands_for_all_layers_and_scores_matrices() -> None:
    group = hidden_group(BERT, SPEC)
    assert (group.layer, group.kind, group.members) == (-1, "hidden", 16)
    tensors = dict(skeleton(BERT, head=SPEC).named_parameters())
    assert all(tensors[piece.name].dim() == 2 for piece in group.weights)
    assert all(tensors[piece.name].dim() == 1 for piece in group.biases)


def test_what_the_pooler_gives_has_an_order_of_its_own() -> None:
    found = axes(BERT, SPEC)
    assert found["pooler.weight"] == [1]
    assert "pooler.bias" not in found
    assert "head.output.weight" not in found
    group = pooled_group(BERT, SPEC)
    assert group is not None
    whole, inputs = model(2, of=BERT), inputs_of(BERT)
    before = whole.transformer(*inputs).pooled, whole(*inputs)
    whole.load_state_dict(moved(group, dict(whole.named_parameters())))
    assert torch.allclose(whole.transformer(*inputs).pooled, before[0][:, ORDER], atol=1e-6)
    assert torch.allclose(whole(*inputs), before[1], atol=1e-6)


@pytest.mark.parametrize(("card", "head"), [(BERT, SPANS), (BERT, None), (VIT, SPEC), (ELECTRA, SPEC)])
def test_a_pooler_that_nobody_reads_is_no_group(card: Card, head: HeadSpec | None) -> None:
    assert pooled_group(card, head) is None
    assert [group.kind for group in stream_groups(card, head)] == ["hidden"]


def test_narrow_tables_do_not_follow_even_when_they_are_as_wide() -> None:
    found = axes(ELECTRA, HeadSpec("masked-lm"))
    assert not any("tokens" in name or "positions" in name or "types" in name for name in found)
    assert found["encoder.embedding.widen.weight"] == [0]
    assert found["head.dense.weight"] == [1]
    assert axes(BERT, HeadSpec("masked-lm"))["head.dense.weight"] == [0, 1]


def test_layers_with_parts_left_out_or_more_maps_will_do() -> None:
    blocks = (Block(16, Identity(), (24,)), Block(16, Attention(2, 4, "wma"), ()), Block(16, Attention(2, 4), (16, 16)))
    card = Card(encoder=Stack(FrameEmbedding(16, 16), blocks), classes=3)
    found = axes(card, None)
    assert found["encoder.layers.2.feed_forward.maps.0.weight"] == [1]
    assert "encoder.layers.2.feed_forward.maps.1.weight" not in found
    assert found["encoder.layers.2.feed_forward.maps.2.weight"] == [0]
    assert "encoder.embedding.norm.weight" not in found
    assert found["classes.weight"] == [1]


def test_a_tensor_of_which_nothing_is_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_more(*arguments: Any, **named: Any) -> nn.Module:
        built = skeleton(*arguments, **named)
        built.get_submodule("transformer.encoder.layers.1").gate = nn.Parameter(torch.empty(16))
        return built

    monkeypatch.setattr(groups_module, "skeleton", with_more)
    with pytest.raises(IllegalInput, match=r"the tensor transformer\.encoder\.layers\.1\.gate follows it"):
        hidden_group(BERT, SPEC)


def of(*blocks: Block, positions: Any = "learned") -> Card:
    return Card(encoder=Stack(TokenEmbedding(30, 16, positions=positions), blocks))


ORDINARY = Block(16, Attention(4, 4), (24,))


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (of(ORDINARY, Block(16, Transform("dft"), (24,))), "layer 1 is not a self-attention layer"),
        (of(Block(16, Convolution(3), (24,))), "layer 0 is not a self-attention layer"),
        (of(ORDINARY, replace(ORDINARY, width=8)), "all layers are as wide as the embedding"),
        (of(ORDINARY, positions="sinusoidal"), "sinusoidal positions stand in a fixed order"),
        (Card(decoder=Stack(TokenEmbedding(30, 16), (ORDINARY,), causal=True)), "this is a decoder design"),
    ],
)
def test_designs_that_cannot_follow_are_refused(card: Card, message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        hidden_group(card, None)


def test_sinusoidal_positions_in_narrow_tables_will_do() -> None:
    table = TokenEmbedding(30, 16, factorised=8, positions="sinusoidal")
    assert hidden_group(Card(encoder=Stack(table, (ORDINARY,))), SPEC).members == 16
