"""The first twenty proposals of each searcher on the toy problem are pinned.

They change when a searcher, a space or a random stream does. That is no fault in itself, but studies begun before it
cannot be resumed exactly. `python tests/search/test_golden.py` writes them anew.
"""

import json
from pathlib import Path

import pytest

from formwright.search import make_searcher
from formwright.testing.loop import outline, run
from formwright.testing.objective import Toy
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.spaces import large

PINNED = Path(__file__).with_name("golden.json")
NAMES = ("random", "regularized-evolution", "nsga2", "halving", "local")


def proposals(name: str) -> list[list[object]]:
    """List the digest, steps and parent of each proposal."""
    searcher = make_searcher(name, large(), (ACCURACY, PARAMS), trials=20, steps=27)
    requests = outline(run(searcher, Toy(), 20))
    return [[request.card.digest[:16], request.budget.steps, request.parent] for request in requests]


@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_those_pinned(name: str) -> None:
    assert proposals(name) == json.loads(PINNED.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    PINNED.write_text(json.dumps({name: proposals(name) for name in NAMES}, indent=0) + "\n", encoding="utf-8")
