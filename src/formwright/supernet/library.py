"""A library of weights for all designs of a space: each layer of a stack has the largest tensors of any of its layers.

Where the largest design of a space holds the weights of all others, the library is that design. Where a space chooses
between kinds (operations, scores, cells), each layer has its own tensors for each kind, as large as the largest of that
kind in any layer of the stack: a design reads each part from the tensors of its kind, and slices them where it is
smaller. So single paths, branches and slices are one thing.
"""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor as Weight
from torch import nn

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.arch.heads import HeadSpec
from formwright.arch.tensors import Factor, Tensor
from formwright.core.errors import IllegalInput
from formwright.core.files import unreadable, write_file
from formwright.core.rng import derive
from formwright.nn.build import initialise, kept_skeleton
from formwright.nn.cuts import TensorCut, cut_between, cuts
from formwright.nn.inherit import PLAIN, InheritedWeights, Reading, extract, inherit
from formwright.nn.settings import Settings, Spread
from formwright.nn.task_model import TaskModel
from formwright.space.space import Space
from formwright.supernet.hull import find_hull, with_raised

LIBRARY = "library.safetensors"  # the file, in the folder of a super-network
Example = tuple[Card, str]  # a design, and the name of the tensor in it
LOOKED_AT = 200  # designs by which the share is known that a library holds
_SAMPLED, _QUIET, _MOST = 300, 1_000, 8_000  # designs to look at: at first, without news before the end, in all
_PLACE = re.compile(r"(?P<stack>.+?)\.(?P<list>layers|projections)\.(?P<index>\d+)\.(?P<leaf>.+)")
_CROSSED = 0.7  # of the designs that are looked at after the first ones; the others are mutants


@dataclass(frozen=True, eq=False)
class Library:
    """Declared tensors by the names that they are stored by: their names, and behind `@` their kind where it matters.

    Tensors of one kind share numbers, whatever their sizes.
    `examples` has a design and a name for each tensor: a tensor that starts like it, though it may be smaller.
    """

    tensors: Mapping[str, Tensor]
    examples: Mapping[str, tuple[Card, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, cards: Iterable[Card], head: HeadSpec | None = None) -> "Library":
        """Hold what some designs need, the largest of each kind."""
        gathered = _Gathered()
        for card in cards:
            gathered.add(tensors_of(card, head), card)
        return gathered.library()

    @classmethod
    def holding(cls, declared: Iterable[Mapping[str, Tensor]]) -> "Library":
        """Hold what is declared, the largest of each kind, where it is not that of whole designs."""
        gathered = _Gathered()
        for tensors in declared:
            gathered.add(tensors)
        return gathered.library()

    def stored(self, tensors: Mapping[str, Tensor]) -> dict[str, str]:
        """Say by which name each tensor of a design is stored; what is not there is left out."""
        names = {name: (name, f"{name}@{_words(_kind(tensor))}") for name, tensor in tensors.items()}
        return {name: one for name, both in names.items() for one in both if one in self.tensors}

    def read(self, weights: Mapping[str, Weight], tensors: Mapping[str, Tensor]) -> InheritedWeights:
        """Read a design's tensors out of the weights of this library; gradients flow back to them."""
        found = _plan(self, tuple(tensors.values()))
        read = {name: cut(weights[stored]) for name, stored, cut in found if stored in weights}
        return InheritedWeights(read, tuple(sorted(tensors.keys() - read.keys())))

    def holds(self, tensors: Mapping[str, Tensor]) -> bool:
        return len(_plan(self, tuple(tensors.values()))) == len(tensors)


@lru_cache(maxsize=1 << 10)
def _plan(library: Library, tensors: tuple[Tensor, ...]) -> tuple[tuple[str, str, TensorCut], ...]:
    wanted = {tensor.name: tensor for tensor in tensors}
    names = library.stored(wanted)
    return tuple((name, names[name], cut) for name, cut in cuts(library.tensors, wanted, names).items())


class _Gathered:
    """The largest tensors of designs so far, by name and kind, each with the first design that had one."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[Any, ...], tuple[Tensor, Example | None]]] = {}
        self._seen: set[Tensor] = set()

    def add(self, tensors: Mapping[str, Tensor], card: Card | None = None) -> bool:
        """Take the tensors of a design, and tell whether any was new, or larger than before."""
        news = False
        for name, tensor in tensors.items():
            if tensor in self._seen:
                continue
            self._seen.add(tensor)
            kinds, kind = self._found.setdefault(name, {}), _kind(tensor)
            own = None if card is None else (card, name)
            held, example = kinds.get(kind, (None, own))
            joined = tensor if held is None else _joined(held, tensor)
            news |= joined is not held
            kinds[kind] = joined, own if joined == tensor else example
        return news

    def join_places(self) -> None:
        """Let every layer of a stack have tensors as large as any layer has of their kind, and all joints projections.

        How many layers a design has, and how wide they are, decides what there is at a place: samples show the largest
        tensors of upper layers, and some projections, hardly ever.
        """
        widest: dict[tuple[str, str, str, tuple[Any, ...]], tuple[Tensor, Example | None]] = {}
        depths: dict[str, int] = {}
        for place, kinds in self._places():
            if place["list"] == "layers":
                depths[place["stack"]] = max(depths.get(place["stack"], 0), int(place["index"]) + 1)
            for kind, (held, example) in kinds.items():
                key = place["stack"], place["list"], place["leaf"], kind
                known, first = widest.get(key, (held, example))
                widest[key] = _joined(known, held), first
        for (stack, what, leaf, kind), (tensor, example) in widest.items():
            for index in range(1, depths.get(stack, 0)) if what == "projections" else ():
                part = f"{stack}.projections.{index}"
                own = Tensor(f"{part}.{leaf}", tensor.axes, part, tensor.kind)
                self._found.setdefault(own.name, {}).setdefault(kind, (own, example))
        for place, kinds in self._places():
            for kind, (held, example) in kinds.items():
                wide, _ = widest[place["stack"], place["list"], place["leaf"], kind]
                kinds[kind] = _joined(held, wide), example

    def _places(self) -> Iterator[tuple[re.Match[str], dict[tuple[Any, ...], tuple[Tensor, Example | None]]]]:
        """List what there is in layers and between them."""
        for name, kinds in self._found.items():
            if (place := _PLACE.fullmatch(name)) is not None:
                yield place, kinds

    def library(self) -> Library:
        found = {
            name if len(kinds) == 1 else f"{name}@{_words(kind)}": held
            for name, kinds in self._found.items()
            for kind, held in kinds.items()
        }
        examples = {name: example for name, (_, example) in found.items() if example is not None}
        return Library({name: tensor for name, (tensor, _) in found.items()}, examples)


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    """List what must be equal for two tensors of a name to share numbers: their kind, and sizes that cannot shrink."""
    factors = [factor for axis in tensor.axes for factor in axis]
    fixed = [factor.size if factor.cut == "whole" else factor.size % 2 for factor in factors if factor.cut != "leading"]
    return (*tensor.kind, *fixed)


def _joined(one: Tensor, other: Tensor) -> Tensor:
    """Give the smallest tensor out of which both can be read."""
    axes = tuple(
        tuple(mine if mine.size >= its.size else its for mine, its in zip(*both, strict=True))
        for both in zip(one.axes, other.axes, strict=True)
    )
    return one if axes == one.axes else Tensor(one.name, axes, one.part, one.kind)


def _words(kind: tuple[Any, ...]) -> str:
    return "/".join(map(str, kind))


@lru_cache(maxsize=8)
def library_of(space: Space, head: HeadSpec | None = None) -> Library:
    """Find what all designs of a space need: as many as it takes are looked at, until nothing new is found.

    Those that had something new are crossed and mutated, which leads to the rare largest tensors of each kind.
    """
    gathered, rng = _Gathered(), derive(0, "library")
    informative: list[Any] = []  # designs that brought new tensors
    quiet = 0
    for turn in range(_MOST):
        if turn < _SAMPLED:
            made = space.sample(derive(0, "hull", turn), "gene")
        else:
            latest = int(len(informative) * rng.random() ** 0.5)  # later ones are likelier
            made = informative[latest]
            if rng.random() < _CROSSED:
                made = space.crossover(made, informative[int(rng.integers(len(informative)))], rng)
            made = space.mutate(made, rng)
        quiet += 1
        cards = with_raised(space, made) if turn < _SAMPLED else (space.card(made),)
        if sum(gathered.add(tensors_of(card, head), card) for card in cards):  # all of them, whatever the first one has
            informative.append(made)
            quiet = 0
        if quiet == _QUIET:
            break
    hull = find_hull(space)
    for card in (hull.largest, hull.smallest):
        gathered.add(tensors_of(card, head), card)
    gathered.join_places()
    return gathered.library()


def count_held(library: Library, space: Space, head: HeadSpec | None = None, sampled: int = LOOKED_AT) -> int:
    """Count how many of some sampled designs a library holds: a design may have tensors that no look has shown."""
    drawn = (space.sample(derive(0, "held", turn), "gene" if turn % 2 else "design") for turn in range(sampled))
    return sum(library.holds(tensors_of(space.card(one), head)) for one in drawn)


class LibraryWeights(nn.Module):
    """The weights of a library, for designs with the head of a task, if any."""

    def __init__(
        self, library: Library, spec: HeadSpec | None, settings: Settings | None, weights: Mapping[str, Weight]
    ) -> None:
        super().__init__()
        self.library, self.spec, self.settings = library, spec, settings or Settings()
        if missing := library.tensors.keys() - weights.keys():
            raise IllegalInput(f"the weights lack {min(missing)} of the library, and {len(missing) - 1} others")
        for name in weights:  # in their order: it decides in which order gradients are summed up
            self._parameters[name] = nn.Parameter(weights[name])  # `register_parameter` refuses names with dots

    @classmethod
    def fresh(
        cls, library: Library, spec: HeadSpec, settings: Settings | None, seed: int, spread: Spread
    ) -> "LibraryWeights":
        """Make new weights; the same seed gives the same."""
        generator, weights = torch.Generator().manual_seed(seed), {}
        for stored, tensor in library.tensors.items():
            card, example = library.examples[stored]
            path, _, name = example.rpartition(".")
            # the module of a design that has it, with this tensor alone, whose size may be larger
            module = copy.copy(kept_skeleton(card, None, spec).get_submodule(path))
            weights[stored] = nn.Parameter(torch.empty(tensor.shape))
            module._parameters = {**dict.fromkeys(module._parameters), name: weights[stored]}
            module._modules = {}
            initialise(module, generator, spread)
        return cls(library, spec, settings, weights)

    def start_from(self, weights: Mapping[str, Weight], declared: Mapping[str, Tensor]) -> int:
        """Take over what a design has, and say how many tensors were taken, wholly or in part.

        Its numbers go where a design of its sizes reads them.
        """
        return take_over(dict(self.named_parameters()), self.library.tensors, weights, declared)

    def save(self, path: Path) -> None:
        """Write one file: the weights by their stored names, and what the library declares."""
        declared = {name: [one.axes, one.part, one.kind] for name, one in self.library.tensors.items()}
        weights = {name: one.detach().cpu().contiguous() for name, one in self.named_parameters()}
        write_file(path, save(weights, {"library": json.dumps(declared)}))

    @classmethod
    def load(cls, path: Path, spec: HeadSpec | None, settings: Settings | None) -> "LibraryWeights":
        """Read what `save` wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                declared = json.loads(file.metadata()["library"])
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
            tensors = {
                name: Tensor(
                    name.partition("@")[0],
                    tuple(tuple(Factor(*factor) for factor in axis) for axis in axes),
                    part,
                    _tuples(kind),
                )
                for name, (axes, part, kind) in declared.items()
            }
            return cls(Library(tensors), spec, settings, weights)
        except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise unreadable(path, error) from None


@torch.no_grad()
def take_over(
    own: Mapping[str, Weight],
    tensors: Mapping[str, Tensor],
    weights: Mapping[str, Weight],
    declared: Mapping[str, Tensor],
    *,
    without_additions: bool = False,
) -> int:
    """Copy the weights of another design into larger, or smaller, tensors, and count those that were reached.

    Of each tensor goes what both have: it is cut out of the one, and put where it would be cut out of the other.
    `without_additions` also takes the maps of an operation that lacks an addition which the other has, such as tables
    of relative positions.
    """
    taken = 0
    for stored, mine in tensors.items():
        name = stored if stored in declared else stored.partition("@")[0]  # a library has the same names
        if name not in weights or name not in declared:
            continue
        if mine.kind != declared[name].kind and not (without_additions and _same_but_additions(mine, declared[name])):
            continue
        if (common := _common(mine, declared[name])) is None:
            continue
        into, out_of = cut_between(mine, common), cut_between(declared[name]._replace(kind=mine.kind), common)
        if into is None or out_of is None:
            continue  # kernels, for instance, that have no common centre
        into.write(own[stored], out_of(weights[name]))
        taken += 1
    return taken


def _same_but_additions(one: Tensor, other: Tensor) -> bool:
    """Tell whether kinds differ only in what one of them has, and the other has not."""
    pairs = zip(one.kind, other.kind, strict=False)
    return len(one.kind) == len(other.kind) and all(mine == its or None in (mine, its) for mine, its in pairs)


def _common(one: Tensor, other: Tensor) -> Tensor | None:
    """Give the largest tensor that both hold; None where their axes are made up differently."""
    if [len(axis) for axis in one.axes] != [len(axis) for axis in other.axes]:
        return None
    pairs = (zip(*both, strict=True) for both in zip(one.axes, other.axes, strict=True))
    return one._replace(axes=tuple(tuple(min(pair, key=lambda one: one.size) for pair in axis) for axis in pairs))


def _tuples(kind: Any) -> Any:
    return tuple(map(_tuples, kind)) if isinstance(kind, list) else kind


def views_of(model: TaskModel | LibraryWeights, card: Card, reading: Reading = PLAIN) -> InheritedWeights:
    """Read the weights of a design out of a super-network: its largest design, or its library."""
    weights = dict(model.named_parameters())
    if isinstance(model, LibraryWeights):
        return model.library.read(weights, tensors_of(card, model.spec))
    own = model.transformer.card
    return inherit(weights, own, card, head=model.spec, depth=reading.depth, start=reading.start)


def extracted(model: TaskModel | LibraryWeights, card: Card, reading: Reading = PLAIN) -> TaskModel:
    """Give a design as a model of its own, with weights of its own."""
    views = views_of(model, card, reading)
    if views.missing:
        raise IllegalInput(f"the super-network lacks {views.missing[0]} of this design")
    found = extract(views, card, model.settings, model.spec)
    assert isinstance(found, TaskModel)
    return found.eval()
