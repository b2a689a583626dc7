from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.nn.cases import MIXERS, block, stack, translators
from tests.nn.helpers import filled, hollow
from tests.nn.helpers import run as run_whole

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import (
    Attention,
    DynamicConvolution,
    Identity,
    LightweightConvolution,
    Mixer,
    OpGraph,
    Relative,
    RelativeAttention,
    SeparableConvolution,
    Transform,
)
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.nn.build import build, skeleton
from formwright.nn.inherit import Slots, extract, inherit, run
from formwright.space.elastic import elastic
from formwright.space.zoo import load_card
from formwright.space.zoo.translation import evolved

TABLE = TokenEmbedding(50, 32, length=16, types=2)
IDS = torch.randint(0, 50, (3, 9), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(9)[None, :] < torch.tensor([9, 4, 1])[:, None]


def encoder(*layers: Block, **details: Any) -> Card:
    return Card(encoder=Stack(replace(TABLE, width=layers[0].width), layers), **details)


def weights_of(card: Card, **details: Any) -> dict[str, torch.Tensor]:
    return dict(build(card, **details).named_parameters())


LAYER = Block(32, Attention(4, 8, relative=Relative(31)), (64, 48))
BASE = encoder(*[LAYER] * 3, pooler=True)
FULL_TERM = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), ("add", "V", "P"))
FEWER_LETTERS = ("matmul", ("softmax", ("matmul", "K", ("transpose", "Q"))), "V")


def changed(**changes: Any) -> tuple[Card, Card]:
    return BASE, encoder(*[replace(LAYER, **changes)] * 3, pooler=True)


def mixers(large: Mixer, small: Mixer, width: int) -> tuple[Card, Card]:
    return encoder(Block(32, large)), encoder(Block(width, small))


SMALLER = {
    "fewer heads": changed(mixer=Attention(2, 8, relative=Relative(31))),
    "narrower feed-forward": changed(feed_forward=(17, 5)),
    "narrower model": changed(width=24),
    "fewer layers": (BASE, encoder(LAYER, LAYER, pooler=True)),
    "shorter relative table": changed(mixer=Attention(4, 8, relative=Relative(15))),
    "a part left out": (BASE, encoder(replace(LAYER, mixer=Identity()), LAYER, LAYER, pooler=True)),
    "smaller kernel": mixers(SeparableConvolution(7), SeparableConvolution(3), 16),
    "lightweight": mixers(LightweightConvolution(9, 4), LightweightConvolution(3, 2), 16),
    "transform": mixers(*(Transform("dct", RelativeAttention(heads, 8, 31)) for heads in (4, 2)), 16),
    "dynamic": mixers(DynamicConvolution(5, 4, 8), DynamicConvolution(5, 2, 8), 24),
    "narrower heads": changed(mixer=Attention(3, 6, relative=Relative(31))),
    "op graph with fewer letters": mixers(OpGraph(4, 8, FULL_TERM), OpGraph(2, 8, FEWER_LETTERS), 32),
}


@pytest.mark.parametrize("name", SMALLER)
def test_a_sub_network_run_from_views_equals_the_extracted_model(name: str) -> None:
    large, small = SMALLER[name]
    weights = weights_of(large)
    views = inherit(weights, large, small)
    assert not views.missing
    storages = {weight.untyped_storage().data_ptr() for weight in weights.values()}
    copied = {name for name, view in views.weights.items() if view.untyped_storage().data_ptr() not in storages}
    assert all("mixer" in name for name in copied) if name == "narrower heads" else not copied
    model = skeleton(small).eval()
    extracted = extract(views, small).eval()
    assert torch.equal(run(model, views, IDS, MASK).hidden, extracted(IDS, MASK).hidden)
    assert not {parameter.data_ptr() for parameter in extracted.parameters()} & storages


@pytest.mark.parametrize("name", SMALLER)
def test_gradients_reach_the_shared_weights_and_only_their_used_part(name: str) -> None:
    large, small = SMALLER[name]
    weights = weights_of(large)
    views = inherit(weights, large, small)
    run(skeleton(small).eval(), views, IDS, MASK).hidden.square().sum().backward()
    mixers = [key for key in weights if "layers.0" in key and weights[key].grad is not None and weights[key].grad.any()]
    assert mixers
    for key, view in views.weights.items():
        if view.shape != weights[key].shape and weights[key].grad is not None:
            assert weights[key].grad.count_nonzero() <= view.numel()


@pytest.mark.parametrize("card", ["bert-tiny", "flexibert-bert-tiny", "flexibert-fnet-tiny", "flexibert-convbert-tiny"])
def test_the_same_card_gives_the_same_outputs(card: str) -> None:
    design = load_card(card)
    model = build(design).eval()
    views = inherit(dict(model.named_parameters()), design, design)
    assert not views.missing
    assert torch.equal(run(skeleton(design).eval(), views, IDS, MASK).hidden, model(IDS, MASK).hidden)


def test_kernels_and_relative_tables_are_cut_around_their_centre() -> None:
    large, small = SMALLER["smaller kernel"]
    weights = weights_of(large)
    views = inherit(weights, large, small).weights
    key = "encoder.layers.0.mixer.parts.0.kernel"
    assert torch.equal(views[key], weights[key][:16, 2:5])
    weights = weights_of(BASE)
    key = "encoder.layers.0.mixer.relative.keys"
    shorter = inherit(weights, *SMALLER["shorter relative table"]).weights[key]
    assert torch.equal(shorter, weights[key][:, 8:23])


@pytest.mark.parametrize(
    ("small", "missing"),
    [
        (encoder(Block(32, Attention(4, 9), (64,))), "query_key_value"),  # more channels than the source
        (encoder(Block(32, Attention(4, 8, "wma"), (64,))), "bilinear"),
        (encoder(Block(32, Transform("dft"), (65,))), "feed_forward"),  # wider than the source
        (encoder(Block(32, SeparableConvolution(2), (64,))), "kernel"),
        (encoder(Block(32, Attention(4, 8), (64,), norm="pre")), "query_key_value"),  # meant for the other order
        (encoder(Block(32, Attention(4, 8), (64,), activation="relu")), "feed_forward"),
    ],
)
def test_what_cannot_be_carried_is_reported(small: Card, missing: str) -> None:
    large = encoder(Block(32, Attention(4, 8), (64,)))
    views = inherit(weights_of(large), large, small)
    assert any(missing in name for name in views.missing)
    with pytest.raises(IllegalInput, match="missing"):
        run(skeleton(small), views, IDS)
    model = extract(views, small, seed=3)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def viewer(embedding: PatchEmbedding) -> Card:
    return Card(encoder=Stack(embedding, (Block(embedding.width, Attention(2, 8), (32,)),)))


@pytest.mark.parametrize("small", [PatchEmbedding(12, 4, 32, class_tokens=1), PatchEmbedding(8, 4, 32, class_tokens=2)])
def test_positions_of_patches_are_carried_to_the_same_places_only(small: PatchEmbedding) -> None:
    large = viewer(PatchEmbedding(12, 4, 32, class_tokens=2))
    weights = weights_of(large)
    views = inherit(weights, large, viewer(small))
    assert views.missing == ("encoder.embedding.positions.table",)
    key = "encoder.embedding.class_token"
    assert torch.equal(views.weights[key], weights[key][: small.class_tokens])
    assert not inherit(weights, large, viewer(PatchEmbedding(12, 4, 16, class_tokens=2))).missing


def test_relative_tables_keep_the_meaning_of_distances_and_odd_kernels_their_centre() -> None:
    large, small = SMALLER["shorter relative table"]
    weights = weights_of(large)
    ids = IDS[:, :8]  # eight tokens: every distance is within the shorter table
    small_output = run(skeleton(small).eval(), inherit(weights, large, small), ids).hidden
    large_output = run(skeleton(large).eval(), inherit(weights, large, large), ids).hidden
    torch.testing.assert_close(small_output, large_output)
    large, small = encoder(Block(32, SeparableConvolution(5))), encoder(Block(32, SeparableConvolution(2)))
    assert any("kernel" in name for name in inherit(weights_of(large), large, small).missing)


def test_flexibert_transfer_takes_the_embedding_and_leading_identical_layers_alone() -> None:
    same, other = Block(32, Attention(4, 8), (64,)), Block(32, Attention(2, 16), (64,))
    neighbour, query = encoder(same, same, other, same), encoder(same, same, same, same)
    views = inherit(weights_of(neighbour), neighbour, query, rule="identical")
    layers = {name.split(".")[2] for name in views.weights if ".layers." in name}
    assert layers == {"0", "1"}
    assert "encoder.embedding.tokens.weight" in views.weights
    assert {name.split(".")[2] for name in views.missing} == {"2", "3"}


@pytest.mark.parametrize(("heads", "width"), [(2, 16), (8, 4), (1, 20)])
def test_other_heads_over_the_same_channels_are_the_same_maps(heads: int, width: int) -> None:
    """What queries, keys and values an attention computes does not depend on how its channels are grouped (HAT)."""
    large, small = encoder(Block(32, Attention(4, 8))), encoder(Block(32, Attention(heads, width)))
    weights = weights_of(large)
    views = inherit(weights, large, small)
    assert not views.missing
    name, x = "encoder.layers.0.mixer.query_key_value.weight", torch.randn(5, 32)
    whole, part = (
        (x @ one[name].T).unflatten(-1, (-1, 3, size)) for one, size in ((weights, 8), (views.weights, width))
    )
    channels = heads * width
    assert torch.equal(part.transpose(1, 2).flatten(2), whole.transpose(1, 2).flatten(2)[..., :channels])
    run(skeleton(small).eval(), views, IDS, MASK).hidden.square().sum().backward()
    assert weights[name].grad.count_nonzero() == 3 * channels * 32
    assert torch.equal(
        run(skeleton(small).eval(), views, IDS, MASK).hidden, extract(views, small).eval()(IDS, MASK).hidden
    )


def test_tables_of_distances_do_not_serve_other_heads() -> None:
    views = inherit(weights_of(BASE), *changed(mixer=Attention(8, 4, relative=Relative(31))))
    assert views.missing == tuple(f"encoder.layers.{index}.mixer.relative.keys" for index in range(3))


@pytest.mark.parametrize(("given", "wanted", "layers"), [(12, 6, "0 2 4 6 8 10"), (12, 9, "0 1 2 4 5 6 8 9 10")])
def test_fewer_layers_may_be_spread_over_all(given: int, wanted: int, layers: str) -> None:
    large, small = (encoder(*[Block(8, Attention(1, 8))] * depth) for depth in (given, wanted))
    weights = weights_of(large)
    views = inherit(weights, large, small, depth="even")
    assert not views.missing
    for index, layer in enumerate(layers.split()):
        name = "encoder.layers.{}.mixer.output.weight"
        assert views.weights[name.format(index)].data_ptr() == weights[name.format(layer)].data_ptr()
    deeper = inherit(weights_of(small), small, large, depth="even")
    assert {int(name.split(".")[2]) for name in deeper.missing} == set(range(wanted, given))


@pytest.mark.parametrize("depth", ["first", "even"])
def test_the_projection_behind_the_last_layer_stays_the_last(depth: Any) -> None:
    large, small = (
        Card(encoder=Stack(TABLE, (Block(16, Attention(2, 8)),) * layers, joints="always", out=24)) for layers in (4, 2)
    )
    weights = weights_of(large)
    views = inherit(weights, large, small, depth=depth)
    assert not views.missing
    name = "encoder.projections.{}.weight"
    sources = {0: 0, 1: 1 if depth == "first" else 2, 2: 4}
    assert all(
        views.weights[name.format(index)].data_ptr() == weights[name.format(old)].data_ptr()
        for index, old in sources.items()
    )


def test_a_start_turns_all_tensors_of_a_group_alike() -> None:
    """Turning heads and channels changes no function: the sub-network is that of a network turned beforehand."""
    sizes = ((4, (64, 48)), (2, (9, 7)))
    large, small = (encoder(*[Block(32, Attention(heads, 8), widths)] * 3) for heads, widths in sizes)
    weights = {name: weight.detach() for name, weight in weights_of(large).items()}
    views = inherit(weights, large, small, start=_halfway)
    assert not views.missing
    turned = inherit(weights, large, large, start=_halfway).weights
    assert all(torch.equal(turned[name], weight) for name, weight in weights.items())  # nothing is left out: no turn
    moved = dict(weights)
    for index in range(3):
        layer = f"encoder.layers.{index}"
        for name, axis, by in (
            ("mixer.query_key_value.weight", 0, 3 * 8 * 3),
            ("mixer.query_key_value.bias", 0, 3 * 8 * 3),
            ("mixer.output.weight", 1, 8 * 3),
            ("feed_forward.maps.0.weight", 0, 60),
            ("feed_forward.maps.0.bias", 0, 60),
            ("feed_forward.maps.1.weight", 1, 60),
            ("feed_forward.maps.1.weight", 0, 44),
            ("feed_forward.maps.1.bias", 0, 44),
            ("feed_forward.maps.2.weight", 1, 44),
        ):
            moved[f"{layer}.{name}"] = moved[f"{layer}.{name}"].roll(-by, axis)
    plain = inherit(moved, large, small)
    assert torch.equal(*(run(skeleton(small).eval(), one, IDS, MASK).hidden for one in (views, plain)))


def _halfway(group: str, given: int, wanted: int) -> int:
    return {"heads": 3, "channels 0": 60, "channels 1": 44}[group]


def test_heads_cells_and_decoders_flow() -> None:
    spec = HeadSpec("sequence-classification", 3)
    large, small = SMALLER["narrower model"]
    views = inherit(dict(build(large, head=spec).named_parameters()), large, small, head=spec)
    assert not views.missing
    assert run(skeleton(small, head=spec).eval(), views, IDS, MASK).shape == (3, 3)
    large, small = evolved(64, 4), evolved(32, 2)
    views = inherit(weights_of(large), large, small)
    assert not views.missing
    outputs = run(skeleton(small).eval(), views, IDS, MASK, targets=IDS)
    assert torch.equal(outputs.hidden, extract(views, small).eval()(IDS, MASK, targets=IDS).hidden)


def test_random_sub_networks_of_an_elastic_space_are_complete() -> None:
    card = encoder(*[Block(32, Attention(4, 8), (64,))] * 3, pooler=True)
    space = elastic(card, heads=(0, 1, 2, 4), feed_forward=(0, 16, 40, 64), depths=(1, 2, 3))
    weights, rng = weights_of(card), derive(0, "elastic")
    for _ in range(25):
        small = space.card(space.sample(rng))
        views = inherit(weights, card, small)
        assert not views.missing
        outputs = run(skeleton(small).eval(), views, IDS, MASK).hidden
        assert torch.equal(outputs, extract(views, small).eval()(IDS, MASK).hidden)


def test_what_cannot_shrink_is_not_inherited() -> None:
    small = replace(BASE, encoder=replace(BASE.encoder, embedding=replace(TABLE, vocabulary=40)))
    assert "encoder.embedding.tokens.weight" in inherit(weights_of(BASE), BASE, small).missing
    spec = HeadSpec("masked-lm")
    views = inherit(dict(build(BASE, head=spec).named_parameters()), BASE, small, head=spec)
    assert "head.bias" in views.missing  # its numbers belong to words
    assert "head.dense.weight" in views.weights
    large, small = encoder(Block(32, LightweightConvolution(9, 4))), encoder(Block(16, LightweightConvolution(9, 4)))
    assert any("kernel" in name for name in inherit(weights_of(large), large, small).missing)
    large, small = replace(BASE, classes=5), replace(BASE, classes=3)
    assert {"classes.weight", "classes.bias"} == set(inherit(weights_of(large), large, small).missing)
    assert not inherit(weights_of(large), large, large).missing


CARDS = {"encoder": Card(stack((block(MIXERS["sdp"], "post"),) * 2), pooler=True), **translators()}


@pytest.mark.parametrize("name", CARDS)
def test_a_model_runs_with_lent_weights_as_with_its_own(name: str) -> None:
    owner, empty = filled(hollow(CARDS[name])), hollow(CARDS[name]).double().eval()
    before = dict(empty.named_parameters())
    with Slots(empty).lent(dict(owner.named_parameters())):
        lent = run_whole(empty, 2, 7)
    assert torch.equal(lent.hidden, run_whole(owner, 2, 7).hidden)
    assert all(parameter is before[name] for name, parameter in empty.named_parameters())


def test_weights_may_come_from_another_family() -> None:
    decoder = Card(decoder=stack((block(MIXERS["sdp"], "post"),), causal=True))
    assert set(inherit(weights_of(decoder), decoder, CARDS["encoder"]).weights) == set()


def test_gradients_reach_the_lent_tensors() -> None:
    owner, empty = filled(hollow(CARDS["encoder"])), hollow(CARDS["encoder"]).double().eval()
    whole = {name: weight.detach().clone().requires_grad_() for name, weight in owner.named_parameters()}
    with Slots(empty).lent({name: weight * 1.0 for name, weight in whole.items()}):
        run_whole(empty).hidden.sum().backward()
    run_whole(owner).hidden.sum().backward()
    for name, parameter in owner.named_parameters():
        assert (parameter.grad is None) == (whole[name].grad is None)
        if parameter.grad is not None:
            assert torch.allclose(parameter.grad, whole[name].grad)


def test_weights_come_back_after_an_error() -> None:
    model = filled(hollow(CARDS["encoder"]))
    name, own = next(iter(model.named_parameters()))
    model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), Slots(model).lent({name: torch.zeros_like(own)}):
        run_whole(model)
    assert dict(model.named_parameters())[name] is own
    wrong = {name: own * 0, "nonsense": own}
    with pytest.raises(IllegalInput, match="no weight called 'nonsense'"), Slots(model).lent(wrong):
        pass
    assert dict(model.named_parameters())[name] is own


def test_an_attention_without_biases_reads_nothing_of_one_with_them() -> None:
    whole, bare = encoder(Block(32, Attention(4, 8), (64,))), encoder(Block(32, Attention(4, 8, bias=False), (64,)))
    found = inherit(weights_of(whole), whole, bare)
    assert {f"encoder.layers.0.mixer.{name}.weight" for name in ("output", "query_key_value")} <= set(found.missing)
    assert "encoder.layers.0.feed_forward.maps.0.weight" in found.weights


def test_what_the_weights_lack_is_missing_besides_what_their_design_lacks() -> None:
    larger = encoder(replace(LAYER, feed_forward=(64, 50)), LAYER, LAYER, pooler=True)
    missing = inherit(weights_of(BASE), BASE, larger).missing
    assert missing
    given = {name: weight for name, weight in weights_of(BASE).items() if name != "pooler.weight"}
    assert inherit(given, BASE, larger).missing == (*missing, "pooler.weight")
