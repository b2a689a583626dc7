"""Simplify op graphs by the algebra that is certain, so that equal formulas become one term.

Certain is what holds for every input, length and mask: minus, scaling and transposing are linear and undo or pass one
another; sums are associative; (xy)ᵀ = yᵀxᵀ; a minus passes through products, cosines and softsign; cosine and distance
turn round when transposed; two minuses under a distance cancel. Products stay associated as they are, because
(QKᵀ)V and Q(KᵀV) are different computations of one value, and scales under a cosine or a distance stay, because both
are guarded against vectors of no length.

A term is read as a sum of summands. Each of them knows its lightest form in all four *phases*: as it is, negated,
transposed, and both. What the laws call equal has the same phases, and so the same simplified term.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

from formwright.arch.forms import (
    NEGATED,
    PHASES,
    TURNED,
    Form,
    Forms,
    distance,
    log_sigmoid,
    odd,
    scaled,
    shifted,
    total,
    wrapped,
)
from formwright.arch.primitives import INPUTS, Term, inputs_of

_cached = lru_cache(maxsize=1 << 16)


class _Summand(NamedTuple):
    """Hold what is scaled so many times, in each phase."""

    scales: int
    forms: Forms


def simplified(term: Term) -> Term:
    """Return the simplest term of equal value, the same for all terms that the algebra above makes equal."""
    return _simplest(term).term


@_cached
def representative(term: Term) -> Term:
    """Return a simplified term whose graph is the same for all terms that are equal but for the names of inputs."""
    simplest = _simplest(term)
    if not simplest.tied:
        return simplest.term
    used = inputs_of(term)
    renamings = (dict(zip(used, letters, strict=True)) for letters in permutations(INPUTS[: len(used)]))
    return min((simplified(_renamed(term, names)) for names in renamings), key=repr)


def _renamed(term: Term, names: dict[str, str]) -> Term:
    if isinstance(term, str):
        return names[term]
    return (term[0], *(_renamed(operand, names) for operand in term[1:]))


@_cached
def _simplest(term: Term) -> Form:
    return _argument(_whole(_summands(term)))[0]


@_cached
def _summands(term: Term) -> tuple[_Summand, ...]:
    if isinstance(term, str):
        return (_Summand(0, tuple(wrapped(phase, Form(0, term)) for phase in PHASES)),)
    operation, *operands = term
    values = [_summands(operand) for operand in operands]
    match operation:
        case "add":
            return (*values[0], *values[1])
        case "scale":
            return tuple(_Summand(one.scales + 1, one.forms) for one in values[0])
        case "neg" | "transpose":
            phase = NEGATED if operation == "neg" else TURNED
            return tuple(_Summand(one.scales, shifted(one.forms, phase)) for one in values[0])
    return (_applied(str(operation), [_whole(value) for value in values]),)


def _applied(operation: str, operands: list[_Summand]) -> _Summand:
    """Apply an operation that does not simply pass through sums."""
    if operation == "matmul":
        left, right = operands
        turned = shifted(right.forms, TURNED), shifted(left.forms, TURNED)
        return _Summand(left.scales + right.scales, odd(operation, (left.forms, right.forms), turned))
    arguments = [_argument(operand) for operand in operands]
    match operation:
        case "cosine":
            return _Summand(0, odd(operation, arguments, arguments[::-1]))
        case "softsign":
            return _Summand(0, odd(operation, arguments, [shifted(arguments[0], TURNED)]))
        case "euclidean":
            return _Summand(0, (*distance(*arguments), *distance(*arguments[::-1])))
        case "logsigmoid":
            return _Summand(0, (*log_sigmoid(arguments[0]), *log_sigmoid(shifted(arguments[0], TURNED))))
    form = Form.of(operation, arguments[0][0])
    return _Summand(0, tuple(wrapped(phase, form) for phase in PHASES))


def _whole(summands: tuple[_Summand, ...]) -> _Summand:
    """Put a sum together, what is scaled most in the innermost brackets: a + (b + c / √d) / √d."""
    if len(summands) == 1:
        return summands[0]
    least = min(summand.scales for summand in summands)
    here = [summand.forms for summand in summands if summand.scales == least]
    inside = tuple(_Summand(one.scales - least, one.forms) for one in summands if one.scales > least)
    if inside:
        here.append(_argument(_whole(inside)))
    return _Summand(least, total(here))


def _argument(summand: _Summand) -> Forms:
    return scaled(summand.forms, summand.scales)
