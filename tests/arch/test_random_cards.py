"""The random designs that other tests lean on leave nothing out."""

from collections.abc import Iterator

from tests.arch.random_cards import FAMILIES, NAMED, random_card

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Cell
from formwright.arch.ops import CrossAttention, Identity, OpGraph
from formwright.arch.primitives import BINARY, UNARY
from formwright.core.rng import derive


def traits(card: Card) -> Iterator[str]:
    """Name what is special about a design."""
    yield card.family
    yield from (f"shared {card.share_embedding}", f"pooler {card.pooler}")
    for stack in card.stacks:
        yield from (type(stack.embedding).__name__, stack.embedding.positions, f"causal {stack.causal}")
        if isinstance(stack.embedding, TokenEmbedding) and stack.embedding.factorised:
            yield "factorised"
        if isinstance(stack.embedding, PatchEmbedding):
            yield f"{stack.embedding.class_tokens} class tokens"
        if stack.projections:
            yield "unequal widths"
        yield from (stack.joints, f"out {stack.out is not None}")
        for layer in stack.layers:
            yield from layer_traits(layer)


def layer_traits(layer: Block | Cell) -> Iterator[str]:
    """Name what is special about a layer."""
    for _, operation in layer.operations:
        yield f"{operation.TYPE} in a {layer.TYPE}"
        if isinstance(operation, CrossAttention):
            yield f"reads {operation.layers}"
        if isinstance(operation, OpGraph):
            yield from (name for name in (*UNARY, *BINARY) if repr(name) in repr(operation.term))
    if isinstance(layer, Cell):
        yield from (junction.combine for junction in layer.junctions)
    else:
        yield from (layer.norm, f"{len(layer.feed_forward)} feed-forward layers", layer.activation)
        if layer == Block(layer.width, Identity()):
            yield "identity layer"


def test_random_cards_have_every_trait() -> None:
    rng = derive(0, "traits")
    found = {trait for index in range(400) for trait in traits(random_card(rng, FAMILIES[index % len(FAMILIES)]))}
    assert found >= {"encoder", "decoder", "encoder-decoder", "vision"}
    assert found >= {"TokenEmbedding", "PatchEmbedding", "FrameEmbedding"}
    assert found >= {"learned", "sinusoidal", "relative", "none", "causal True", "causal False", "factorised"}
    assert found >= {"shared True", "shared False", "pooler True", "unequal widths", "identity layer", "pre", "post"}
    assert found >= {"always", "unequal", "out True"}
    assert found >= {"add", "concatenate", "multiply", "reads 1", "reads 2", "reads 3", *UNARY, *BINARY}
    assert found >= {"gelu", "relu", "swish", "leaky-relu", "squared-relu"}
    assert found >= {f"{count} feed-forward layers" for count in range(4)}
    assert found >= {f"{count} class tokens" for count in range(3)}
    for kind in NAMED:
        assert {f"{kind.TYPE} in a block", f"{kind.TYPE} in a cell"} & found, kind


def test_the_same_seed_draws_the_same_cards() -> None:
    first, second = derive(7, "seed"), derive(7, "seed")
    assert [random_card(first).digest for _ in range(20)] == [random_card(second).digest for _ in range(20)]
    assert random_card(derive(8, "seed")) != random_card(derive(7, "seed"))
