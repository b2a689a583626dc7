"""The declared tensors of a design are those of its model, by name, order and shape."""

import pytest

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.arch.tensors import STREAM, Factor
from formwright.core.rng import derive
from formwright.cost import params
from formwright.nn.build import skeleton
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

HEADS = {
    "encoder": [
        HeadSpec("sequence-classification", 3),
        HeadSpec("token-classification", 5),
        HeadSpec("span-extraction"),
        HeadSpec("masked-lm"),
    ],
    "vision": [HeadSpec("sequence-classification", 3)],
    "decoder": [HeadSpec("causal-lm")],
    "encoder-decoder": [HeadSpec("seq2seq-lm")],
}


def assert_as_built(card: Card, head: HeadSpec | None) -> None:
    built = [(name, tuple(one.shape)) for name, one in skeleton(card, head=head).named_parameters()]
    assert [(name, one.shape) for name, one in tensors_of(card, head).items()] == built
    if head is None:
        assert params(card) == sum(one.size for one in tensors_of(card).values()) + card.idle


@pytest.mark.parametrize("space", SPACES.names())
def test_sampled_designs_declare_what_is_built(space: str) -> None:
    found = load_space(space)
    for number in range(3):
        assert_as_built(found.card(found.sample(derive(5, "declared", number), "gene")), None)


@pytest.mark.parametrize("name", CARDS.names())
def test_published_designs_declare_what_is_built_with_every_head(name: str) -> None:
    card = load_card(name)
    for head in HEADS[card.family] if "large" not in name else HEADS[card.family][:1]:
        if head.task != "masked-lm" or card.stacks[-1].embedding.TYPE == "tokens":
            assert_as_built(card, head)


def test_projections_at_every_joint_are_declared_as_built() -> None:
    def shaped(*widths: int) -> Card:
        layers = tuple(Block(width, Attention(4, width // 4), (3 * width,)) for width in widths)
        stack = Stack(TokenEmbedding(50, 32, types=2), layers, joints="always", out=32, final_norm=True)
        return Card(stack, pooler=True)

    for head in (None, *HEADS["encoder"]):
        assert_as_built(shaped(16, 16, 24), head)
    declared = {name: one.shape for name, one in tensors_of(shaped(16, 24)).items() if "projections" in name}
    assert {name: shape for name, shape in declared.items() if name.endswith("weight")} == {
        "encoder.projections.0.weight": (16, 32),
        "encoder.projections.1.weight": (24, 16),
        "encoder.projections.2.weight": (32, 24),
    }


def test_a_shared_token_table_is_declared_once() -> None:
    names = tensors_of(load_card("transformer-tiny"))
    assert "encoder.embedding.tokens.weight" in names
    assert ("decoder.embedding.tokens.weight" in names) is not load_card("transformer-tiny").share_embedding


def test_roles_say_how_an_attention_is_cut() -> None:
    tensor = tensors_of(load_card("bert-tiny"))["encoder.layers.1.mixer.query_key_value.weight"]
    assert tensor.part == "encoder.layers.1.mixer"
    assert tensor.axes == (
        (Factor(2, "heads"), Factor(3, cut="whole"), Factor(64, "head width")),
        (Factor(128, STREAM),),
    )
