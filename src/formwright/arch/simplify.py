"""Simplify op graphs by exact algebra, so that equal formulas become one term.

Only laws that hold for every input, length and mask are used: minus, scaling and transposing are linear and cancel or
commute; sums are associative; (xy)ᵀ = yᵀxᵀ; a minus passes through products, cosines and softsign; cosine and distance
swap their operands when transposed; two minuses under a distance cancel. Products keep their association, because
(QKᵀ)V and Q(KᵀV) are different computations of one value. Scales under a cosine or a distance stay, because both are
guarded against zero vectors.

A term is read as a sum of summands. Each of them knows its lightest form in all four *phases*: as it is, negated,
transposed, and both. Terms that are equal by these laws have the same phases, and so the same simplified term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise, permutations, product
from typing import NamedTuple, TypeAlias

from formwright.arch.primitives import COMMUTATIVE, INPUTS, Term, inputs_of, size

NEGATED, TURNED = 1, 2  # the bits of a phase
PHASES = range(4)
_SUBSETS: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))
_cached = lru_cache(maxsize=1 << 16)


class TermForm(NamedTuple):
    """Hold a term and its weight: the operations of its formula, in which softplus is one.

    A form is `tied` where nothing but the names of inputs chose it among equally light ones.
    """

    weight: int
    term: Term
    tied: bool = False

    @classmethod
    def of(cls, operation: str, *operands: TermForm) -> TermForm:
        weight = 1 + sum(form.weight for form in operands)
        return cls(weight, (operation, *(form.term for form in operands)), any(form.tied for form in operands))


Forms: TypeAlias = tuple[TermForm, ...]  # one for each phase

_Way: TypeAlias = tuple[int, Callable[[], TermForm]]  # its weight, up to a constant, and how it is made


def shifted(forms: Forms, phase: int) -> Forms:
    return tuple(forms[other ^ phase] for other in PHASES)


def wrapped(phase: int, form: TermForm) -> TermForm:
    """Negate and transpose a form by writing the operations in front."""
    if phase & TURNED:
        form = TermForm.of("transpose", form)
    return TermForm.of("neg", form) if phase & NEGATED else form


def odd(operation: str, operands: Sequence[Forms], turned: Sequence[Forms]) -> Forms:
    """Return the phases of an operation that is odd in each operand; on `turned` operands the result is transposed."""
    return _in_front([_signed(operation, taken, sign) for taken in (operands, turned) for sign in (0, NEGATED)])


def distance(left: Forms, right: Forms) -> tuple[TermForm, TermForm]:
    """Return a distance, plain and negated; negating both operands does not change it."""
    pairs = [(left[sign], right[sign]) for sign in (0, NEGATED)]
    form = _lightest([(one.weight + two.weight, partial(TermForm.of, "euclidean", one, two)) for one, two in pairs])
    return form, wrapped(NEGATED, form)


def log_sigmoid(inner: Forms) -> tuple[TermForm, TermForm]:
    # softplus(x) = -logsigmoid(-x) counts as one operation, so that a minus inside and one outside stay together
    form = TermForm.of("logsigmoid", inner[0])
    softplus = 1 + inner[NEGATED].weight
    as_it_is = form._replace(weight=min(form.weight, 1 + softplus))
    return as_it_is, wrapped(NEGATED, form)._replace(weight=min(1 + form.weight, softplus))


def total(parts: Sequence[Forms]) -> Forms:
    """Return the phases of a sum, whose parts may be negated or transposed together."""
    return _in_front([_lightest_sum([shifted(forms, phase) for forms in parts]) for phase in PHASES])


def _in_front(forms: Sequence[TermForm]) -> Forms:
    """Return the lightest form of each phase, where minus and transpose may also be put in front of another phase."""
    return tuple(
        _lightest(
            [
                (front.bit_count() + forms[front ^ phase].weight, partial(wrapped, front, forms[front ^ phase]))
                for front in PHASES
            ]
        )
        for phase in PHASES
    )


def _signed(operation: str, operands: Sequence[Forms], sign: int) -> TermForm:
    ways: list[_Way] = []
    for signs in product((0, NEGATED), repeat=len(operands)):
        if sum(signs) % 2 == sign:
            taken = [forms[own] for forms, own in zip(operands, signs, strict=True)]
            ways.append((sum(form.weight for form in taken), partial(TermForm.of, operation, *taken)))
    return _lightest(ways)


def _lightest_sum(parts: list[Forms]) -> TermForm:
    ways: dict[tuple[int, ...], _Way] = {}
    for others in _SUBSETS:
        taken = tuple([min((0, *others), key=lambda phase: forms[phase].weight) for forms in parts])
        if taken not in ways:
            weight = sum(forms[phase].weight for forms, phase in zip(parts, taken, strict=True))
            weight += sum(phase.bit_count() for phase in set(taken))
            ways[taken] = weight, partial(_grouped, taken, parts)
    return _lightest(list(ways.values()))


def _grouped(taken: tuple[int, ...], parts: list[Forms]) -> TermForm:
    groups: list[list[TermForm]] = [[] for _ in PHASES]
    for phase, forms in zip(taken, parts, strict=True):
        groups[phase].append(forms[phase])
    return _added([*groups[0], *(wrapped(phase, _added(groups[phase])) for phase in PHASES[1:] if groups[phase])])


def _added(forms: Iterable[TermForm]) -> TermForm:
    ordered = sorted(forms, key=lambda form: (_structure(form.term), repr(form.term)))
    alike = any(_structure(one.term) == _structure(two.term) for one, two in pairwise(ordered) if one != two)
    tied = alike and len(ordered) > 2  # of two, none is added first
    last = ordered.pop()
    while ordered:
        last = TermForm.of("add", *sorted((ordered.pop(), last), key=lambda form: repr(form.term)))
    return last._replace(tied=last.tied or tied)


def _lightest(ways: list[_Way]) -> TermForm:
    """Make the lightest form; among equals the one with the fewest operations, then with a leading minus."""
    least = min(weight for weight, _ in ways)
    made = {form.term: form for form in (make() for weight, make in ways if weight == least)}
    if len(made) == 1:
        return next(iter(made.values()))
    orders = {term: (size(term), term[0] != "neg", _structure(term)) for term in made}
    best = [form for term, form in made.items() if orders[term] == min(orders.values())]
    return best[0] if len(best) == 1 else min(best, key=lambda form: repr(form.term))._replace(tied=True)


@lru_cache(maxsize=1 << 14)
def _structure(term: Term) -> str:
    """Write a term without the names of its inputs and the order of its summands."""
    if isinstance(term, str):
        return "x"
    operands = [_structure(operand) for operand in term[1:]]
    return f"{term[0]}({' '.join(sorted(operands) if term[0] in COMMUTATIVE else operands)})"


class _Summand(NamedTuple):
    """A value in each phase, and how many times it is scaled."""

    scales: int
    forms: Forms


def simplified(term: Term) -> Term:
    """Return the simplest term of equal value, the same for all terms that are equal by the laws above."""
    return _simplest(term).term


@_cached
def representative(term: Term) -> Term:
    """Return a simplified term whose graph is the same for all terms that are equal up to renaming inputs."""
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
def _simplest(term: Term) -> TermForm:
    return _argument(_whole(_summands(term)))[0]


@_cached
def _summands(term: Term) -> tuple[_Summand, ...]:
    if isinstance(term, str):
        return (_Summand(0, tuple(wrapped(phase, TermForm(0, term)) for phase in PHASES)),)
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
    """Apply an operation that does not distribute over sums."""
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
    form = TermForm.of(operation, arguments[0][0])
    return _Summand(0, tuple(wrapped(phase, form) for phase in PHASES))


def _whole(summands: tuple[_Summand, ...]) -> _Summand:
    """Build a sum with the most scaled summands in the innermost brackets: a + (b + c / √d) / √d."""
    if len(summands) == 1:
        return summands[0]
    least = min(summand.scales for summand in summands)
    here = [summand.forms for summand in summands if summand.scales == least]
    inside = tuple(_Summand(one.scales - least, one.forms) for one in summands if one.scales > least)
    if inside:
        here.append(_argument(_whole(inside)))
    return _Summand(least, total(here))


def _argument(summand: _Summand) -> Forms:
    forms = summand.forms
    for _ in range(summand.scales):
        forms = tuple(TermForm.of("scale", form) for form in forms)
    return forms
