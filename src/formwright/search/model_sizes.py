"""How large the delivered models may be: sizes such as `5M`, `8ms`, or `10M@8ms` for both."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formwright.core.errors import IllegalInput, UnknownName
from formwright.core.limit_syntax import Amount, WrittenLimit

PARAMS, LATENCY = "params", "latency_ms"
_FORMS = "5M, 800k, 8ms, or 10M@8ms for both"
_MILLION = 1e6


@dataclass(frozen=True)
class Size:
    """The most that a model may have: parameters, milliseconds, or both; `name` is that of the delivered model.

    A name reads as the same size again.
    """

    name: str
    limits: Mapping[str, float]

    @classmethod
    def parse(cls, text: str) -> "Size":
        """Read `5M`, `8ms`, `10M@8ms`, `params<=10M@latency_ms<=8`, or a name such as `10m-8ms`."""
        limits: dict[str, float] = {}
        for part in re.split("[@-]", text.strip()):
            cost, value = _limit(part, text)
            if cost in limits:
                raise IllegalInput(f"the size {text!r} limits {cost} twice; write {_FORMS}")
            limits[cost] = value
        shown = re.sub("params<?=", "", re.sub(r"\s", "", text.lower()))
        return cls(re.sub(r"latency_ms<?=([^@]*?)(ms)?(?=@|$)", r"\1ms", shown).replace("@", "-"), limits)


def _limit(part: str, size: str) -> tuple[str, float]:
    """Read one limit of a size: in full, or without the name that its unit gives away."""
    limit, amount = WrittenLimit.read(part), Amount.read(part)
    if amount is not None:
        limit = WrittenLimit(LATENCY if amount.is_ms else PARAMS, "<=", amount.value, amount.is_share)
    if limit is None or limit.is_share or limit.relation == ">=" or limit.amount <= 0:
        raise IllegalInput(f"cannot read the size {size!r}; write {_FORMS}")
    if limit.name not in (PARAMS, LATENCY):
        raise UnknownName("limit of a size", limit.name, [PARAMS, LATENCY])
    return limit.name, limit.amount


def parse_sizes(texts: Sequence[str]) -> tuple[Size, ...]:
    sizes = tuple(Size.parse(text) for text in texts)
    if not sizes:
        raise IllegalInput("name the sizes of the models, such as --sizes 5M,10M,15M")
    asked = {frozenset(size.limits.items()) for size in sizes}  # 5M and 5000k are one size
    if len(asked) < len(sizes):
        raise IllegalInput(f"the sizes name one size twice: {', '.join(texts)}")
    return sizes


def exceeded(size: Size, costs: Mapping[str, float]) -> list[str]:
    """Name the limits of a size that are not kept; what is not known is not counted."""
    return [name for name, limit in size.limits.items() if costs.get(name, limit) > limit]


def check_range(sizes: Sequence[Size], cost: str, least: float, most: float) -> None:
    """Refuse sizes that no chain can meet, or that all keep, and give the range that can be asked for."""
    for size in sizes:
        limit = size.limits.get(cost)
        if limit is not None and not least <= limit <= most:
            raise IllegalInput(
                f"the size {size.name} cannot be met: with this model, sizes reach from {amount(cost, least, up=True)} "
                f"to {amount(cost, most)}"
            )


def amount(cost: str, value: float, *, up: bool = False) -> str:
    """Write an amount as a size is written, rounded down or up to what can be asked for."""
    factor, unit = (1.0, "ms") if cost == LATENCY else (1e6, "M") if value >= _MILLION else (1e3, "k")
    hundredths = -(-100 * value // factor) if up else 100 * value // factor
    return f"{hundredths / 100:g}{unit}"
