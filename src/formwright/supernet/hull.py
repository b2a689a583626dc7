"""The ends of a space: the design that holds every other one, out of whose weights all are read, and the smallest."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.space.combinators import Choice, Record, Switch
from formwright.space.narrow import Within
from formwright.space.part import Case, Fields, Part
from formwright.space.repeat import Repeat, Row
from formwright.space.space import Space

LENGTH = "length"  # what the number of entries of a list is called among the choices
_SAMPLED = 20  # designs that are read from the largest one before a training begins

Pick = Callable[[Any], Any]  # `max` or `min`


@dataclass(frozen=True)
class Hull:
    """A space with its largest and its smallest design."""

    space: Space
    largest: Card
    smallest: Card


def hull(space: Space) -> Hull:
    """Find the ends of a space by its structure: every choice takes its largest value, or its smallest.

    The ends may break constraints of the space: they hold the weights of all designs, and need not be designs. Raise
    `IllegalInput` where choices have no order, as those between kinds of operations.
    """
    largest, smallest = (space.card(_end(space.root, pick, space.name)) for pick in (max, min))
    return Hull(space, largest, smallest)


def check_readable(space: Space, whole: Card, samples: int = _SAMPLED) -> None:
    """Refuse a space with designs whose weights cannot be read out of those of `whole`, as samples tell."""
    import torch  # noqa: PLC0415  spaces are listed and shown without it

    from formwright.nn.build import skeleton  # noqa: PLC0415
    from formwright.nn.inherit import inherit  # noqa: PLC0415

    weights: dict[str, torch.Tensor] = dict(skeleton(whole).named_parameters())
    for turn in range(samples):
        card = space.card(space.sample(derive(0, "hull", turn), "gene"))
        if missing := inherit(weights, whole, card).missing:
            raise IllegalInput(
                f"the designs of space {space.name!r} cannot share the weights of one network: its largest design has "
                f"no {missing[0]} that a smaller one could read ({len(missing)} such tensors in sample {turn}). Spaces "
                "whose designs are slices of the largest can, such as autoformer-nano or autotinybert"
            )


def choices_of(part: Part[Any], name: str = "") -> Iterator[tuple[str, int]]:
    """List the choices of a space by field name, each with its number of options; lists come as their `length`."""
    match part:
        case Choice(options):
            yield name, len(options)
        case Record(inner) | Switch(inner):
            for key, below in inner:
                yield from choices_of(below, key)
        case Repeat(member):
            yield LENGTH, len(part.lengths)
            yield from choices_of(member, name)
        case Row(parts, lengths):
            yield LENGTH, len(lengths)
            for below in parts:
                yield from choices_of(below, name)
        case Within(_, narrower):
            yield from choices_of(narrower, name)


def opened(part: Part[Any], counts: Mapping[str, int], name: str = "") -> Part[Any]:
    """Narrow a space to the largest options of its choices: as many as `counts` says of each, or else only one."""
    match part:
        case Choice(options):
            return Choice(tuple(sorted(options, key=_size, reverse=True)[: counts.get(name, 1)]))
        case Record(inner):
            return Record(tuple((key, opened(below, counts, key)) for key, below in inner))
        case Switch(inner):
            return Switch(tuple((key, opened(below, counts, key)) for key, below in inner))
        case Repeat(member, _, tied):
            return Repeat(opened(member, counts, name), _longest(part.lengths, counts), tied)
        case Row(parts, lengths, tied):
            return Row(tuple(opened(below, counts, name) for below in parts), _longest(lengths, counts), tied)
        case Within(_, narrower):
            return opened(narrower, counts, name)
        case _:
            return part


def _longest(lengths: tuple[int, ...], counts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(lengths, reverse=True)[: counts.get(LENGTH, 1)])


def _end(part: Part[Any], pick: Pick, where: str) -> Any:
    match part:
        case Choice(options):
            return _extreme(options, pick, where)
        case Record(inner):
            return Fields(tuple((key, _end(below, pick, f"{where}.{key}")) for key, below in inner))
        case Switch(((tag, only),)):
            return Case(tag, _end(only, pick, f"{where}.{tag}"))
        case Repeat(member, _, tied):
            return (_end(member, pick, where),) * (pick(part.lengths) // tied)
        case Row(parts, lengths, tied):
            heads = [_end(below, pick, where) for below in parts]
            return tuple(heads[index // tied] for index in range(pick(lengths)))
        case Within(_, narrower):
            return _end(narrower, pick, where)
        case _:
            raise IllegalInput(
                f"{where} chooses between kinds, of which none is the largest: its designs cannot share the weights of "
                "one network"
            )


def _extreme(options: tuple[Any, ...], pick: Pick, where: str) -> Any:
    """Give the option that is largest, or smallest, in every number that it has."""
    if len(options) == 1:
        return options[0]
    rows = [option if isinstance(option, tuple) else (option,) for option in options]
    if len(set(map(len, rows))) == 1 and all(type(value) in (int, float) for row in rows for value in row):
        ends = tuple(map(pick, zip(*rows, strict=True)))
        if ends in rows:
            return options[rows.index(ends)]
    shown = ", ".join(map(str, options[:4]))
    raise IllegalInput(
        f"{where} chooses between {shown}{', ...' if len(options) > 4 else ''}, of which none is the largest: its "
        "designs cannot share the weights of one network"
    )


def _size(option: Any) -> Any:
    return option if isinstance(option, tuple) else (option,)
