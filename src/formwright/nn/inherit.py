"""Weights flow from card to card: a smaller design reads its weights out of a larger one's.

Both designs declare their tensors. A tensor of the same name and kind is cut out of the larger one as its axes say, as
a view wherever slices suffice; `formwright.nn.cuts` has the rule.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.distance import biased_overlap
from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.core.remember import remember
from formwright.nn.build import initialise, skeleton
from formwright.nn.cuts import Start, TensorCut, cuts
from formwright.nn.settings import Settings, Spread
from formwright.nn.task_model import TaskModel
from formwright.nn.transformer import Transformer


class Slots:
    """Run a model with other tensors in place of its weights; gradients reach these tensors.

    The locations of the weights are found once, so that a swap costs a few microseconds; `torch.func.functional_call`
    searches them in every call, a tenth of the time of small models at batch 1.
    """

    def __init__(self, model: nn.Module) -> None:
        self.places = {
            f"{path}.{name}".lstrip("."): (module._parameters, name)
            for path, module in model.named_modules()
            for name, parameter in module._parameters.items()
            if parameter is not None
        }

    @contextmanager
    def lent(self, weights: Mapping[str, Tensor]) -> Iterator[None]:
        """Replace the weights with these names within the block; the others stay."""
        unknown = [name for name in weights if name not in self.places]
        if unknown:
            raise IllegalInput(f"the model has no weight called {unknown[0]!r} ({len(unknown)} such names)")
        own = {}
        try:
            for name, tensor in weights.items():
                held, leaf = self.places[name]
                own[name] = held[leaf]
                held[leaf] = tensor  # torch looks weights up here, parameters or not
            yield
        finally:
            for name, parameter in own.items():
                held, leaf = self.places[name]
                held[leaf] = parameter


Rule = Literal["slice", "identical"]
Depth = Literal["first", "even"]


@dataclass(frozen=True)
class Reading:
    """Which layers of a larger design a smaller one reads, and where fewer heads and channels begin (`inherit`)."""

    depth: Depth = "first"
    start: Start | None = None


PLAIN = Reading()
# a projection belongs to the layer above it
_PLACE = re.compile(r"\b(encoder|decoder)\.(?:embedding|(?:layers|projections)\.(\d+))")


@dataclass(frozen=True)
class InheritedWeights:
    """Another design's weights by name, cut to size, and the names of the tensors that it could not give."""

    weights: Mapping[str, Tensor]
    missing: tuple[str, ...]


def inherit(
    weights: Mapping[str, Tensor],
    from_card: Card,
    to_card: Card,
    rule: Rule = "slice",
    head: HeadSpec | None = None,
    *,
    depth: Depth = "first",
    start: Start | None = None,
) -> InheritedWeights:
    """Read the weights of `to_card` out of those of `from_card`; gradients flow back to where they were read.

    `rule="identical"` takes the embedding and the leading layers that both designs share exactly, and nothing else,
    which is FlexiBERT's weight transfer. `head` is the task head that both models carry, if any.

    Fewer layers are the `first` ones, or spread evenly over all of them: of `n` layers, the i-th of `k` is layer
    floor(i n / k), as in DynaBERT. Fewer things of a group (heads, channels, hidden units) begin at the first one, or
    at `start` of the group and its two sizes, and go round behind the last one, as in ViTAS.
    """
    found, missing = _plan(from_card, to_card, rule, head, depth, start)
    read = {name: cut(weights[given]) for name, given, cut in found if given in weights}
    if len(read) < len(found):
        missing = tuple(sorted((*missing, *(name for name, given, _ in found if given not in weights))))
    return InheritedWeights(read, missing)


def extract(
    inherited: InheritedWeights,
    card: Card,
    settings: Settings | None = None,
    head: HeadSpec | None = None,
    seed: int = 0,
    spread: Spread = "bert",
) -> Transformer | TaskModel:
    """Build a model of its own from inherited weights, copied where they are; what is missing starts from `seed`."""
    model = skeleton(card, settings, head)
    if inherited.missing:
        model.to_empty(device="cpu")
        initialise(model, torch.Generator().manual_seed(seed), spread)
    for name, (held, leaf) in _slots(model).places.items():
        if name in inherited.weights:
            copied = inherited.weights[name].detach().clone(memory_format=torch.contiguous_format)
            held[leaf] = nn.Parameter(copied, held[leaf].requires_grad)
    return model


def run(model: nn.Module, inherited: InheritedWeights, *inputs: Any, **named: Any) -> Any:
    """Run a skeleton with inherited weights, without copying them; the skeleton stays as it was."""
    if inherited.missing:
        raise IllegalInput(
            f"cannot run from views alone: {len(inherited.missing)} tensors are missing, first {inherited.missing[0]}"
        )
    with _slots(model).lent(inherited.weights):
        return model(*inputs, **named)


@remember
def _slots(model: nn.Module) -> Slots:
    return Slots(model)


@lru_cache(maxsize=1 << 10)
def _plan(
    source: Card, target: Card, rule: Rule, head: HeadSpec | None, depth: Depth, start: Start | None
) -> tuple[tuple[tuple[str, str, TensorCut], ...], tuple[str, ...]]:
    """Work out, once for each pair of designs, what each tensor of the target is read from, and what is missing."""
    whole, part = tensors_of(source, head), tensors_of(target, head)
    if rule == "identical":
        names = {name: name for name in part if _shared_exactly(name, source, target)}
    else:
        names = {name: _read_from(name, source, target, depth) for name in part}
    found = cuts(whole, part, names, start)
    return tuple((name, names[name], cut) for name, cut in found.items()), tuple(sorted(part.keys() - found.keys()))


def _read_from(name: str, source: Card, target: Card, depth: Depth) -> str:
    """Name the tensor of the source that one of the target is read from, where the layers of both differ in number."""
    place = _PLACE.search(name)
    if place is None or place[2] is None or getattr(source, place[1]) is None:
        return name
    given, wanted = (len(getattr(card, place[1]).layers) for card in (source, target))
    index = int(place[2])  # the projection behind the last layer has their number
    if (depth == "even" and wanted < given) or index == wanted:
        index = index * given // wanted
    return f"{name[: place.start(2)]}{index}{name[place.end(2) :]}"


def _shared_exactly(name: str, source: Card, target: Card) -> bool:
    """Return whether a tensor belongs to an embedding, or to a leading layer, that both designs have."""
    place = _PLACE.search(name)
    if place is None or getattr(source, place[1]) is None:
        return False
    if place[2] is None:
        return bool(getattr(source, place[1]).embedding == getattr(target, place[1]).embedding)
    below = len(target.encoder.layers) if place[1] == "decoder" and target.encoder is not None else 0
    return below + int(place[2]) < biased_overlap(target, source)
