"""Designs of two or three tiny layers, attentions or convolutions, for the tests of weights shared in two branches."""

from collections.abc import Mapping

from torch import Tensor

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import Term
from formwright.core.rng import derive
from formwright.space.zoo.autobert_zero import STANDARD_ATTENTION, autobert_zero
from formwright.supernet.branches import Branches, BranchStore, folded, fresh, written

SPACE = autobert_zero("tiny-zero", 2, 2, 8, largest=5, kernels=(3, 5, 7), vocabulary=32)
QKV = STANDARD_ATTENTION
QK: Term = ("matmul", ("softmax", ("matmul", "Q", ("transpose", "K"))), "Q")
QP: Term = ("add", "Q", "P")


def card(*layers: "Term | int") -> Card:
    """Describe a design of the space by its layers: a term is an attention, a number the kernel of a convolution."""
    mixers = [LightweightConvolution(one, 2) if isinstance(one, int) else OpGraph(2, 8, one) for one in layers]
    return Card(encoder=Stack(TokenEmbedding(32, 16, types=2), tuple(Block(16, mixer, (64,)) for mixer in mixers)))


def random_cards(number: int, seed: int = 0) -> list[Card]:
    return [SPACE.card(SPACE.sample(derive(seed, "branched", index))) for index in range(number)]


def store(largest: int = 9) -> BranchStore:
    return fresh(Branches.of(card(QK, 3), largest), seed=0)


def changed(weights: dict[str, Tensor], by: float = 1.0) -> dict[str, Tensor]:
    """Give what training might have made of weights: every number another one."""
    return {name: tensor + by for name, tensor in weights.items()}


def same(one: BranchStore, other: BranchStore) -> bool:
    """Tell whether two stores hold the same bytes."""
    if one.tensors.keys() != other.tensors.keys() or one.version != other.version:
        return False
    return all(tensor.equal(other.tensors[name]) for name, tensor in one.tensors.items())


def returned(store: BranchStore, card: Card, weights: Mapping[str, Tensor]) -> BranchStore:
    """Give the store after a design has written back its weights."""
    return folded(store, [written(card, weights)])
