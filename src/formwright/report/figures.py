"""Numbers as people read them: thousands apart, four digits of a score, times in units that fit."""

from decimal import Decimal
from typing import Literal

Kind = Literal["count", "milliseconds", "seconds", "score"]
_COUNTS = ("params", "macs", "flops", "electra", "steps")
_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def kind_of(name: str) -> Kind:
    """Tell from the name of a metric or a cost what it counts."""
    if name.endswith("_ms"):
        return "milliseconds"
    if name.endswith("seconds"):
        return "seconds"
    return "count" if name.partition("-")[0] in _COUNTS else "score"


def figure(value: float | None, name: str) -> str:
    """Write the value of a metric or a cost; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    match kind_of(name):
        case "count":
            return f"{value:,.0f}"
        case "milliseconds":
            return f"{value:,.2f} ms"
        case "seconds":
            return duration(value)
        case "score":
            return score(value)


def score(value: float) -> str:
    """Write a score with four digits behind the point; large ones, such as perplexities, with two."""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.2f}"


def short_count(value: float) -> str:
    """Write a count with three digits and a letter, such as `1.23 M`."""
    for scale, letter in _SCALES:
        if abs(value) >= scale:
            digits = 2 if abs(value) < 10 * scale else 1 if abs(value) < 100 * scale else 0
            return f"{value / scale:,.{digits}f} {letter}"
    return f"{value:,.0f}"


def long_count(value: int) -> str:
    """Write a count that may have any number of digits, from a million on as `3.5 x 10^12`."""
    if value < 1_000_000:
        return f"{value:,}"
    digits, power = f"{Decimal(value):.1e}".split("e")  # a decimal, since no float is large enough for every count
    return f"{digits} x 10^{int(power)}"


def duration(seconds: float) -> str:
    """Write a time in its two largest units, such as `3 min 12 s`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    left = round(seconds)
    parts: list[str] = []
    for size, unit in _TIMES:
        if left >= size or parts:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])
