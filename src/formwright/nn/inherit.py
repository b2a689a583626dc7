"""Weights flow from card to card: a smaller design reads its weights out of a larger one's.

Nothing is copied. Widths and heads are leading slices, convolution kernels and relative positions are cut around their
centre, fewer layers are the first ones. Which tensors are cut around a centre, each module says itself in `CENTRED`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from formwright.arch.card import Card
from formwright.arch.distance import biased_overlap
from formwright.arch.layers import Block, Cell, Embedding, Layer, PatchEmbedding, TokenEmbedding
from formwright.arch.ops import (
    Attention,
    CrossAttention,
    DynamicConvolution,
    LightweightConvolution,
    Operation,
    OpGraph,
    Transform,
)
from formwright.core.errors import IllegalInput
from formwright.core.remember import remember
from formwright.nn.build import Spread, initialise, skeleton
from formwright.nn.settings import Settings
from formwright.nn.task_model import HeadSpec, TaskModel
from formwright.nn.transformer import Transformer


class Slots:
    """Run a model with other tensors in place of its weights; gradients reach these tensors.

    The locations of the weights are found once, so that a swap costs a few microseconds; `torch.func.functional_call`
    searches them in every call, a tenth of the time of small models at batch 1.
    """

    def __init__(self, model: nn.Module) -> None:
        self._places = {
            f"{path}.{name}".lstrip("."): (module._parameters, name)
            for path, module in model.named_modules()
            for name, parameter in module._parameters.items()
            if parameter is not None
        }

    @contextmanager
    def lent(self, weights: Mapping[str, Tensor]) -> Iterator[None]:
        """Replace the weights with these names within the block; the others stay."""
        unknown = [name for name in weights if name not in self._places]
        if unknown:
            raise IllegalInput(f"the model has no weight called {unknown[0]!r} ({len(unknown)} such names)")
        own = {}
        try:
            for name, tensor in weights.items():
                held, leaf = self._places[name]
                own[name] = held[leaf]
                held[leaf] = tensor  # torch looks weights up here, parameters or not
            yield
        finally:
            for name, parameter in own.items():
                held, leaf = self._places[name]
                held[leaf] = parameter


Rule = Literal["slice", "identical"]
_Cut = tuple[slice, ...]


@dataclass(frozen=True)
class InheritedWeights:
    """Views of another design's weights by name, and the names of the tensors that it could not give."""

    weights: Mapping[str, Tensor]
    missing: tuple[str, ...]


def inherit(
    weights: Mapping[str, Tensor], from_card: Card, to_card: Card, rule: Rule = "slice", head: HeadSpec | None = None
) -> InheritedWeights:
    """Read the weights of `to_card` out of those of `from_card`, as views through which gradients flow.

    `rule="identical"` takes the embedding and the leading layers that both designs share exactly, and nothing else,
    which is FlexiBERT's weight transfer. `head` is the task head that both models carry, if any.
    """
    cuts, missing = _plan(from_card, to_card, rule, head)
    views = {name: weights[name][cut] for name, cut in cuts.items() if name in weights}
    return InheritedWeights(views, tuple(sorted((*missing, *(cuts.keys() - views.keys())))))


def extract(
    inherited: InheritedWeights,
    card: Card,
    settings: Settings | None = None,
    head: HeadSpec | None = None,
    seed: int = 0,
    spread: Spread = "bert",
) -> Transformer | TaskModel:
    """Build a model of its own from inherited weights, copied; what is missing starts fresh from `seed`."""
    model = skeleton(card, settings, head)
    model.to_empty(device="cpu")
    if inherited.missing:
        initialise(model, torch.Generator().manual_seed(seed), spread)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in inherited.weights:
                parameter.copy_(inherited.weights[name])
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
def _plan(source: Card, target: Card, rule: Rule, head: HeadSpec | None) -> tuple[dict[str, _Cut], tuple[str, ...]]:
    """Work out, once for each pair of designs, where the tensors of the target lie in the source, and which do not."""
    wholes = dict(skeleton(source, head=head).named_parameters())
    model = skeleton(target, head=head)
    shared = biased_overlap(target, source)
    found: dict[str, _Cut | None] = {}
    for name, parameter in model.named_parameters():
        found[name] = None
        if name in wholes and (
            _shared_exactly(name, source, target, shared) if rule == "identical" else _compatible(name, source, target)
        ):
            found[name] = _cut(model, name, tuple(wholes[name].shape), tuple(parameter.shape))
    cuts = {name: cut for name, cut in found.items() if cut is not None}
    return cuts, tuple(name for name in found if name not in cuts)


def _cut(model: nn.Module, name: str, whole: tuple[int, ...], part: tuple[int, ...]) -> _Cut | None:
    """Say which part of the whole tensor is wanted, or None when it does not hold enough."""
    if len(whole) != len(part) or any(wanted > given for wanted, given in zip(part, whole, strict=True)):
        return None
    path, _, attribute = name.rpartition(".")
    centred = getattr(model.get_submodule(path), "CENTRED", {}).get(attribute)
    cut = [slice(0, wanted) for wanted in part]
    if centred is not None and part[centred] != whole[centred]:
        spare = whole[centred] - part[centred]
        if spare % 2:
            return None  # an even and an odd kernel have no common centre
        cut[centred] = slice(spare // 2, spare // 2 + part[centred])
    return tuple(cut)


def _shared_exactly(name: str, source: Card, target: Card, shared: int) -> bool:
    words = name.split(".")
    for part in ("layers", "projections"):  # a projection belongs to the layer above it
        if part in words:
            before = len(target.encoder.layers) if "decoder" in words and target.encoder is not None else 0
            return before + int(words[words.index(part) + 1]) < shared
    return "embedding" in words and _stack(source, words).embedding == _stack(target, words).embedding


def _compatible(name: str, source: Card, target: Card) -> bool:
    words = name.split(".")
    if "embedding" in words:
        return _embeddings_agree(_stack(source, words).embedding, _stack(target, words).embedding, name)
    if name == "head.bias":  # of a language model: one number for each word of the vocabulary
        return _embeddings_agree(source.stacks[-1].embedding, target.stacks[-1].embedding, name)
    if "classes" in words:
        return source.classes == target.classes
    if "layers" not in words:
        return True
    index = int(words[words.index("layers") + 1])
    above, own = (_stack(card, words).layers for card in (source, target))
    return index < len(above) and _layers_agree(above[index], own[index], name)


def _stack(card: Card, words: list[str]) -> Any:
    return card.encoder if "encoder" in words else card.decoder


def _embeddings_agree(source: Embedding, target: Embedding, name: str) -> bool:
    if isinstance(source, TokenEmbedding) and isinstance(target, TokenEmbedding):
        return source.vocabulary == target.vocabulary
    if isinstance(source, PatchEmbedding) and isinstance(target, PatchEmbedding) and name.endswith("positions.table"):
        # a row of positions is a place on the grid, which moves with the grid and with the tokens before it
        layouts = {(each.class_tokens, each.image // each.patch) for each in (source, target)}
        return len(layouts) == 1
    return type(source) is type(target)


def _layers_agree(source: Layer, target: Layer, name: str) -> bool:
    """Return whether a tensor means the same in two layers: same kind of layer, norms, operations and activations."""
    if isinstance(source, Block) and isinstance(target, Block):
        if source.norm != target.norm:
            return False
        part = "cross" if ".cross" in name else "mixer" if ".mixer" in name else "feed_forward"
        if part == "feed_forward":
            return (len(source.feed_forward), source.activation) == (len(target.feed_forward), target.activation)
        return _operations_agree(getattr(source, part), getattr(target, part), source.width, target.width)
    if not isinstance(source, Cell) or not isinstance(target, Cell):
        return False
    index = int(name.split(".")[name.split(".").index("junctions") + 1])
    if index >= len(source.junctions):
        return False
    ours, theirs = source.junctions[index].branches, target.junctions[index].branches
    return len(ours) == len(theirs) and all(
        (own.input, own.norm, own.activation) == (other.input, other.norm, other.activation)
        and _operations_agree(own.operation, other.operation, own.width, other.width)
        for own, other in zip(ours, theirs, strict=True)
    )


def _operations_agree(source: Operation | None, target: Operation | None, width: int, smaller: int) -> bool:
    if source is None or target is None or type(source) is not type(target):
        return False
    return _what_must_agree(source, width) == _what_must_agree(target, smaller)


def _what_must_agree(operation: Operation, width: int) -> tuple[Any, ...]:
    """List what cannot shrink: a head's width, the kind of score or transform, the length of a generated kernel."""
    match operation:
        case LightweightConvolution(_, heads, gated):
            return width // heads, gated  # the channels that share a kernel
        case Attention(_, head_width, score, relative, bias):
            return head_width, score, bias, relative and (relative.axes, relative.rows if relative.axes > 1 else None)
        case CrossAttention(_, head_width, _, bias):
            return head_width, bias
        case Transform(transform, relative):
            return transform, relative and relative.head_width
        case DynamicConvolution(kernel, _, head_width):
            return kernel, head_width
        case OpGraph(_, head_width):
            return (head_width,)
        case _:
            return ()
