"""The lightest way to write a value as it is, negated, transposed, and both: the four phases of a form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise, product
from typing import NamedTuple, TypeAlias

from formwright.arch.primitives import COMMUTATIVE, Term, size

NEGATED, TURNED = 1, 2  # the bits of a phase
PHASES = range(4)
_SUBSETS: tuple[tuple[int, ...], ...] = ((), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))


class Form(NamedTuple):
    """Hold a term and its weight: the operations of its formula, in which softplus is one.

    A form is `tied` where nothing but the names of inputs chose it among equally light ones.
    """

    weight: int
    term: Term
    tied: bool = False

    @classmethod
    def of(cls, operation: str, *operands: Form) -> Form:
        """Apply an operation to forms."""
        weight = 1 + sum(form.weight for form in operands)
        return cls(weight, (operation, *(form.term for form in operands)), any(form.tied for form in operands))


Forms: TypeAlias = tuple[Form, ...]  # one for each phase
_Way: TypeAlias = tuple[int, Callable[[], Form]]  # its weight, up to a constant, and how it is made


def shifted(forms: Forms, phase: int) -> Forms:
    """Give the forms of what is negated or transposed."""
    return tuple(forms[other ^ phase] for other in PHASES)


def wrapped(phase: int, form: Form) -> Form:
    """Negate and transpose a form by writing so."""
    if phase & TURNED:
        form = Form.of("transpose", form)
    return Form.of("neg", form) if phase & NEGATED else form


def scaled(forms: Forms, times: int) -> Forms:
    """Scale forms so many times."""
    for _ in range(times):
        forms = tuple(Form.of("scale", form) for form in forms)
    return forms


def odd(operation: str, operands: Sequence[Forms], turned: Sequence[Forms]) -> Forms:
    """Give the phases of what changes its sign with each operand; on `turned` operands it comes out transposed."""
    return _in_front([_signed(operation, taken, sign) for taken in (operands, turned) for sign in (0, NEGATED)])


def distance(left: Forms, right: Forms) -> tuple[Form, Form]:
    """Give a distance, as it is and negated; where both operands change their sign, it stays."""
    pairs = [(left[sign], right[sign]) for sign in (0, NEGATED)]
    form = _lightest([(one.weight + two.weight, partial(Form.of, "euclidean", one, two)) for one, two in pairs])
    return form, wrapped(NEGATED, form)


def log_sigmoid(inner: Forms) -> tuple[Form, Form]:
    """Give a logsigmoid, as it is and negated."""
    # softplus(x) = -logsigmoid(-x) counts as one operation, so that a minus inside and one outside stay together
    form = Form.of("logsigmoid", inner[0])
    softplus = 1 + inner[NEGATED].weight
    as_it_is = form._replace(weight=min(form.weight, 1 + softplus))
    return as_it_is, wrapped(NEGATED, form)._replace(weight=min(1 + form.weight, softplus))


def total(parts: Sequence[Forms]) -> Forms:
    """Give the phases of a sum, whose parts may be negated or transposed together."""
    return _in_front([_lightest_sum([shifted(forms, phase) for forms in parts]) for phase in PHASES])


def _in_front(forms: Sequence[Form]) -> Forms:
    """Give each phase the lightest form, where minus and transpose may also stand in front of that of another."""
    return tuple(
        _lightest(
            [
                (front.bit_count() + forms[front ^ phase].weight, partial(wrapped, front, forms[front ^ phase]))
                for front in PHASES
            ]
        )
        for phase in PHASES
    )


def _signed(operation: str, operands: Sequence[Forms], sign: int) -> Form:
    ways: list[_Way] = []
    for signs in product((0, NEGATED), repeat=len(operands)):
        if sum(signs) % 2 == sign:
            taken = [forms[own] for forms, own in zip(operands, signs, strict=True)]
            ways.append((sum(form.weight for form in taken), partial(Form.of, operation, *taken)))
    return _lightest(ways)


def _lightest_sum(parts: list[Forms]) -> Form:
    ways: dict[tuple[int, ...], _Way] = {}
    for others in _SUBSETS:
        taken = tuple([min((0, *others), key=lambda phase: forms[phase].weight) for forms in parts])
        if taken not in ways:
            weight = sum(forms[phase].weight for forms, phase in zip(parts, taken, strict=True))
            weight += sum(phase.bit_count() for phase in set(taken))
            ways[taken] = weight, partial(_grouped, taken, parts)
    return _lightest(list(ways.values()))


def _grouped(taken: tuple[int, ...], parts: list[Forms]) -> Form:
    groups: list[list[Form]] = [[] for _ in PHASES]
    for phase, forms in zip(taken, parts, strict=True):
        groups[phase].append(forms[phase])
    return _added([*groups[0], *(wrapped(phase, _added(groups[phase])) for phase in PHASES[1:] if groups[phase])])


def _added(forms: Iterable[Form]) -> Form:
    ordered = sorted(forms, key=lambda form: (_structure(form.term), repr(form.term)))
    alike = any(_structure(one.term) == _structure(two.term) for one, two in pairwise(ordered) if one != two)
    tied = alike and len(ordered) > 2  # of two, none is added first
    last = ordered.pop()
    while ordered:
        last = Form.of("add", *sorted((ordered.pop(), last), key=lambda form: repr(form.term)))
    return last._replace(tied=last.tied or tied)


def _lightest(ways: list[_Way]) -> Form:
    """Make the lightest form; of equally light ones that with the fewest operations, and then with a minus in front."""
    least = min(weight for weight, _ in ways)
    made = {form.term: form for form in (make() for weight, make in ways if weight == least)}
    if len(made) == 1:
        return next(iter(made.values()))
    orders = {term: _order(term) for term in made}
    best = [form for term, form in made.items() if orders[term] == min(orders.values())]
    return best[0] if len(best) == 1 else min(best, key=lambda form: repr(form.term))._replace(tied=True)


def _order(term: Term) -> tuple[int, bool, str]:
    return size(term), term[0] != "neg", _structure(term)


@lru_cache(maxsize=1 << 14)
def _structure(term: Term) -> str:
    """Write a term without the names of its inputs and the order of its summands."""
    if isinstance(term, str):
        return "x"
    operands = [_structure(operand) for operand in term[1:]]
    return f"{term[0]}({' '.join(sorted(operands) if term[0] in COMMUTATIVE else operands)})"
