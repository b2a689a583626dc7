import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from tests.supernet.experts import Experts

from formwright.arch.card import Card
from formwright.arch.embeddings import Embedding, FrameEmbedding, PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, DynamicConvolution, Identity, Relative, SeparableConvolution, Transform
from formwright.core.errors import IllegalDesign, IllegalInput
from formwright.cost import params
from formwright.space import Fields
from formwright.space.elastic import ElasticChoices, FurtherSizes, elastic
from formwright.space.zoo import load_card, load_space
from formwright.supernet.automatic import sub_network

BERT = load_card("bert-mini")  # 4 layers, 4 heads, feed-forward 1024
FITTING: dict[str, Any] = {"heads": (2, 4), "feed_forward": (512, 1024)}
HEADS, CHANNELS, WIDTH = 4, 64, 16
CARD = Card(encoder=Stack(TokenEmbedding(50, WIDTH, length=16), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 2))
UNEVEN = ElasticChoices(CARD, ((1, 4), (0, 2, 4)), ((16, 64), (0, 32)))
ALIKE = ElasticChoices(CARD, ((1, 2, 4),) * 2, ((16, 64),) * 2)
HIDDEN = ElasticChoices(CARD, ((1, 4), (4,)), ((64,), (16, 64)), (8, 12, 16))
ALL = [UNEVEN, ALIKE, HIDDEN]


def layer(heads: int, feed_forward: int) -> Fields:
    return Fields.of(heads=heads, feed_forward=feed_forward)


def blocks(card: Card) -> list[tuple[int, int]]:
    """List heads and feed-forward width of each layer, 0 for a part that does not exist."""
    found = []
    for block in card.stacks[0].layers:
        heads = block.mixer.heads if isinstance(block.mixer, Attention) else 0
        found.append((heads, sum(block.feed_forward)))
    return found


def test_each_layer_may_have_its_own_list() -> None:
    heads = [(4,), (2, 4), (1, 2), (3,)]
    space = elastic(BERT, heads=heads, feed_forward=(512, 1024), name="mine")
    assert (space.name, space.count()) == ("mine", 1 * 2 * 2 * 1 * 2**4)
    rng = default_rng(1)
    for _ in range(20):
        design = space.sample(rng)
        counts = [count for count, _ in blocks(space.card(design))]
        assert all(count in allowed for count, allowed in zip(counts, heads, strict=True))
        assert space.from_json(space.to_json(design)) == design


def test_lists_serve_all_layers_or_single_ones() -> None:
    space = load_space("elastic")
    full = Fields.of(layers=(layer(12, 3072),) * 12)
    assert space.count() == 25**12
    assert space.contains(full)
    assert space.card(full) == load_card("bert-base")
    space = elastic(BERT, heads=(1, 2, 4), feed_forward=(256, 1024))
    design = Fields.of(layers=(layer(1, 256), layer(4, 1024), layer(2, 256), layer(4, 256)))
    assert space.count() == 6**4
    assert space.contains(design)
    assert blocks(space.card(design)) == [(1, 256), (4, 1024), (2, 256), (4, 256)]
    space = elastic(BERT, heads=[[4], [4], [2], [2]], feed_forward=[[7], [8], [9], [10, 11]])
    assert space.count() == 2
    assert [blocks(space.card(design))[3] for design in space.enumerate()] == [(2, 10), (2, 11)]
    assert elastic(BERT, [(2, 4)] * 4, (512, 1024)).root == elastic(BERT, (2, 4), (512, 1024)).root
    assert elastic(BERT, range(1, 5), range(1, 1025)).count() == (4 * 1024) ** 4


def test_depth_keeps_the_leading_layers() -> None:
    first, *_, last = BERT.stacks[0].layers
    marked = replace(
        BERT, encoder=replace(BERT.stacks[0], layers=(replace(first, activation="relu"), first, first, last))
    )
    space = elastic(marked, heads=(4,), feed_forward=(1024,), depths=(2, 4))
    assert space.count() == 2
    short, whole = map(space.card, space.enumerate())
    assert whole == marked
    assert short.stacks[0].layers == marked.stacks[0].layers[:2]


def test_zero_leaves_a_part_out() -> None:
    space = elastic(BERT, heads=(0, 4), feed_forward=(0, 1024))
    card = space.card(Fields.of(layers=(layer(0, 1024), layer(4, 0), layer(0, 0), layer(4, 1024))))
    found = card.stacks[0].layers
    assert found[0] == Block(256, Identity(), (1024,))
    assert found[1] == Block(256, Attention(4, 64))
    assert found[2] == Block(256, Identity())
    assert found[3] == BERT.stacks[0].layers[3]
    attention, feed_forward = 4 * (256 * 256 + 256) + 512, 256 * 1024 + 1024 + 1024 * 256 + 256 + 512
    assert params(BERT) - params(card) == 2 * attention + 2 * feed_forward


def test_the_hidden_size_is_one_gene_for_all_layers() -> None:
    space = elastic(BERT, heads=(2, 4), feed_forward=(512, 1024), depths=(2, 4), hidden=(96, 128, 256))
    assert space.count() == 3 * (4**2 + 4**4)
    design = Fields.of(hidden=96, layers=(layer(2, 512), layer(4, 1024)))
    assert space.contains(design)
    assert space.from_json(space.to_json(design)) == design
    small = Card(
        encoder=Stack(
            TokenEmbedding(30_522, 96, types=2),
            (Block(96, Attention(2, 64), (512,)), Block(96, Attention(4, 64), (1024,))),
        ),
        pooler=True,
    )
    assert space.card(design) == small
    assert space.card(Fields.of(hidden=256, layers=(layer(4, 1024),) * 4)) == BERT


@pytest.mark.parametrize(
    "embedding",
    [
        TokenEmbedding(100, 32, factorised=8),
        TokenEmbedding(100, 32, factorised=24),
        PatchEmbedding(8, 4, 32, class_tokens=2),
        FrameEmbedding(10, 32),
    ],
)
def test_all_embeddings_follow_the_hidden_size(embedding: Embedding) -> None:
    card = Card(Stack(embedding, (Block(32, Attention(4, 8), (64,), norm="pre"),), final_norm=True), classes=3, idle=5)
    space = elastic(card, heads=(4,), feed_forward=(64,), hidden=(16,))
    layers = (replace(card.encoder.layers[0], width=16),)
    narrow = replace(card.encoder, embedding=replace(embedding, width=16), layers=layers)
    assert space.card(next(space.enumerate())) == replace(card, encoder=narrow)


def test_everything_else_stays_as_it_was() -> None:
    mixer = Attention(4, 8, "wma", Relative(9), bias=False)
    block = Block(32, mixer, (64,), "relu", "pre")
    table = TokenEmbedding(100, 32, positions="relative")
    card = Card(Stack(table, (block, block), final_norm=True), classes=3, idle=5)
    space = elastic(card, heads=(2, 4), feed_forward=(32, 64))
    smaller = replace(block, mixer=replace(mixer, heads=2), feed_forward=(32,))
    expected = replace(card, encoder=replace(card.stacks[0], layers=(smaller, block)))
    assert space.card(Fields.of(layers=(layer(2, 32), layer(4, 64)))) == expected


def test_a_design_whose_relative_layers_are_all_left_out_has_no_positions() -> None:
    block = Block(32, Attention(2, 16, relative=Relative(9)), (64,))
    card = Card(Stack(TokenEmbedding(100, 32, positions="relative"), (block, block)))
    space = elastic(card, heads=(0, 2))
    cards = [space.card(design) for design in space.enumerate()]
    none = [all(isinstance(layer.mixer, Identity) for layer in one.stacks[0].layers) for one in cards]  # type: ignore[union-attr]
    assert sorted(none) == [False] * 3 + [True]
    assert [one.stacks[0].embedding.positions == "none" for one in cards] == none
    assert sub_network(card, ((0, 64), (0, 64))) == cards[none.index(True)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": (0, 5)}, r"heads of layer 0 .* 0 and the encoder's 4, not \[0, 5\]"),
        ({"heads": (-1,)}, r"heads of layer 0 .* 0 and the encoder's 4, not \[-1\]"),
        ({"heads": ()}, r"heads of layer 0 .* 0 and the encoder's 4, not \[\]"),
        ({"heads": (1, 2.5)}, r"heads of layer 0 must be whole numbers .* not \[1, 2.5\]"),
        ({"feed_forward": (8, True)}, r"feed_forward of layer 0 must be whole numbers .* not \[8, True\]"),
        ({"heads": [(4,), (4,), (), (4,)]}, r"heads of layer 2 must be .* not \[\]"),
        ({"heads": [(4,)] * 3}, r"heads has 3 lists of widths for 4 layers"),
        ({"feed_forward": (1025,)}, r"feed_forward of layer 0 .* 0 and the encoder's 1024, not \[1025\]"),
        ({"feed_forward": [(8,)] * 5}, r"feed_forward has 5 lists of widths for 4 layers"),
        ({"heads": (4, 4)}, r"options must be distinct"),
        ({"depths": (0, 4)}, r"depths must lie between 1 and the encoder's 4 layers, not \[0, 4\]"),
        ({"depths": (5,)}, r"depths must lie between 1 and the encoder's 4 layers, not \[5\]"),
        ({"hidden": (0, 256)}, r"hidden must be whole numbers between 1 and the encoder's 256, not \[0, 256\]"),
        ({"hidden": (257,)}, r"hidden must be whole numbers between 1 and the encoder's 256, not \[257\]"),
        ({"hidden": (True, 256.0)}, r"hidden must be whole numbers between 1 and .* not \[True, 256.0\]"),
        ({"hidden": (64, 64)}, r"options must be distinct"),
        ({"depths": (2, 4), "heads": [(4,)] * 4}, r"free depths need one list of widths for all layers"),
        ({"depths": (2, 4), "feed_forward": [(8,)] * 4}, r"free depths need one list of widths for all layers"),
    ],
)
def test_lists_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalInput, match=message):
        elastic(BERT, **(FITTING | arguments))


TRANSLATOR = load_card("transformer-base")  # 6 and 6 layers of 8 heads, feed-forward 2048, one token table
DECODER = Card(decoder=Stack(TokenEmbedding(50, WIDTH), (Block(WIDTH, Attention(HEADS, 4), (CHANNELS,)),) * 3, True))
KERNELS = Card(
    encoder=Stack(
        TokenEmbedding(50, WIDTH),
        (
            Block(WIDTH, SeparableConvolution(7), (CHANNELS,)),
            Block(WIDTH, DynamicConvolution(5, HEADS, 4), (CHANNELS, 2 * CHANNELS)),
            Block(WIDTH, Transform("dft"), (CHANNELS,)),
        ),
    )
)


def test_a_translator_has_sizes_for_each_of_its_stacks() -> None:
    space = elastic(TRANSLATOR, heads=(4, 8), feed_forward={"decoder": (1024, 2048)}, cross=(2, 8), hidden=(256, 512))
    assert space.count() == 2 * 2**6 * (2 * 2 * 2) ** 6  # one hidden size, because there is one token table
    rng = default_rng(0)
    for _ in range(10):
        design = space.sample(rng)
        assert space.from_json(json.loads(json.dumps(space.to_json(design)))) == design
        card = space.card(design)
        assert {layer.width for stack in card.stacks for layer in stack.layers} == {design.hidden}
        assert [layer.mixer.heads for layer in card.encoder.layers] == [one.heads for one in design.encoder.layers]
        assert [layer.cross.heads for layer in card.decoder.layers] == [one.cross for one in design.decoder.layers]
        assert {layer.feed_forward for layer in card.encoder.layers} == {(2048,)}
    apart = replace(TRANSLATOR, share_embedding=False)
    assert elastic(apart, hidden={"encoder": (256, 512), "decoder": (128, 256, 512)}).count() == 6
    assert elastic(apart, depths={"decoder": (2, 6)}).count() == 2
    short = elastic(apart, depths=(2,))
    assert [len(stack.layers) for stack in short.card(next(short.enumerate())).stacks] == [2, 2]
    with pytest.raises(IllegalInput, match="share a token table"):
        elastic(TRANSLATOR, hidden={"encoder": (256, 512)})
    without = elastic(TRANSLATOR, cross=(0,))
    assert {layer.cross for layer in without.card(next(without.enumerate())).decoder.layers} == {None}


def test_a_decoder_is_elastic_like_an_encoder() -> None:
    space = elastic(DECODER, heads=(2, 4), feed_forward=(32, 64), depths=(1, 3), hidden=(8, 16))
    assert space.count() == 2 * (4 + 4**3)
    card = space.card(Fields.of(hidden=8, layers=(layer(2, 64),)))
    assert card == Card(decoder=Stack(TokenEmbedding(50, 8), (Block(8, Attention(2, 4), (64,)),), True))


def test_kernels_stacked_maps_and_parts_that_stay_whole() -> None:
    """Each layer has the sizes of the parts that it has; a transform has none."""
    space = elastic(KERNELS, heads=(2, 4), kernels=[(3, 7), (), ()], feed_forward=(32, 64))
    assert space.count() == 2 * 2 * 2 * 2 * 2 * 2
    small = space.card(
        space.from_json(
            {
                "layers": {
                    "layer_0": {"kernel": 3, "feed_forward": 64},
                    "layer_1": {"heads": 2, "feed_forward_1": 32, "feed_forward_2": 64},
                    "layer_2": {"feed_forward": 32},
                }
            }
        )
    ).encoder.layers
    assert small[0] == Block(WIDTH, SeparableConvolution(3), (64,))
    assert small[1] == Block(WIDTH, DynamicConvolution(5, 2, 4), (32, 64))
    assert small[2] == Block(WIDTH, Transform("dft"), (32,))
    with pytest.raises(IllegalInput, match="kernels of layer 0"):
        elastic(KERNELS, kernels=[(4,), (), ()])
    with pytest.raises(IllegalInput, match=r"kernels .* layer 1"):
        elastic(KERNELS, kernels=[(3, 7), (3, 5), ()])  # a dynamic convolution writes whole kernels
    with pytest.raises(IllegalInput, match=r"feed_forward of layer 1 .* between 1 and"):
        elastic(KERNELS, feed_forward=(0, 64))  # one of several maps cannot be left out
    with pytest.raises(IllegalInput, match="cross cannot be chosen"):
        elastic(KERNELS, cross=(1,))
    with pytest.raises(IllegalInput, match="layers of one kind"):
        elastic(KERNELS, feed_forward=(32,), depths=(1, 2))


def test_any_group_of_an_operation_can_be_chosen_by_its_name() -> None:
    blocks = tuple(Block(WIDTH, mixer, (CHANNELS,)) for mixer in (Experts(4, 3), Attention(HEADS, 4)))
    card = Card(encoder=Stack(TokenEmbedding(50, WIDTH), blocks))
    space = elastic(card, heads=(2, 4), mixer_experts=(1, 2, 4))
    assert space.count() == 3 * 2
    found = [space.card(design).encoder.layers for design in space.enumerate()]
    assert {(first.mixer, second.mixer) for first, second in found} == {
        (Experts(experts, 3), Attention(heads, 4)) for experts in (1, 2, 4) for heads in (2, 4)
    }
    with pytest.raises(IllegalInput, match="mixer_experts of layer 0"):
        elastic(card, mixer_experts=(0, 4))  # it is not said that nothing remains without any
    choices = ElasticChoices(card, ((), (2, 4)), further=(FurtherSizes("mixer_experts", ((1, 4), ())),))
    assert choices.count == 4
    assert choices.smallest.encoder.layers[0].mixer == Experts(1, 3)
    assert choices.space.card(choices.design(((4, CHANNELS), (2, CHANNELS)))).encoder.layers[1].mixer.heads == 2
    with pytest.raises(IllegalDesign, match="mixer_experts"):
        ElasticChoices(card, further=(FurtherSizes("mixer_experts", ((1, 4), (2,))),))


def test_a_cell_stays_as_it_is() -> None:
    card = load_card("evolved-transformer-base")
    space = elastic(card, name="whole")
    assert space.card(next(space.enumerate())) == card
    with pytest.raises(IllegalInput, match="layers of the encoder to be blocks as wide"):
        elastic(card, hidden=(64,))


def widths(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.sets(st.integers(0, most), min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))


def per_layer(most: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    return st.tuples(widths(most), widths(most))


hidden = st.one_of(
    st.just(()), st.sets(st.integers(1, WIDTH), min_size=1, max_size=3).map(lambda one: tuple(sorted(one)))
)


choices = st.builds(ElasticChoices, st.just(CARD), per_layer(HEADS), per_layer(CHANNELS), hidden)


@given(choices)
def test_choices_survive_json(one: ElasticChoices) -> None:
    again = ElasticChoices.from_json(json.loads(json.dumps(one.to_json())))
    assert again == one
    assert hash(again) == hash(one)


@given(choices)
def test_the_largest_and_the_smallest_are_the_ends_of_the_space(one: ElasticChoices) -> None:
    assert blocks(one.largest) == [(max(h), max(c)) for h, c in zip(one.heads, one.feed_forward, strict=True)]
    assert blocks(one.smallest) == [(min(h), min(c)) for h, c in zip(one.heads, one.feed_forward, strict=True)]
    assert one.largest.output_width == max(one.hidden, default=WIDTH)
    assert one.smallest.output_width == min(one.hidden, default=WIDTH)


@pytest.mark.parametrize("one", ALL)
def test_count_is_the_number_of_sub_networks(one: ElasticChoices) -> None:
    cards = [one.space.card(design) for design in one.space.enumerate()]
    assert one.count == one.space.count() == len(cards) == len({card.digest for card in cards})
    assert {one.largest.digest, one.smallest.digest} <= {card.digest for card in cards}


@pytest.mark.parametrize("one", ALL)
def test_a_design_is_found_by_its_widths(one: ElasticChoices) -> None:
    space = one.space
    for design in space.enumerate():
        card = space.card(design)
        size = card.output_width if one.hidden else None
        assert space.card(one.design(blocks(card), size)) == card
        assert space.from_json(json.loads(json.dumps(space.to_json(one.design(blocks(card), size))))) == design


def test_hidden_sizes() -> None:
    space = elastic(BERT, heads=(2, 4), feed_forward=(512, 1024))
    assert elastic(BERT, (2, 4), (512, 1024), hidden=()).root == space.root
    assert all("hidden" not in design for design in space.enumerate())
    space = elastic(BERT, heads=[(0, 4), (2, 4), (0, 2), (4,)], feed_forward=(0, 1024), hidden=(64, 256))
    digests = [space.card(design).digest for design in space.enumerate()]
    assert len(digests) == len(set(digests)) == space.count() == 2 * 8 * 2**4
    layers = (Block(32, Attention(4, 8), (64,)), Block(16, Attention(4, 8), (64,)))
    card = Card(Stack(TokenEmbedding(100, 32), layers))
    assert elastic(card, (4,), (64,)).count() == 1
    with pytest.raises(IllegalInput, match="layers of the encoder to be blocks as wide as its embedding"):
        elastic(card, (4,), (64,), hidden=(16,))
    assert HIDDEN.space.card(HIDDEN.design(((4, 64), (4, 16)))).output_width == 16
    assert HIDDEN.space.card(HIDDEN.design(((4, 64), (4, 16)), 8)).output_width == 8


def test_what_is_elastic_and_what_is_refused() -> None:
    with pytest.raises(IllegalInput, match="heads mixes lists and single widths; give one list"):
        elastic(BERT, heads=[4, (4,), (4,), (4,), (4,)], feed_forward=(1024,))  # type: ignore[arg-type]
    space = elastic(load_card("autoformer-t"), heads=(3,), feed_forward=(192,))
    assert space.card(next(space.enumerate())).family == "vision"
    last = UNEVEN.smallest.encoder.layers[1]
    assert (last.mixer, last.feed_forward) == (Identity(), ())
    with pytest.raises(IllegalDesign, match="is 3; allowed: 1, 4"):
        UNEVEN.design(((3, 64), (4, 32)))
    with pytest.raises(IllegalDesign, match="is 9; allowed: 8, 12, 16"):
        HIDDEN.design(((4, 64), (4, 16)), 9)


def stored(**changes: Any) -> Any:
    return {**UNEVEN.to_json(), **changes}


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ([], "the whole"),
        (stored(depth=3), "depth"),
        (stored(heads=3), "heads"),
        (stored(heads=[[], [1]]), "heads"),
        (stored(feed_forward=[[16], 32]), "feed_forward[1]"),
        (stored(hidden=None), "hidden"),
        (stored(hidden=8), "hidden"),
    ],
)
def test_what_is_no_list_of_choices_is_refused(data: Any, where: str) -> None:
    with pytest.raises(IllegalDesign) as caught:
        ElasticChoices.from_json(data)
    assert [fault.where for fault in caught.value.faults] == [where]


def test_an_even_kernel_is_lessened_to_even_ones() -> None:
    card = Card(encoder=Stack(TokenEmbedding(50, WIDTH), (Block(WIDTH, SeparableConvolution(6), (CHANNELS,)),)))
    space = elastic(card, kernels=(2, 4, 6))
    assert [one.encoder.layers[0].mixer.kernel for one in map(space.card, space.enumerate())] == [2, 4, 6]
    with pytest.raises(IllegalInput, match="centre"):
        elastic(card, kernels=(3, 6))


def test_a_misspelt_size_is_given_the_nearest_one() -> None:
    card = Card(encoder=Stack(TokenEmbedding(50, WIDTH), (Block(WIDTH, Attention(4, 4), (CHANNELS,)),)))
    for name, near in {"head": "heads", "feedforward": "feed_forward", "depth": "depths"}.items():
        with pytest.raises(IllegalInput, match=f"{name} cannot be chosen.*Nearest: '{near}'"):
            elastic(card, **{name: (1, 2)})
