"""Op graphs as the formulas a paper would print."""

from dataclasses import dataclass

from formwright.arch.primitives import Term

# How tightly each notation binds; an operand that binds more loosely than its place allows gets parentheses.
_SUM, _QUOTIENT, _PRODUCT, _POSTFIX, _ATOM = range(5)


@dataclass(frozen=True)
class _Shown:
    """A piece of notation, kept apart in the parts that the rules for what stands around it look at."""

    operation: str
    text: str  # without the divisors
    binding: int
    inside: "_Shown | None" = None  # the operand, for operations that may cancel with what is around them
    divisors: tuple[str, ...] = ()  # constants such as √d, pulled out of what they divide


def formula(term: Term) -> str:
    """Write a term as mathematics, such as `softmax(Q·Kᵀ / √d)·V`.

    Double negations and double transposes are left out, softplus is recognised, and constant factors move behind the
    product they belong to. The value is the same; the term itself is not touched.
    """
    return _whole(_show(term)).text


def _show(term: Term) -> _Shown:
    if isinstance(term, str):
        return _Shown(term, term, _ATOM)
    operation, *operands = term
    assert isinstance(operation, str), "op graphs are checked before they are drawn"
    shown = [_show(operand) for operand in operands]
    match operation:
        case "neg":
            return _negated(shown[0])
        case "transpose":
            return _transposed(shown[0])
        case "scale":
            return _divided(shown[0], ("√d",))
        case "add":
            return _added(*shown)
        case "matmul":
            return _multiplied(*shown)
    arguments = ", ".join(_whole(operand).text for operand in shown)
    return _Shown(operation, f"{operation}({arguments})", _ATOM, shown[0])


def _negated(operand: _Shown) -> _Shown:
    bare = _bare(operand)
    if (positive := _positive(operand)) is not None:
        return positive
    if bare.operation == "logsigmoid" and bare.inside is not None and (positive := _positive(bare.inside)) is not None:
        return _divided(_Shown("softplus", f"softplus({_whole(positive).text})", _ATOM), operand.divisors)
    return _divided(_Shown("neg", f"-{_wrapped(bare, _PRODUCT)}", _QUOTIENT, bare), operand.divisors)


def _positive(operand: _Shown) -> _Shown | None:
    """Take the minus off a negation; None for what is none."""
    if operand.operation != "neg" or operand.inside is None:
        return None
    return _divided(operand.inside, operand.divisors)


def _transposed(operand: _Shown) -> _Shown:
    bare = _bare(operand)
    if bare.operation == "transpose" and bare.inside is not None:
        return _divided(bare.inside, operand.divisors)
    shown = _Shown("transpose", f"{_wrapped(bare, _ATOM)}ᵀ", _POSTFIX, bare)
    return _divided(shown, operand.divisors)


def _multiplied(left: _Shown, right: _Shown) -> _Shown:
    # the right operand is wrapped when it is a product itself, so that the order of multiplication can be read
    text = f"{_wrapped(_bare(left), _PRODUCT)}·{_wrapped(_bare(right), _POSTFIX)}"
    return _divided(_Shown("matmul", text, _PRODUCT), left.divisors + right.divisors)


def _added(left: _Shown, right: _Shown) -> _Shown:
    if _positive(left) is not None and _positive(right) is None:
        left, right = right, left
    if (subtracted := _positive(right)) is not None:
        return _Shown("add", f"{_whole(left).text} - {_wrapped(_whole(subtracted), _QUOTIENT)}", _SUM)
    return _Shown("add", f"{_whole(left).text} + {_whole(right).text}", _SUM)


def _divided(operand: _Shown, divisors: tuple[str, ...]) -> _Shown:
    return _Shown(operand.operation, operand.text, operand.binding, operand.inside, operand.divisors + divisors)


def _bare(operand: _Shown) -> _Shown:
    return _Shown(operand.operation, operand.text, operand.binding, operand.inside)


def _whole(operand: _Shown) -> _Shown:
    """Put the divisors that were pulled out behind the piece they divide."""
    if not operand.divisors:
        return operand
    return _Shown("quotient", " / ".join([_wrapped(operand, _QUOTIENT), *operand.divisors]), _QUOTIENT)


def _wrapped(operand: _Shown, loosest: int) -> str:
    return operand.text if operand.binding >= loosest else f"({operand.text})"
