"""What a stage says at the end of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Summary:
    """A table, lines above and below it, and the same as JSON data; headings of numbers begin with `>`."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    conclusion: Sequence[str] = ()
