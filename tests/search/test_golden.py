"""The first twenty proposals of each searcher on the toy problem are pinned.

They change when a searcher, a space or a random stream does. That is no fault in itself, but studies begun before it
cannot be resumed exactly. `python tests/search/test_golden.py` writes them anew.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from formwright.search import make_searcher
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Toy, large, outline, run, small

PINNED = Path(__file__).with_name("golden.json")
NAMES = (
    "random", "regularized-evolution", "op-nas", "nsga2", "halving", "hurdles", "local", "reinforce", "gp-bo",
    "forest", "bananas", "boshnas", "boshnas/defaults",
)  # fmt: skip
# those that fit a model look at a space quickly listed, all but the last by points that need no fit of their own
MODELLED: dict[str, dict[str, Any]] = {
    "gp-bo": {"coordinates": "one-hot"},
    "forest": {"trees": 6},
    "bananas": {"coordinates": "path"},
    "boshnas": {"coordinates": "one-hot"},
    "boshnas/defaults": {},
}


def proposals(name: str) -> list[list[object]]:
    """List the digest, steps and parent of each proposal."""
    space = small() if name in MODELLED else large()
    options = {"trials": 20, "steps": 27, **MODELLED.get(name, {})}
    searcher = make_searcher(name.partition("/")[0], space, (ACCURACY, PARAMS), **options)
    requests = outline(run(searcher, Toy(), 20))
    return [[request.card.digest[:16], request.budget.steps, request.parent] for request in requests]


@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_those_pinned(name: str) -> None:
    assert proposals(name) == json.loads(PINNED.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    PINNED.write_text(json.dumps({name: proposals(name) for name in NAMES}, indent=0) + "\n", encoding="utf-8")
