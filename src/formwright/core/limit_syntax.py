"""How limits are written everywhere: `params<=5M`, `latency_ms <= 5`, `accuracy>=0.8`, `macs<=50%`."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, cast

from formwright.core.errors import IllegalInput

Relation = Literal["<=", ">=", "="]

NAME = r"[A-Za-z][\w./-]*"
_LIMIT = re.compile(rf"({NAME})\s*(<=|>=|=)\s*(.+)", re.DOTALL)
_AMOUNT = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%|ms|[kmgb]?)", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}
FORMS = "`params<=5M`, `latency_ms<=5` or `accuracy>=0.8`"


@dataclass(frozen=True)
class Amount:
    """A number with its unit resolved: `is_share` says that it was written in per cent, `is_ms` in milliseconds."""

    value: float
    is_share: bool = False
    is_ms: bool = False

    @classmethod
    def read(cls, text: str) -> "Amount | None":
        """Read `5M`, `800k`, `1.5e6`, `8ms` or `50%`; None where that is none of them."""
        form = _AMOUNT.fullmatch(text.strip())
        if form is None:
            return None
        unit = form[2].lower()
        try:
            value = float(Decimal(form[1]) * _FACTORS.get(unit, 1))  # 1.1M is exactly 1,100,000
        except ArithmeticError:  # an exponent beyond what a decimal number can have
            return None
        return cls(value, unit == "%", unit == "ms") if math.isfinite(value) else None


@dataclass(frozen=True)
class WrittenLimit:
    """What a limit names, how it relates to it, and the amount: in per cent of a reference where `is_share`."""

    name: str
    relation: Relation
    amount: float
    is_share: bool

    @classmethod
    def read(cls, text: str) -> "WrittenLimit | None":
        """Read a limit; None where the text is none. Raise `IllegalInput` where only its number is at fault."""
        form = _LIMIT.fullmatch(text.strip())
        if form is None:
            return None
        amount = Amount.read(form[3])
        if amount is None or (amount.is_ms and not form[1].endswith("_ms")):
            raise IllegalInput(f"cannot read {form[3].strip()!r} in the limit {text.strip()!r}; write it like {FORMS}")
        return cls(form[1], cast(Relation, form[2]), amount.value, amount.is_share)
