"""Bi-branch weight sharing (AutoBERT-Zero, Gao et al., 2022): weights that designs start from and add to.

A design takes the projections of the inputs it uses, the centre of the largest kernel, and all that is no mixer:
embedding, feed-forward layers, norms, the head that fills in words. It sees a kernel smaller than the largest through a
matrix of its layer and size, which it learns as well (`kernels`). After training it puts back what it took, over what
was there; the paper does not say whether to overwrite or to average. So the outside of a kernel, the other branch, the
other inputs and the matrices of other sizes stay as they were, byte for byte. Of two designs that were trained side by
side the one that is written last wins where both had a tensor.

A store is a value: nothing here changes a tensor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.nn.build import Spread, build
from formwright.nn.inherit import inherit
from formwright.nn.settings import Settings
from formwright.supernet.branches import HEAD, Branches, shared_names
from formwright.supernet.kernels import CHANGE, KERNEL

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Store:
    """Shared weights by name; `version` counts the designs that have put theirs back.

    A matrix has the size of its kernels in its name. One that nobody has learnt yet is the identity, and is not there.
    """

    branches: Branches
    tensors: Weights
    version: int = 0


def fresh(branches: Branches, seed: int, settings: Settings | None = None, spread: Spread = "width") -> Store:
    """Give the store that a study begins with; the same seed gives the same weights."""
    tensors: dict[str, Tensor] = {}
    for card in (branches.convolution, branches.attention):
        model, names = build(card, settings, HEAD, seed, spread), shared_names(card)
        tensors |= {names[name]: parameter.detach() for name, parameter in model.named_parameters()}
    return Store(branches, tensors)


def taken(store: Store, card: Card) -> dict[str, Tensor]:
    """Give the weights that a design starts with, as views, by their names in its model that fills in words.

    A kernel smaller than the largest is the centre of that, and has what is added to the identity beside it.
    """
    own = {name: store.tensors[shared] for name, shared in shared_names(card).items() if shared in store.tensors}
    given = inherit(own, store.branches.around(card), card, head=HEAD)
    narrower = [name for name, view in given.weights.items() if not _fits(name, view, own[name])]
    if lacking := (*given.missing, *narrower):
        raise IllegalInput(f"the shared weights have nothing that fits {lacking[0]} of this design")
    weights = dict(given.weights)
    for name, view in given.weights.items():
        if view.shape != own[name].shape:
            size = view.shape[-1]
            weights[_beside(name)] = store.tensors.get(_matrix(name, size), torch.zeros(size, size))
    return weights


def returned(store: Store, card: Card, weights: Weights) -> Store:
    """Give the store after a design has put back what it took, trained meanwhile."""
    return folded(store, [written(card, weights)])


def written(card: Card, weights: Weights) -> dict[str, Tensor]:
    """Give what a design writes to a store, by the names there; a kernel is written to the centre of the largest.

    `weights` are all that it took, by the names that `taken` gave them.
    """
    names = shared_names(card)
    assert names.keys() <= weights.keys(), "a design puts back all that it took"
    matrices = {_beside(name): _matrix(name, weights[name].shape[-1]) for name in names if _is_kernel(name)}
    return {{**names, **matrices}[name]: tensor for name, tensor in weights.items()}


def folded(store: Store, writes: Sequence[Weights]) -> Store:
    """Give the store after one writing after the other.

    They are looked through from the last to the first, and of a tensor that is overwritten whole no earlier one is
    asked for: where tensors are read from files, that is little more than one store, however many writings there are.
    """
    whole: dict[str, Tensor] = {}
    centres: dict[str, list[Tensor]] = {}
    for write in reversed(writes):
        for name in write:
            if _is_kernel(name):
                centres.setdefault(name, []).append(write[name])
            elif name not in whole:
                whole[name] = write[name]
    whole |= {name: _overwritten(store.tensors[name], reversed(parts)) for name, parts in centres.items()}
    return Store(store.branches, {**store.tensors, **whole}, store.version + len(writes))


def _overwritten(kernel: Tensor, parts: Iterable[Tensor]) -> Tensor:
    """Put one part after the other in the centre of a kernel."""
    whole = kernel.clone()
    for part in parts:
        spare = (whole.shape[-1] - part.shape[-1]) // 2
        whole[..., spare : whole.shape[-1] - spare] = part
    return whole


def _fits(name: str, view: Tensor, whole: Tensor) -> bool:
    """Tell whether a tensor was taken whole, or is a kernel of fewer tokens."""
    return view.shape == whole.shape or (_is_kernel(name) and view.shape[:-1] == whole.shape[:-1])


def _is_kernel(name: str) -> bool:
    return name.endswith(f".mixer.{KERNEL}")


def _beside(kernel: str) -> str:
    return kernel.removesuffix(KERNEL) + CHANGE


def _matrix(kernel: str, size: int) -> str:
    return f"convolution-{size}/{_beside(kernel)}"
