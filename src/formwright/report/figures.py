"""Numbers formatted for people, and evenly spaced samples of long lists."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formwright.cost import counted_costs

Kind = Literal["count", "milliseconds", "seconds", "score"]
_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def kind_of(name: str) -> Kind:
    """Return what a metric or cost measures, by its name."""
    if name.endswith("_ms"):
        return "milliseconds"
    if name.endswith("seconds"):
        return "seconds"
    return "count" if name == "steps" or name in counted_costs() else "score"


def figure(value: float | None, name: str) -> str:
    """Format the value of a metric or cost; a dash for None."""
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
    """Format a score with four decimals; large ones, such as perplexities, with two, and extreme ones by a power."""
    if abs(value) >= 1e9 or 0 < abs(value) < 1e-3:
        return f"{value:.3e}"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.2f}"


def short_count(value: float) -> str:
    """Format a count with three digits and a letter, such as `1.23 M`."""
    for scale, letter in _SCALES:
        if abs(value) >= scale:
            digits = 2 if abs(value) < 10 * scale else 1 if abs(value) < 100 * scale else 0
            return f"{value / scale:,.{digits}f} {letter}"
    return f"{value:,.0f}"


def long_count(value: int) -> str:
    """Format a count of any size; from a million on as `3.5 x 10^12`."""
    if value < 1_000_000:
        return f"{value:,}"
    digits, power = f"{Decimal(value):.1e}".split("e")  # a decimal, since no float is large enough for every count
    return f"{digits} x 10^{int(power)}"


def duration(seconds: float) -> str:
    """Format a time in its two largest units, such as `3 min 12 s`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    left = round(seconds)
    parts: list[str] = []
    for size, unit in _TIMES:
        if left >= size or parts:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])


def squarable(values: Sequence[float]) -> tuple[NDArray[np.float64], float]:
    """Return values and their unit: 1, or a larger one where squares of the values would overflow."""
    found = np.array(values, dtype=np.float64)
    largest = float(np.abs(found).max(initial=0.0))
    unit = largest if largest > 1e100 else 1.0
    return found / unit, unit


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced indices below `count`, including the first and the last."""
    return list(range(count)) if count <= most else np.linspace(0, count - 1, most).round().astype(int).tolist()
