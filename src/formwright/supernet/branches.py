"""The two branches in which designs share weights: attentions and convolutions (AutoBERT-Zero, Gao et al., 2022).

Every layer has both: an attention with all four inputs Q, K, V and P, and a lightweight convolution with the largest
kernel. A layer of a design belongs to one of them, and is a part of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from formwright.arch.card import Card
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import Term
from formwright.core.errors import IllegalInput
from formwright.nn.build import skeleton
from formwright.nn.heads import HeadSpec

Branch = Literal["attention", "convolution"]

LARGEST = 65  # the paper's largest kernel
HEAD = HeadSpec("masked-lm")  # designs share what they learn of words, not what they learn of a task
_ALL_INPUTS: Term = ("add", ("add", "Q", "K"), ("add", "V", "P"))  # any term would do that has all projections


_INSTEAD = "designs of a space share weights where all have the same layers but for formulas and odd kernels"


@dataclass(frozen=True)
class Branches:
    """Two designs that hold, in each layer, all that a design may take of that branch."""

    attention: Card
    convolution: Card

    @classmethod
    def of(cls, card: Card, largest: int = LARGEST) -> "Branches":
        """Give the branches of a space by any of its designs; no kernel may be longer than `largest`."""
        blocks = _blocks(card)
        return cls(
            _with_layers(card, [_attention(block) for block in blocks]),
            _with_layers(card, [_convolution(block, largest) for block in blocks]),
        )

    @classmethod
    def common_to(cls, cards: Sequence[Card], largest: int = LARGEST) -> "Branches":
        """Give the branches that samples of a space have in common; raise `IllegalInput` where one has others."""
        found = cls.of(cards[0], largest)
        for card in cards:
            _refuse_kernels(card, largest)
            if cls.of(card, largest) != found:
                depths = sorted({len(_blocks(one)) for one in (cards[0], card)})
                told = f"{depths[0]} and {depths[1]} layers" if len(depths) > 1 else "layers of different sizes"
                raise IllegalInput(f"two designs of this space have {told}: {_INSTEAD}; choose another evaluator")
        return found

    def around(self, card: Card) -> Card:
        """Give the design that holds, in each layer, all of the branch that this layer of `card` belongs to."""
        own = {"attention": _blocks(self.attention), "convolution": _blocks(self.convolution)}
        wanted = [_branch(block) for block in _blocks(card)]
        if len(wanted) != (depth := len(own["attention"])):
            raise IllegalInput(f"the design has {len(wanted)} layers, but weights are shared in {depth}")
        return _with_layers(self.attention, [own[branch][place] for place, branch in enumerate(wanted)])


@lru_cache(maxsize=256)
def shared_names(card: Card) -> dict[str, str]:
    """Give, for every tensor of a design that fills in words, its name among shared weights.

    Tensors of a mixer have the name of its branch before their own; all others are common to both branches.
    """
    branches = [_branch(block) for block in _blocks(card)]

    def shared(name: str) -> str:
        words = name.split(".")
        return f"{branches[int(words[words.index('layers') + 1])]}/{name}" if "mixer" in words else name

    return {name: shared(name) for name, _ in skeleton(card, head=HEAD).named_parameters()}


def _blocks(card: Card) -> list[Block]:
    if card.family != "encoder" or card.encoder is None:
        raise IllegalInput(f"weights are shared in two branches by encoders of text, not by a {card.family} design")
    return [_block(layer, place) for place, layer in enumerate(card.encoder.layers)]


def _block(layer: Layer, place: int) -> Block:
    if isinstance(layer, Block) and isinstance(layer.mixer, OpGraph | LightweightConvolution):
        return layer
    kind = layer.mixer.TYPE if isinstance(layer, Block) else "cell"
    raise IllegalInput(
        f"layer {place} is of the kind {kind}; weights are shared in two branches where every layer is an op-graph "
        "or a lightweight-convolution, as in the space autobert-zero"
    )


def _refuse_kernels(card: Card, largest: int) -> None:
    for place, block in enumerate(_blocks(card)):
        kernel = block.mixer.kernel if isinstance(block.mixer, LightweightConvolution) else largest
        if kernel > largest or (largest - kernel) % 2:
            told = f"the kernel {kernel} of layer {place} is not in the centre of one of {largest}"
            raise IllegalInput(f"{told}: {_INSTEAD}; leave such kernels out, or choose another evaluator")


def _branch(block: Block) -> Branch:
    return "attention" if isinstance(block.mixer, OpGraph) else "convolution"


def _attention(block: Block) -> Block:
    if isinstance(block.mixer, OpGraph):
        return replace(block, mixer=replace(block.mixer, term=_ALL_INPUTS))
    assert isinstance(block.mixer, LightweightConvolution)
    return replace(block, mixer=OpGraph(block.mixer.heads, block.width // block.mixer.heads, _ALL_INPUTS))


def _convolution(block: Block, largest: int) -> Block:
    if isinstance(block.mixer, LightweightConvolution):
        return replace(block, mixer=replace(block.mixer, kernel=largest))
    assert isinstance(block.mixer, OpGraph)
    return replace(block, mixer=LightweightConvolution(largest, block.mixer.heads))


def _with_layers(card: Card, layers: Sequence[Layer]) -> Card:
    assert card.encoder is not None
    return replace(card, encoder=replace(card.encoder, layers=tuple(layers)))
