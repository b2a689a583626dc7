"""Costs and digests of sampled designs stay what they were when the counts were closed forms for each operation."""

import hashlib
import json
from pathlib import Path

import pytest

from formwright.arch.graph import graph_digest
from formwright.core.rng import derive
from formwright.cost.counts import macs, params, params_attention, params_body
from formwright.space.zoo import load_space

PINNED = json.loads((Path(__file__).parent / "pinned_counts.json").read_text())
DESIGNS, FIRST, TOGETHER = 600, 100, 50  # sampled of each space, in the quick test, and in one line of the file


def lines(space: str, first: int, last: int) -> list[str]:
    found = load_space(space)
    whole = []
    for start in range(first, last, TOGETHER):
        content = hashlib.sha256()
        for number in range(start, start + TOGETHER):
            card = found.card(found.sample(derive(7, "pinned", number), "gene"))
            counts = [params(card), params_body(card), params_attention(card), macs(card), macs(card, 37)]
            content.update(json.dumps([card.digest, graph_digest(card), *counts]).encode())
        whole.append(content.hexdigest()[:16])
    return whole


@pytest.mark.parametrize("space", PINNED)
def test_costs_and_digests_are_as_they_were(space: str) -> None:
    assert lines(space, 0, FIRST) == PINNED[space][: FIRST // TOGETHER]


@pytest.mark.long
@pytest.mark.parametrize("space", PINNED)
def test_costs_and_digests_of_further_designs_are_as_they_were(space: str) -> None:
    assert lines(space, FIRST, DESIGNS) == PINNED[space][FIRST // TOGETHER :]


def test_ten_thousand_designs_are_pinned() -> None:
    assert TOGETHER * sum(map(len, PINNED.values())) >= 10_000
