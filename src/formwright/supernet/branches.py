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

from collections.abc import Iterable, Mapping, Sequence
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
from formwright.arch.tensors import Factor
from formwright.arch.tensors import Tensor as Declared
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.cuts import cut_between
from formwright.nn.inherit import InheritedWeights, extract
from formwright.nn.settings import Settings, Spread
from formwright.nn.task_model import TaskModel
from formwright.supernet.library import Library, LibraryWeights

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
        """Give the library of both branches, and of the matrices of all smaller kernels.

        What is not in a mixer is common to both.
        """
        return _library(self)


@lru_cache(maxsize=16)
def _library(branches: Branches) -> Library:
    both = [_declared(card) for card in (branches.attention, branches.convolution)]
    kernels = [one for one in both[1].values() if _is_kernel(one)]
    smaller = [_sized(one, size) for one in kernels for size in range(one.shape[-1] - 2, 0, -2)]
    return Library.holding([*both, _matrices(smaller)])


@lru_cache(maxsize=256)
def _declared(card: Card) -> dict[str, Declared]:
    """Return the tensors of a design; the norm that comes with a mixer, next to it, is common to both branches."""
    return {
        name: one if name.startswith(f"{one.part}.") else one._replace(kind=())
        for name, one in tensors_of(card, HEAD).items()
    }


def _is_kernel(tensor: Declared) -> bool:
    return any(factor.cut == "centred" for axis in tensor.axes for factor in axis)


def _sized(kernel: Declared, size: int) -> Declared:
    """Declare the kernel of another size."""
    return kernel._replace(axes=(*kernel.axes[:-1], (kernel.axes[-1][0]._replace(size=size),)))


def _matrices(kernels: Iterable[Declared]) -> dict[str, Declared]:
    """Declare the matrix of each kernel, which has the kernel's size in its name."""
    found = {}
    for one in kernels:
        size = one.shape[-1]
        axis = (Factor(size, cut="whole"),)
        name = f"convolution-{size}/{one.name.removesuffix(KERNEL)}{CHANGE}"
        found[name] = Declared(name, (axis, axis), one.part, one.kind)
    return found


def _wanted(library: Library, card: Card) -> dict[str, Declared]:
    """Declare all that a design takes from a library; a kernel smaller than the largest comes with its matrix."""
    tensors = _declared(card)
    matrices = _matrices(one for one in tensors.values() if _is_kernel(one))
    return {**tensors, **{name: one for name, one in matrices.items() if name in library.tensors}}


def _in_model(name: str) -> str:
    """Return the name of a declared tensor in the model that is trained: there a matrix has one size only."""
    return name.rpartition("/")[2]


def shared_names(card: Card) -> dict[str, str]:
    """Return, for every tensor of a masked-LM design and every matrix, its name among shared weights."""
    library = Branches.of(card).library
    return library.stored(_wanted(library, card))


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
    """Shared weights; `version` counts the designs that have put theirs back. Untrained matrices are 0."""

    weights: LibraryWeights
    version: int = 0

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Give the weights by their names in the library."""
        return dict(self.weights.named_parameters())


def _store(library: Library, settings: Settings | None, tensors: Weights, version: int = 0) -> BranchStore:
    return BranchStore(LibraryWeights(library, HEAD, settings, tensors).requires_grad_(False), version)


def fresh(branches: Branches, seed: int, settings: Settings | None = None, spread: Spread = "width") -> BranchStore:
    """Return the initial store of a study; the same seed gives the same weights."""
    library = branches.library
    tensors = {name: torch.zeros(one.shape) for name, one in library.tensors.items()}
    for card in (branches.convolution, branches.attention):
        model, names = build(card, settings, HEAD, seed, spread), library.stored(_declared(card))
        tensors |= {names[name]: parameter.detach() for name, parameter in model.named_parameters()}
    return _store(library, settings, tensors)


def taken(store: BranchStore, card: Card) -> dict[str, Tensor]:
    """Return the weights that a design starts with, as views, by their names in its masked-LM model.

    A kernel smaller than the largest is the centre of that one, and comes with its matrix.
    """
    library = store.weights.library
    wanted = _wanted(library, card)
    given, names = library.read(store.tensors, wanted), library.stored(wanted)
    lacking = list(given.missing)
    for name, view in given.weights.items():
        whole = library.tensors[names[name]].shape  # but for kernels, which are cut; their kind tells their channels
        if view.shape != whole and not _is_kernel(wanted[name]):
            lacking.append(name)
    if lacking:
        raise IllegalInput(f"the shared weights have nothing that fits {lacking[0]} of this design")
    return {_in_model(name): view for name, view in given.weights.items()}


def written(card: Card, weights: Weights) -> dict[str, Tensor]:
    """Return what a design writes to a store, by the names there; a kernel is written to the centre of the largest.

    `weights` are all that it took, by the names that `taken` gave them.
    """
    names = {_in_model(name): stored for name, stored in shared_names(card).items()}
    assert _declared(card).keys() <= weights.keys(), "a design puts back all that it took"
    return {names[name]: tensor for name, tensor in weights.items()}


def folded(store: BranchStore, writes: Sequence[Weights]) -> BranchStore:
    """Return the store after several writes in order.

    Writes are read from the last to the first, and overwritten tensors are skipped: reading from files costs little
    more than one store, however many writes there are.
    """
    own, declared = store.weights, store.weights.library.tensors
    whole: dict[str, Tensor] = {}
    kernels: dict[str, list[Tensor]] = {}
    for write in reversed(writes):
        for name in write:
            if _is_kernel(declared[name]):
                kernels.setdefault(name, []).append(write[name])
            elif name not in whole:
                whole[name] = write[name]
    for name, parts in kernels.items():
        whole[name] = store.tensors[name].clone()
        for part in reversed(parts):
            centre = cut_between(declared[name], _sized(declared[name], part.shape[-1]))
            assert centre is not None, "a design is refused where its kernel has another centre"
            centre.write(whole[name], part)
    return _store(own.library, own.settings, {**store.tensors, **whole}, store.version + len(writes))
