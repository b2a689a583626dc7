"""Bi-branch weight sharing (AutoBERT-Zero, Gao et al., 2022): designs share attentions and convolutions.

Every layer has two branches: an attention with all four inputs Q, K, V and P, and a lightweight convolution with the
largest kernel. A layer of a design belongs to one of them. A design takes the projections of the inputs it uses, the
centre of the largest kernel, and everything outside the mixers (embedding, feed-forward layers, norms, masked-LM
head). After training it writes back what it took, overwriting the old values; the paper does not say whether to
overwrite or to average. All other weights stay as they were. Of designs trained in parallel, the one written last
wins.

A kernel smaller than the largest is multiplied by a trained matrix of its layer and size, as in once-for-all networks
(Cai et al., 2019), before any softmax. Its difference from the identity is what is trained and stored: so it starts
as the identity, weight decay leads back there, and files lose nothing by rounding.

A store is a value: nothing here changes a tensor in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Layer
from formwright.arch.ops import LightweightConvolution, OpGraph
from formwright.arch.primitives import Term
from formwright.arch.tensors import Tensor as Declared
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.inherit import InheritedWeights, extract
from formwright.nn.settings import Settings, Spread
from formwright.nn.task_model import TaskModel
from formwright.supernet.library import Library

LARGEST = 65  # the paper's largest kernel
HEAD = HeadSpec("masked-lm")  # designs share masked-LM weights, not those of a task
_ALL_INPUTS: Term = ("add", ("add", "Q", "K"), ("add", "V", "P"))  # any term with all projections

_INSTEAD = "designs of a space share weights where all have the same layers but for formulas and odd kernels"


@dataclass(frozen=True)
class Branches:
    """Two designs that hold, in each layer, everything that a design can take from that branch."""

    attention: Card
    convolution: Card

    @classmethod
    def of(cls, card: Card, largest: int = LARGEST) -> "Branches":
        """Return the branches of a space by any of its designs; no kernel may be longer than `largest`."""
        blocks = _blocks(card)
        return cls(
            _with_layers(card, [_attention(block) for block in blocks]),
            _with_layers(card, [_convolution(block, largest) for block in blocks]),
        )

    @classmethod
    def common_to(cls, cards: Sequence[Card], largest: int = LARGEST) -> "Branches":
        """Return the branches that samples of a space have in common; raise `IllegalInput` where one has others."""
        found = cls.of(cards[0], largest)
        for card in cards:
            for place, block in enumerate(_blocks(card)):
                kernel = block.mixer.kernel if isinstance(block.mixer, LightweightConvolution) else largest
                if kernel > largest or (largest - kernel) % 2:
                    detail = f"the kernel {kernel} of layer {place} is not in the centre of one of {largest}"
                    raise IllegalInput(f"{detail}: {_INSTEAD}; leave such kernels out, or choose another evaluator")
            if cls.of(card, largest) != found:
                depths = sorted({len(_blocks(one)) for one in (cards[0], card)})
                detail = f"{depths[0]} and {depths[1]} layers" if len(depths) > 1 else "layers of different sizes"
                raise IllegalInput(f"two designs of this space have {detail}: {_INSTEAD}; choose another evaluator")
        return found

    @property
    def library(self) -> Library:
        """Give the library of both branches: what is not in a mixer is common to them."""
        return _library(self)


@lru_cache(maxsize=16)
def _library(branches: Branches) -> Library:
    return Library.holding(map(_declared, (branches.attention, branches.convolution)))


@lru_cache(maxsize=256)
def _declared(card: Card) -> dict[str, Declared]:
    """Return the tensors of a design; the norm that comes with a mixer, next to it, is common to both branches."""
    return {
        name: one if name.startswith(f"{one.part}.") else one._replace(kind=())
        for name, one in tensors_of(card, HEAD).items()
    }


def shared_names(card: Card) -> dict[str, str]:
    """Return, for every tensor of a masked-LM design, its name among shared weights."""
    return Branches.of(card).library.stored(_declared(card))


def _blocks(card: Card) -> list[Block]:
    if card.family != "encoder" or card.encoder is None:
        raise IllegalInput(f"weights are shared in two branches by encoders of text, not by a {card.family} design")
    blocks = []
    for place, layer in enumerate(card.encoder.layers):
        if not isinstance(layer, Block) or not isinstance(layer.mixer, OpGraph | LightweightConvolution):
            kind = layer.mixer.TYPE if isinstance(layer, Block) else "cell"
            raise IllegalInput(
                f"layer {place} is of the kind {kind}; weights are shared in two branches where every layer is an "
                "op-graph or a lightweight-convolution, as in the space autobert-zero"
            )
        blocks.append(layer)
    return blocks


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


KERNEL = "kernel"
CHANGE = "change"  # the name of the matrix (minus the identity) of a kernel
_TRAINED = {f"parametrizations.{KERNEL}.original": KERNEL, f"parametrizations.{KERNEL}.0.{CHANGE}": CHANGE}


def seen_through(kernel: Tensor, change: Tensor) -> Tensor:
    """Return (channels, size) kernels times the identity plus a (size, size) change."""
    return kernel + kernel @ change


class Transformation(nn.Module):
    """The matrix of one layer and size, as a parametrisation of its kernel."""

    def __init__(self, change: Tensor) -> None:
        super().__init__()
        self.change = nn.Parameter(change.detach().clone())

    def forward(self, kernel: Tensor) -> Tensor:
        return seen_through(kernel, self.change)


def to_train(card: Card, weights: Mapping[str, Tensor], head: HeadSpec, settings: Settings) -> TaskModel:
    """Build a model with copies of the weights, in which kernels and the matrices next to them are trained together."""
    model = extract(InheritedWeights(weights, ()), card, settings, head)
    assert isinstance(model, TaskModel)
    for name in [name for name in weights if name.endswith(f".{CHANGE}")]:
        mixer = model.get_submodule(name.removesuffix(f".{CHANGE}"))
        parametrize.register_parametrization(mixer, KERNEL, Transformation(weights[name]))
    return model


def weights_of(model: TaskModel) -> dict[str, Tensor]:
    """Return copies of the weights of a model that `to_train` built, by the names that they had there."""
    found = {}
    for name, parameter in model.named_parameters():
        path, mark, rest = name.partition("parametrizations.")
        found[path + _TRAINED[mark + rest] if mark else name] = parameter.detach().cpu().clone()
    return found


def without_matrices(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights for a plain model: every kernel times its matrix."""
    changes = {name: change for name, change in weights.items() if name.endswith(f".{CHANGE}")}
    plain = {name: tensor for name, tensor in weights.items() if name not in changes}
    for name, change in changes.items():
        kernel = name.removesuffix(CHANGE) + KERNEL
        plain[kernel] = seen_through(weights[kernel], change)
    return plain


Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class BranchStore:
    """Shared weights by name; `version` counts the designs that have put theirs back.

    A matrix has the size of its kernels in its name. Untrained matrices are the identity and are not stored.
    """

    branches: Branches
    tensors: Weights
    version: int = 0


def fresh(branches: Branches, seed: int, settings: Settings | None = None, spread: Spread = "width") -> BranchStore:
    """Return the initial store of a study; the same seed gives the same weights."""
    tensors: dict[str, Tensor] = {}
    for card in (branches.convolution, branches.attention):
        model, names = build(card, settings, HEAD, seed, spread), shared_names(card)
        tensors |= {names[name]: parameter.detach() for name, parameter in model.named_parameters()}
    return BranchStore(branches, tensors)


def taken(store: BranchStore, card: Card) -> dict[str, Tensor]:
    """Return the weights that a design starts with, as views, by their names in its masked-LM model.

    A kernel smaller than the largest is the centre of that one, and comes with its matrix.
    """
    wanted, library = _declared(card), store.branches.library
    given, names = library.read(store.tensors, wanted), library.stored(wanted)
    weights, lacking = dict(given.weights), list(given.missing)
    for name, view in given.weights.items():
        whole = store.tensors[names[name]]
        if view.shape == whole.shape:
            continue  # it is taken whole
        if not _is_kernel(name) or view.shape[:-1] != whole.shape[:-1]:
            lacking.append(name)
        size = view.shape[-1]
        weights[_beside(name)] = store.tensors.get(_matrix(name, size), torch.zeros(size, size))
    if lacking:
        raise IllegalInput(f"the shared weights have nothing that fits {lacking[0]} of this design")
    return weights


def written(card: Card, weights: Weights) -> dict[str, Tensor]:
    """Return what a design writes to a store, by the names there; a kernel is written to the centre of the largest.

    `weights` are all that it took, by the names that `taken` gave them.
    """
    names = shared_names(card)
    assert names.keys() <= weights.keys(), "a design puts back all that it took"
    matrices = {_beside(name): _matrix(name, weights[name].shape[-1]) for name in names if _is_kernel(name)}
    return {{**names, **matrices}[name]: tensor for name, tensor in weights.items()}


def folded(store: BranchStore, writes: Sequence[Weights]) -> BranchStore:
    """Return the store after several writes in order.

    Writes are read from the last to the first, and overwritten tensors are skipped: reading from files costs little
    more than one store, however many writes there are.
    """
    whole: dict[str, Tensor] = {}
    centres: dict[str, list[Tensor]] = {}
    for write in reversed(writes):
        for name in write:
            if _is_kernel(name):
                centres.setdefault(name, []).append(write[name])
            elif name not in whole:
                whole[name] = write[name]
    for name, parts in centres.items():
        whole[name] = store.tensors[name].clone()
        for part in reversed(parts):
            spare = (whole[name].shape[-1] - part.shape[-1]) // 2
            whole[name][..., spare : whole[name].shape[-1] - spare] = part
    return BranchStore(store.branches, {**store.tensors, **whole}, store.version + len(writes))


def _is_kernel(name: str) -> bool:
    return name.partition("@")[0].endswith(f".mixer.{KERNEL}")  # by its own name, or by that in the library


def _beside(kernel: str) -> str:
    return kernel.removesuffix(KERNEL) + CHANGE


def _matrix(kernel: str, size: int) -> str:
    return f"convolution-{size}/{_beside(kernel)}"
