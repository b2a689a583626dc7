"""An outline of a space: each gene it can have, where it sits and what it may hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from formwright.space.combinators import Choice, Record, Switch
from formwright.space.expression import Expressions
from formwright.space.part import Part
from formwright.space.repeat import Repeat


@dataclass(frozen=True)
class Line:
    """One gene: its place, and its options as JSON values, or a remark if there are too many to list."""

    where: str
    options: tuple[Any, ...]
    remark: str = ""


def outline(part: Part[Any], where: str = "") -> Iterator[Line]:
    """List the genes of a space in order; genes of a case exist only if that case is taken."""
    match part:
        case Choice(options):
            yield Line(where, options)
        case Record(fields):
            for name, field in fields:
                yield from outline(field, f"{where}.{name}" if where else name)
        case Repeat(member):
            yield from _repeat(part, member, where)
        case Switch(cases):
            yield Line(where, tuple(tag for tag, _ in cases))
            for tag, case in cases:
                yield from outline(case, f"{where}={tag}")
        case Expressions(largest, least, most):
            remark = f"{part.count():,} formulas of up to {largest} operations over {least} to {most} inputs"
            yield Line(where, (), remark)
        case _:
            yield Line(where, (), f"{part.count():,} values")


def _repeat(part: Repeat, member: Part[Any], where: str) -> Iterator[Line]:
    remark = f"in groups of {part.tied} that share a choice" if part.tied > 1 else ""
    if len(part.lengths) > 1 or remark:
        yield Line(f"{where}.length", part.lengths, remark)
    groups = max(part.lengths) // part.tied
    if groups:
        yield from outline(member, f"{where}[0..{groups - 1}]")
