from dataclasses import replace

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Attention, LightweightConvolution, Mixer, OpGraph
from formwright.arch.plain import has_formulas, plain_digest
from formwright.arch.primitives import Term
from formwright.space.zoo import load_card

SCORES: Term = ("matmul", "Q", ("transpose", "K"))


def card(*mixers: Mixer) -> Card:
    return Card(encoder=Stack(TokenEmbedding(50, 16), tuple(Block(16, mixer, (32,)) for mixer in mixers)))


def graph(term: Term) -> OpGraph:
    return OpGraph(2, 8, term)


def test_formulas_that_are_equal_by_algebra_have_one_digest() -> None:
    written = ("neg", ("matmul", ("softmax", ("transpose", ("matmul", "K", ("transpose", "Q")))), ("neg", "V")))
    one, other = card(graph(("matmul", ("softmax", SCORES), "V"))), card(graph(written))
    assert one.digest != other.digest
    assert plain_digest(one) == plain_digest(other)


def test_what_inputs_are_called_does_not_matter() -> None:
    one, twin, fewer = (
        card(graph(("matmul", ("softmax", ("matmul", name, ("transpose", "K"))), "V"))) for name in "QPK"
    )
    assert plain_digest(one) == plain_digest(twin)
    assert plain_digest(one) != plain_digest(fewer)  # two inputs instead of three


def test_other_operations_sizes_and_neighbours_are_told_apart() -> None:
    plain = card(graph(("neg", "Q")), LightweightConvolution(3, 2))
    others = [
        card(graph(("softsign", "Q")), LightweightConvolution(3, 2)),
        card(OpGraph(4, 4, ("neg", "Q")), LightweightConvolution(3, 2)),
        card(graph(("neg", "Q")), LightweightConvolution(5, 2)),
        card(LightweightConvolution(3, 2), graph(("neg", "Q"))),
    ]
    assert len({plain_digest(one) for one in (plain, *others)}) == 5


def test_formulas_are_found_in_any_layer() -> None:
    assert has_formulas(card(LightweightConvolution(3, 2), graph(("neg", "Q"))))
    assert not has_formulas(card(LightweightConvolution(3, 2), Attention(2, 8)))


def test_designs_without_formulas_keep_their_own() -> None:
    for one in (load_card("bert-tiny"), card(Attention(2, 8), LightweightConvolution(3, 2))):
        assert plain_digest(one) == one.digest
        assert plain_digest(replace(one, idle=0)) == one.digest
