"""Costs and digests of sampled and published designs stay what they were when they were pinned.

The first spaces were pinned when the counts were closed forms for each operation. To pin a new space or card, add what
`lines`, `applied` and `fingerprint` give for it to `pinned_counts.json`.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from formwright.arch.card import Card
from formwright.arch.graph import graph_digest
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.cost.conventions import cost
from formwright.cost.counts import macs, params, params_attention, params_body
from formwright.space.zoo import CARDS, SPACES, load_card, load_space

PINNED = json.loads((Path(__file__).parent / "pinned_counts.json").read_text())
CONVENTIONS = ("electra", "params-with-mlm-head", "vitas")  # those that refuse designs
FIRST, TOGETHER = 100, 50  # designs of each space in the quick test, and in one line of the file


def sampled(space: str, first: int, last: int) -> list[Card]:
    found = load_space(space)
    return [found.card(found.sample(derive(7, "pinned", number), "gene")) for number in range(first, last)]


def counts(card: Card) -> list[Any]:
    numbers = params(card), params_body(card), params_attention(card), macs(card), macs(card, 37)
    return [card.digest, graph_digest(card), *numbers]


def of_conventions(card: Card) -> list[int | None]:
    """Count by each convention; None where it refuses the design."""
    found: list[int | None] = []
    for name in CONVENTIONS:
        try:
            found.append(int(cost(card, name, 128)))
        except IllegalInput:
            found.append(None)
    return found


def fingerprint(rows: Iterable[list[Any]]) -> str:
    content = hashlib.sha256()
    for row in rows:
        content.update(json.dumps(row).encode())
    return content.hexdigest()[:16]


def lines(space: str, first: int, last: int) -> list[str]:
    starts = range(first, last, TOGETHER)
    return [fingerprint(map(counts, sampled(space, start, start + TOGETHER))) for start in starts]


def applied(space: str) -> str:
    return fingerprint(map(of_conventions, sampled(space, 0, TOGETHER)))


@pytest.mark.parametrize("space", PINNED["spaces"])
def test_costs_and_digests_are_as_they_were(space: str) -> None:
    assert lines(space, 0, FIRST) == PINNED["spaces"][space][: FIRST // TOGETHER]


@pytest.mark.long
@pytest.mark.parametrize("space", PINNED["spaces"])
def test_costs_and_digests_of_further_designs_are_as_they_were(space: str) -> None:
    pinned = PINNED["spaces"][space]
    assert lines(space, FIRST, TOGETHER * len(pinned)) == pinned[FIRST // TOGETHER :]


@pytest.mark.parametrize("space", PINNED["conventions"])
def test_conventions_count_and_refuse_as_they_did(space: str) -> None:
    assert applied(space) == PINNED["conventions"][space]


def test_published_cards_are_as_they_were() -> None:
    cards = {name: load_card(name) for name in PINNED["cards"]}
    found = {name: fingerprint([[*counts(card), *of_conventions(card)]]) for name, card in cards.items()}
    assert found == PINNED["cards"]


def test_every_published_space_and_card_is_pinned() -> None:
    assert set(PINNED["spaces"]) == set(PINNED["conventions"]) == set(SPACES.names())
    assert set(PINNED["cards"]) == set(CARDS.names())
    designs = [load_space(space).sample(derive(7, "pinned", 0)) for space in PINNED["spaces"]]
    cards = [load_space(space).card(design) for space, design in zip(PINNED["spaces"], designs, strict=True)]
    assert {"encoder", "decoder", "encoder-decoder", "vision"} == {card.family for card in cards}
    assert {"tokens", "patches", "frames"} == {stack.embedding.TYPE for card in cards for stack in card.stacks}


def test_ten_thousand_designs_are_pinned() -> None:
    assert TOGETHER * sum(map(len, PINNED["spaces"].values())) >= 10_000
