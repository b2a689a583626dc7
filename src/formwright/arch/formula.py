"""Formulas of op graphs as printed mathematics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from formwright.arch.primitives import Term
from formwright.arch.simplify import simplified

# How tightly each notation binds; an operand that binds more loosely than its place allows gets parentheses.
_SUM, _QUOTIENT, _PRODUCT, _POSTFIX, _ATOM = range(5)


class _Notation(NamedTuple):
    """A piece of notation, and how tightly it binds."""

    text: str
    binding: int


def formula(term: Term) -> str:
    """Write a term as mathematics, such as `softmax(Q·Kᵀ / √d)·V`.

    The term is simplified first, softplus is recognised, and constant factors follow their product: terms that are
    equal by algebra have one formula.
    """
    return _show(simplified(term)).text


def _show(term: Term) -> _Notation:
    if isinstance(term, str):
        return _Notation(term, _ATOM)
    operation, *operands = term
    match operation:
        case "neg":
            positive = softplus_operand(term)
            if positive is not None:
                return _Notation(f"softplus({_show(positive).text})", _ATOM)
            return _Notation(f"-{_wrapped(operands[0], _PRODUCT)}", _QUOTIENT)
        case "transpose":
            return _Notation(f"{_wrapped(operands[0], _ATOM)}ᵀ", _POSTFIX)
        case "scale":
            return _Notation(f"{_wrapped(operands[0], _QUOTIENT)} / √d", _QUOTIENT)
        case "add":
            return _added(sorted(_summands(term), key=lambda part: (_first_input(part), _show(part).text)))
        case "matmul":
            # the right operand is wrapped when it is a product itself, so that the order of multiplication can be read
            return _Notation(f"{_wrapped(operands[0], _PRODUCT)}·{_wrapped(operands[1], _POSTFIX)}", _PRODUCT)
    return _Notation(f"{operation}({', '.join(_show(operand).text for operand in operands)})", _ATOM)


def softplus_operand(term: Term) -> Term | None:
    """Return x if a term is softplus(x), written -logsigmoid(-x); None otherwise."""
    return _positive(term[1][1]) if term[0] == "neg" and term[1][0] == "logsigmoid" else None


def _positive(term: Term) -> Term | None:
    """Remove the minus of a term; None if it has none or the minus belongs to a softplus."""
    if term[0] == "scale":
        inner = _positive(term[1])
        return None if inner is None else ("scale", inner)
    return term[1] if term[0] == "neg" and _show(term).binding < _ATOM else None


def _summands(term: Term) -> Iterator[Term]:
    if term[0] != "add":
        yield term
        return
    for operand in term[1:]:
        yield from _summands(operand)


def _first_input(term: Term) -> str:
    return term if isinstance(term, str) else _first_input(term[1])


def _added(parts: list[Term]) -> _Notation:
    """Write the positive summands first, then subtract the rest."""
    text = ""
    for part in sorted(parts, key=lambda part: _positive(part) is not None):
        subtracted = _positive(part) if text else None
        if subtracted is not None:
            text += f" - {_wrapped(subtracted, _QUOTIENT)}"
        else:
            text += f" + {_show(part).text}" if text else _show(part).text
    return _Notation(text, _SUM)


def _wrapped(term: Term, loosest: int) -> str:
    shown = _show(term)
    return shown.text if shown.binding >= loosest else f"({shown.text})"
