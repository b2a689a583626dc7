from typing import Any

import numpy as np

from formwright.core.records import History, Request, Trial
from formwright.core.rng import derive
from formwright.search.boshnas.terrain import Terrain
from formwright.search.listing import listing
from formwright.search.unseen import Proposal, anything
from formwright.testing.spaces import large, small, twins


def two_layers(card: Any) -> bool:
    return len(card.encoder.layers) == 2


def test_candidates_are_new_legal_and_each_card_once() -> None:
    for space in (small(), twins()):
        listed = listing(space, "one-hot")
        terrain = Terrain.of(listed, two_layers)
        asked = next(card for card in listed.cards if two_layers(card))
        history = History((Trial(0, Request(asked)),))
        candidates = terrain.candidates(history)
        digests = [candidates.proposal(index).card.digest for index in range(len(candidates.points))]
        expected = {card.digest for card in listed.cards if two_layers(card)} - {asked.digest}
        assert len(digests) == len(expected)
        assert set(digests) == expected


def test_points_are_scaled_by_one_number() -> None:
    space = small()
    listed = listing(space, "one-hot")
    scaled = Terrain.of(listed, anything).candidates(History()).points
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.mean(scaled**2), 1, rtol=1e-4)
    ratios = np.linalg.norm(scaled[1:] - scaled[0], axis=1) / np.linalg.norm(
        listed.points[1:] - listed.points[0], axis=1
    )
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)


def test_designs_that_are_not_listed_join_at_the_end() -> None:
    space = large()
    terrain = Terrain.of(listing(space, "one-hot"), anything)
    more = [Proposal(design, space.card(design)) for design in (space.sample(derive(seed)) for seed in range(3))]
    listed_already = terrain.candidates(History()).proposal(0)
    candidates = terrain.candidates(History(), [listed_already, *more])
    assert candidates.proposal(len(candidates.points) - 1) == more[-1]
    assert len(candidates.points) == len(terrain.rows) + 3
    np.testing.assert_array_equal(candidates.points[-3:], terrain.place(more))
