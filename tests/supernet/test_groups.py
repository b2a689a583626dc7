from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.supernet.experts import Experts, Lobes
from tests.supernet.small import BERT, CASES, ELECTRA, FAMILIES, SPANS, SPEC, VIT, inputs_of, model
from torch import nn

from formwright.arch.card import Card
from formwright.arch.embeddings import FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention, Identity, LightweightConvolution, Transform
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build, skeleton
from formwright.nn.settings import Settings
from formwright.space.zoo import load_card, load_space
from formwright.supernet.automatic import full_widths, sub_network
from formwright.supernet.groups import Group, groups, stream_groups

ORDER = torch.randperm(16, generator=torch.Generator().manual_seed(5))


def moved(group: Group, weights: dict[str, torch.Tensor], order: torch.Tensor = ORDER) -> dict[str, torch.Tensor]:
    result = dict(weights)
    for axis in (*group.weights, *group.biases):
        result[axis.name] = axis.taken(result[axis.name], order)
    return result


def copied(whole: nn.Module) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in whole.named_parameters()}


@torch.no_grad()
def load(whole: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    for name, weight in whole.named_parameters():  # a table that two stacks share has one name
        weight.copy_(weights[name])


def by_kind(card: Card, head: HeadSpec | None) -> dict[str, Group]:
    return {group.kind: group for group in stream_groups(card, head)}


def axes(card: Card, head: HeadSpec | None, kind: str = "hidden") -> dict[str, list[int]]:
    group, found = by_kind(card, head)[kind], {}
    for axis in (*group.weights, *group.biases):
        found.setdefault(axis.name.removeprefix("transformer."), []).append(axis.axis)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", FAMILIES)
def test_every_group_may_be_put_into_any_order(case: str, seed: int) -> None:
    card, spec = FAMILIES[case]
    whole, inputs = model(seed, of=card, spec=spec), inputs_of(card)
    answers, weights = whole(*inputs), copied(whole)
    generator = torch.Generator().manual_seed(seed)
    for group in (*groups(card, spec), *stream_groups(card, spec)):
        before = weights
        weights = moved(group, weights, torch.randperm(group.members, generator=generator).flip(0))
        follow = {axis.name for axis in (*group.weights, *group.biases)}
        assert {name for name in before if not torch.equal(before[name], weights[name])} <= follow
    load(whole, weights)
    assert torch.allclose(whole(*inputs), answers, atol=1e-4)


@pytest.mark.parametrize("case", FAMILIES)
def test_a_group_without_one_of_its_tensors_would_change_the_answers(case: str) -> None:
    """Nothing in a group is idle, so that what the test above sees is not by chance."""
    card, spec = FAMILIES[case]
    whole, inputs = model(1, of=card, spec=spec), inputs_of(card)
    answers, weights = whole(*inputs), copied(whole)
    for group in (*groups(card, spec), *stream_groups(card, spec)):
        order = torch.arange(group.members).roll(1)
        changed = moved(group, weights, order)
        left_out = group.weights[-1].name
        load(whole, {**changed, left_out: weights[left_out]})
        assert not torch.allclose(whole(*inputs), answers, atol=1e-4), (group.layer, group.kind)


@pytest.mark.parametrize(
    "name", ["autoformer-nano", "hat-nano", "gpt-nano", "lighthubert-nano", "flexibert-nano", "supershaper-nano"]
)
def test_heads_and_channels_of_published_designs_may_be_put_into_any_order(name: str) -> None:
    space = load_space(name)
    card = space.card(space.sample(derive(1, name)))
    whole = build(card, Settings(dropout=0.0), seed=1).eval()
    inputs = _inputs(card)
    before, weights = whole(*inputs).hidden, copied(whole)
    generator = torch.Generator().manual_seed(1)
    for group in groups(card):
        weights = moved(group, weights, torch.randperm(group.members, generator=generator))
    load(whole, weights)
    assert torch.allclose(whole(*inputs).hidden, before, atol=1e-4)


def _inputs(card: Card) -> tuple[torch.Tensor | None, ...]:
    table = card.stacks[0].embedding
    if isinstance(table, PatchEmbedding):
        return (torch.randn(2, table.channels, table.image, table.image),)
    if isinstance(table, FrameEmbedding):
        return (torch.randn(2, 7, table.features),)
    tokens = torch.randint(min(table.vocabulary, 50), (2, 7))
    return (tokens, None, None, tokens) if card.family == "encoder-decoder" else (tokens,)


def test_heads_and_channels_of_all_layers_are_listed_from_the_input_up() -> None:
    found = [(group.layer, group.kind, group.members) for group in groups(*FAMILIES["translator"])]
    assert found == [
        *((layer, kind, size) for layer in (0, 1) for kind, size in (("heads", 4), ("feed_forward", 24))),
        *((layer, *one) for layer in (2, 3) for one in (("heads", 3), ("cross", 2), ("feed_forward", 20))),
    ]
    found = {(group.layer, group.kind) for group in groups(*FAMILIES["operations"])}
    assert found == {(1, "heads"), (3, "heads"), *((layer, "feed_forward") for layer in range(5))}
    assert [group.kind for group in groups(*FAMILIES["frames"])][2:] == ["heads", "feed_forward_1", "feed_forward_2"]
    with pytest.raises(IllegalInput, match="no layer of this encoder design"):
        groups(Card(encoder=Stack(TokenEmbedding(30, 16), (Block(16, Identity()),))))


def test_heads_that_no_declaration_names_are_no_group() -> None:
    blocks = (Block(16, Lobes(4, 3), (12,)), Block(16, Experts(3, 4)))
    found = [(group.layer, group.kind, group.members) for group in groups(Card(Stack(TokenEmbedding(30, 16), blocks)))]
    assert found == [(0, "feed_forward", 12), (1, "mixer_experts", 3)]


def test_a_decoder_that_reads_its_encoder_in_a_fixed_order_has_no_hidden_size(monkeypatch: pytest.MonkeyPatch) -> None:
    card, spec = FAMILIES["translator"]
    monkeypatch.setattr(CrossAttention, "ordered", True)
    with pytest.raises(IllegalInput, match="layer 0 of the decoder has a cross-attention"):
        stream_groups(card, spec)


def test_a_translator_has_two_hidden_sizes_unless_it_has_one_table() -> None:
    assert list(by_kind(*FAMILIES["translator"])) == ["hidden", "decoder hidden"]
    assert axes(*FAMILIES["translator"])["decoder.layers.1.cross.key_value.weight"] == [1]  # the encoder's
    assert axes(*FAMILIES["translator"], "decoder hidden")["decoder.layers.1.cross.query.weight"] == [1]
    assert list(by_kind(*FAMILIES["translator with one table"])) == ["hidden"]
    assert list(by_kind(*FAMILIES["narrow translator"])) == ["hidden", "decoder hidden"]
    card, spec = FAMILIES["translator with one table"]
    narrow = replace(card.decoder.embedding, factorised=16)
    mixed = replace(card, decoder=replace(card.decoder, embedding=narrow))
    with pytest.raises(IllegalInput, match="narrow for one of the stacks"):
        stream_groups(mixed, spec)


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_between_layers_move_and_the_answers_stay(case: str) -> None:
    card, spec = CASES[case]
    whole = model(1, of=card, spec=spec)
    inputs = inputs_of(card)
    before, answers = whole.transformer(*inputs), whole(*inputs)
    whole.load_state_dict(moved(by_kind(card, spec)["hidden"], dict(whole.named_parameters())))
    after = whole.transformer(*inputs)
    assert torch.allclose(whole(*inputs), answers, atol=1e-5)
    for old, new in zip(before.layers, after.layers, strict=True):
        assert torch.allclose(new, old[..., ORDER], atol=1e-5)


def test_a_bare_transformer_has_names_without_a_prefix() -> None:
    whole = build(BERT, Settings(dropout=0.0), seed=3).eval()
    inputs = inputs_of(BERT)
    before = whole(*inputs)
    whole.load_state_dict(moved(by_kind(BERT, None)["hidden"], dict(whole.named_parameters())))
    after = whole(*inputs)
    assert torch.allclose(after.hidden, before.hidden[..., ORDER], atol=1e-5)
    assert torch.allclose(after.pooled, before.pooled, atol=1e-6)  # the pooler's outputs have their own order


def test_every_tensor_that_follows_is_found_by_cutting_it() -> None:
    """A tensor follows along the axes that smaller hidden sizes make shorter, except for outputs of the pooler."""
    for card, spec in FAMILIES.values():
        if card == FAMILIES["operations"][0]:
            continue  # a lightweight convolution of another width has other heads
        small = dict(skeleton(sub_network(card, full_widths(card), 7), head=spec).named_parameters())
        cut = {
            (name, axis)
            for name, tensor in skeleton(card, head=spec).named_parameters()
            for axis, length in enumerate(tensor.shape)
            if small[name].shape[axis] != length
        }
        found = {(one.name, one.axis) for group in stream_groups(card, spec) for one in (*group.weights, *group.biases)}
        unread = {("transformer.pooler.weight", 0), ("transformer.pooler.bias", 0)}  # where no head reads the pooler
        assert found <= cut
        assert cut - found <= (unread if card.pooler and "pooled" not in by_kind(card, spec) else set())


def test_the_group_stands_for_all_layers_and_scores_matrices() -> None:
    group = by_kind(BERT, SPEC)["hidden"]
    assert (group.layer, group.kind, group.members) == (-1, "hidden", 16)
    tensors = dict(skeleton(BERT, head=SPEC).named_parameters())
    assert all(tensors[axis.name].dim() == 2 for axis in group.weights)
    assert all(tensors[axis.name].dim() == 1 for axis in group.biases)


def test_what_the_pooler_gives_has_an_order_of_its_own() -> None:
    found = axes(BERT, SPEC)
    assert found["pooler.weight"] == [1]
    assert "pooler.bias" not in found
    assert "head.output.weight" not in found
    group = by_kind(BERT, SPEC)["pooled"]
    whole, inputs = model(2, of=BERT), inputs_of(BERT)
    before = whole.transformer(*inputs).pooled, whole(*inputs)
    whole.load_state_dict(moved(group, dict(whole.named_parameters())))
    assert torch.allclose(whole.transformer(*inputs).pooled, before[0][:, ORDER], atol=1e-6)
    assert torch.allclose(whole(*inputs), before[1], atol=1e-6)


@pytest.mark.parametrize(("card", "head"), [(BERT, SPANS), (BERT, None), (VIT, SPEC), (ELECTRA, SPEC)])
def test_a_pooler_that_nobody_reads_is_no_group(card: Card, head: HeadSpec | None) -> None:
    assert list(by_kind(card, head)) == ["hidden"]


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


def of(*blocks: Block, positions: Any = "learned") -> Card:
    return Card(encoder=Stack(TokenEmbedding(30, 16, positions=positions), blocks))


ORDINARY = Block(16, Attention(4, 4), (24,))


@pytest.mark.parametrize(
    ("card", "facts"),
    [
        (of(ORDINARY, Block(16, Transform("dft"), (24,))), ["layer 1 of the encoder", "transform"]),
        (of(Block(16, LightweightConvolution(3, 4, gated=False))), ["layer 0", "lightweight-convolution"]),
        (of(ORDINARY, replace(ORDINARY, width=8)), ["equally wide"]),
        (of(ORDINARY, positions="sinusoidal"), ["sinusoidal positions"]),
        (load_card("evolved-transformer-base"), ["cell"]),
        (replace(of(ORDINARY), encoder=replace(of(ORDINARY).encoder, joints="always", out=8)), ["sizes [8, 16]"]),
    ],
)
def test_designs_that_cannot_follow_are_refused(card: Card, facts: list[str]) -> None:
    with pytest.raises(IllegalInput) as caught:
        stream_groups(card, None)
    assert all(fact in str(caught.value) for fact in facts)


def test_sinusoidal_positions_in_narrow_tables_will_do() -> None:
    table = TokenEmbedding(30, 16, factorised=8, positions="sinusoidal")
    assert by_kind(Card(encoder=Stack(table, (ORDINARY,))), SPEC)["hidden"].members == 16
