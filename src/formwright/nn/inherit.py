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
class Inherited:
    """Views of another design's weights by name, and the names of the tensors that it could not give."""

    weights: Mapping[str, Tensor]
    missing: tuple[str, ...]


def inherit(
    weights: Mapping[str, Tensor], from_card: Card, to_card: Card, rule: Rule = "slice", head: HeadSpec | None = None
) -> Inherited:
    """Read the weights of `to_card` out of those of `from_card`, as views through which gradients flow.

    `rule="identical"` takes the embedding and the leading layers that both designs share exactly, and nothing else,
    which is FlexiBERT's weight transfer. `head` is the task head that both models carry, if any.
    """
    plan = _plan(from_card, to_card, rule, head)
    views = {name: weights[name][cut] for name, cut in plan.cuts.items() if name in weights}
    absent = [name for name in plan.cuts if name not in weights]
    return Inherited(views, tuple(sorted((*plan.missing, *absent))))


def extract(
    inherited: Inherited,
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


def run(model: nn.Module, inherited: Inherited, *inputs: Any, **named: Any) -> Any:
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


@dataclass(frozen=True)
class _Plan:
    cuts: dict[str, _Cut]
    missing: tuple[str, ...]


@lru_cache(maxsize=1 << 10)
def _plan(source: Card, target: Card, rule: Rule, head: HeadSpec | None) -> _Plan:
    """Work out, once for each pair of designs, where every tensor of the target lies in the source."""
    wholes = dict(skeleton(source, head=head).named_parameters())
    model = skeleton(target, head=head)
    shared = biased_overlap(target, source)
    cuts, missing = {}, []
    for name, parameter in model.named_parameters():
        whole = wholes.get(name)
        fits = (
            _shared_exactly(name, source, target, shared) if rule == "identical" else _compatible(name, source, target)
        )
        cut = _cut(model, name, tuple(whole.shape), tuple(parameter.shape)) if whole is not None and fits else None
        if cut is None:
            missing.append(name)
        else:
            cuts[name] = cut
    return _Plan(cuts, tuple(missing))


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
    place = _place(name)
    if place is None:
        return (
            "embedding" in name.split(".")
            and _stack_named(source, name).embedding == _stack_named(target, name).embedding
        )
    stack, index = place
    before = len(target.encoder.layers) if stack == "decoder" and target.encoder is not None else 0
    return before + index < shared


def _compatible(name: str, source: Card, target: Card) -> bool:
    if "embedding" in name.split("."):
        return _embeddings_agree(_stack_named(source, name).embedding, _stack_named(target, name).embedding, name)
    if name == "head.bias":  # of a language model: one number for each word of the vocabulary
        return _embeddings_agree(source.stacks[-1].embedding, target.stacks[-1].embedding, name)
    if "classes" in name.split("."):
        return source.classes == target.classes
    place = _place(name)
    if place is None or "projections" in name.split("."):
        return True
    stack, index = place
    layers = [getattr(card, stack).layers for card in (source, target)]
    return index < len(layers[0]) and _layers_agree(layers[0][index], layers[1][index], name)


def _place(name: str) -> tuple[str, int] | None:
    """Find the stack and the layer that a tensor belongs to; a projection belongs to the layer above it."""
    words = name.split(".")
    for stack in ("encoder", "decoder"):
        for part in ("layers", "projections"):
            if stack in words and part in words:
                return stack, int(words[words.index(part) + 1])
    return None


def _stack_named(card: Card, name: str) -> Any:
    return card.encoder if "encoder" in name.split(".") else card.decoder


def _embeddings_agree(source: Embedding, target: Embedding, name: str) -> bool:
    """Return whether a tensor means the same in two embeddings."""
    if isinstance(source, TokenEmbedding) and isinstance(target, TokenEmbedding):
        return source.vocabulary == target.vocabulary
    if isinstance(source, PatchEmbedding) and isinstance(target, PatchEmbedding):
        # a row of positions is a place on the grid, which moves with the grid and with the tokens before it
        return not name.endswith("positions.table") or _layout(source) == _layout(target)
    return type(source) is type(target)


def _layout(embedding: PatchEmbedding) -> tuple[int, int]:
    return embedding.class_tokens, embedding.image // embedding.patch


def _layers_agree(source: Layer, target: Layer, name: str) -> bool:
    """Return whether a tensor means the same in two layers: same kind of layer, norms, operations and activations."""
    if isinstance(source, Block) and isinstance(target, Block):
        if source.norm != target.norm:
            return False
        part = "cross" if ".cross" in name else "mixer" if ".mixer" in name else "feed_forward"
        if part == "feed_forward":
            return (len(source.feed_forward), source.activation) == (len(target.feed_forward), target.activation)
        return _operations_agree(getattr(source, part), getattr(target, part), source.width, target.width)
    if isinstance(source, Cell) and isinstance(target, Cell):
        index = int(name.split(".")[name.split(".").index("junctions") + 1])
        return _junctions_agree(source, target, index)
    return False


def _junctions_agree(source: Cell, target: Cell, index: int) -> bool:
    if index >= len(source.junctions):
        return False
    ours, theirs = source.junctions[index].branches, target.junctions[index].branches
    if len(ours) != len(theirs):
        return False
    return all(
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
