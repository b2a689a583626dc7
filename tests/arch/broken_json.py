"""Break the JSON of cards."""

import json
import math
from typing import Any

from numpy.random import Generator
from tests.arch.random_ops import pick

SMALL = (
    '{"schema":1,"encoder":{"embedding":{"type":"tokens","vocabulary":9,"width":8},'
    '"layers":[{"type":"block","width":8,"mixer":{"type":"attention","heads":2,"head_width":4}}]}}'
)
STRANGE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 1.0, 1e300, math.inf, math.nan, 10**13, 10**4000, -(10**4000), "", "Q", "attention",
    "\ud800", "\x1b[31m", [], {}, [[]], [None], {"type": []}, {"type": {}}, {"type": None}, {"": 0}, {"schema": 1},
)  # fmt: skip


def places(data: Any) -> list[tuple[Any, Any]]:
    """List every (holder, key) of JSON data."""
    keys: list[Any] = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [(data, key) for key in keys] + [place for key in keys for place in places(data[key])]


def mutate(data: Any, rng: Generator) -> None:
    """Drop, add, exchange or change something somewhere."""
    holder, key = pick(rng, places(data))
    other_holder, other_key = pick(rng, places(data))
    kind = pick(rng, ("drop", "add", "strange", "exchange", "number"))
    if kind == "drop":
        del holder[key]
    elif kind == "add":
        holder[key] = {"more": holder[key]} if isinstance(holder[key], list) else [holder[key], holder[key]]
    elif kind == "strange":
        holder[key] = pick(rng, STRANGE)
    elif kind == "exchange":
        holder[key] = json.loads(json.dumps(other_holder[other_key]))
    elif isinstance(holder[key], int):
        holder[key] += int(rng.integers(-3, 4))
