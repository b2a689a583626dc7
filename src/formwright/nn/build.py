"""Build a model from a card: structure first, without memory, then weights from an explicit generator."""

from functools import lru_cache
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import init
from torch.overrides import TorchFunctionMode

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.settings import OwnStart, Settings, Spread
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer

_SPREAD = 0.02
_INITIALISERS = frozenset({init.kaiming_uniform_, init.uniform_, init.normal_, Tensor.fill_, Tensor.zero_})


def skeleton(card: Card, settings: Settings | None = None, head: HeadSpec | None = None) -> Transformer | TaskModel:
    """Build a model on the meta device (shapes and names, no memory), to run it with other weights."""
    return _unfilled(card, settings, head, "meta")


@lru_cache(maxsize=256)
def kept_skeleton(card: Card, settings: Settings | None, head: HeadSpec | None) -> Transformer | TaskModel:
    """Give the same skeleton whenever it is asked for; who runs it sets its mode and does not change it otherwise."""
    return skeleton(card, settings, head)


def build(
    card: Card, settings: Settings | None = None, head: HeadSpec | None = None, seed: int = 0, spread: Spread = "bert"
) -> Transformer | TaskModel:
    """Build a model with new weights, with a task head if one is given.

    The same card, head, seed and spread give the same weights; `initialise` says what `spread` means.
    """
    try:
        model = _unfilled(card, settings, head, "cpu")
    except RuntimeError as error:  # torch raises it if memory is short or a size overflows
        if not any(word in str(error) for word in ("allocate", "memory", "overflow")):
            raise
        raise IllegalInput(
            "the memory of this machine cannot hold the weights of this design; `formwright show` counts them"
        ) from None
    initialise(model, torch.Generator().manual_seed(seed), spread)
    return model


def _unfilled(card: Card, settings: Settings | None, head: HeadSpec | None, device: str) -> Transformer | TaskModel:
    with torch.device(device), _Uninitialised():
        return Transformer(card, settings) if head is None else TaskModel(card, head, settings)


class _Uninitialised(TorchFunctionMode):
    """Skip torch's own initialisation of modules: `initialise` follows later, or weights are loaded.

    It costs more than the rest of a module, and on the meta device imports a second's worth of torch.
    """

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in _INITIALISERS:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)


@torch.no_grad()
def initialise(model: nn.Module, generator: Generator, spread: Spread = "bert") -> None:
    """Initialise a model as BERT does: normal with standard deviation 0.02, biases 0, norms 1.

    With `spread="width"` linear maps preserve the scale of their input instead, and tables of relative positions have a
    standard deviation of 1, like the keys they are added to. In narrow models BERT's 0.02 makes every layer contribute
    almost nothing, and attention ignores order: a short training leaves that plateau at a step that depends more on the
    seed than on the design.

    A module that needs other values says so itself, as an `OwnStart`.
    """
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if isinstance(module, nn.LayerNorm):
                parameter.fill_(1.0 if name == "weight" else 0.0)
            elif name == "bias":
                parameter.zero_()
            else:
                parameter.normal_(0.0, _spread(module, name, spread), generator=generator)
        if isinstance(module, OwnStart):
            module.finish_start()


def _spread(module: nn.Module, name: str, spread: Spread) -> float:
    own = module.start_spread(name, spread) if isinstance(module, OwnStart) else None
    if own is not None:
        return own
    if spread == "width" and isinstance(module, nn.Linear):
        return float(module.in_features**-0.5)
    return _SPREAD
