"""The map places trials among the designs of their space, the same every time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from formwright.core.errors import NotCountable
from formwright.core.records import Observation, Request, Trial
from formwright.core.rng import derive
from formwright.report import space_map as module
from formwright.report.space_map import FEWEST, SpaceMap, space_map
from formwright.search.listing import listing
from formwright.space import Choice, Record, Space
from formwright.testing.toy_problem import small, tiny, twins


def finished(space: Space, designs: Sequence[Any]) -> list[Trial]:
    return [
        Trial(number, Request(space.card(design), design=design), "finished", Observation({"accuracy": 0.5}))
        for number, design in enumerate(designs)
    ]


def drawn(space: Space, count: int) -> list[Trial]:
    rng = derive(0, "drawn")
    return finished(space, [space.sample(rng) for _ in range(count)])


def places(found: SpaceMap) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([(spot.x, spot.y) for spot in found.spots])


def test_trials_are_placed_whatever_became_of_them_and_stay_there() -> None:
    trials = drawn(small(), 20)
    failed = Trial(20, trials[0].request, "failed", reason="out of memory")
    found = space_map(small(), [*trials, failed])
    assert [spot.number for spot in found.spots] == list(range(21))
    assert found.hidden == ""
    assert (found.designs, found.whole) == (342, True)
    trials = drawn(small(), 30)
    before, after = space_map(small(), trials[:20]), space_map(small(), trials)
    assert after.spots[:20] == before.spots
    assert space_map(small(), trials) == after


def test_other_designs_are_those_that_nobody_took() -> None:
    everything = finished(small(), list(small().enumerate()))
    assert space_map(small(), everything).others == ()
    one_left = space_map(small(), everything[1:])
    assert one_left.others == (tuple(places(space_map(small(), everything[:30]))[0].tolist()),)


def test_the_two_directions_are_those_of_most_variance() -> None:
    points = listing(small()).points
    variances = np.linalg.eigvalsh(np.cov(points.T))
    found = space_map(small(), drawn(small(), 10))
    assert found.share == pytest.approx(variances[-2:].sum() / variances.sum())
    everything = space_map(small(), finished(small(), list(small().enumerate())))
    assert places(everything).var(axis=0, ddof=1) == pytest.approx(variances[:-3:-1], rel=0.02)


def test_designs_at_one_place_are_drawn_apart() -> None:
    (design,) = [small().sample(derive(0, "one"))]
    found = places(space_map(small(), finished(small(), [design] * 40)))
    apart = np.linalg.norm(found[:, None] - found, axis=2) + 10 * np.eye(40)
    width = max(np.ptp([place for place, _ in space_map(small(), drawn(small(), 8)).others]), 1.0)
    assert apart.min() > 0.003 * width
    assert np.linalg.norm(found - found[0], axis=1).max() < 0.1 * width


def test_very_many_trials_are_thinned_but_for_the_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRIALS", 10)
    monkeypatch.setattr(module, "MOST_OTHERS", 50)
    found = space_map(small(), drawn(small(), 100), marked={7, 8})
    numbers = [spot.number for spot in found.spots]
    assert len(numbers) == 12
    assert {0, 7, 8, 99} <= set(numbers)
    assert len(found.others) == 50


def test_few_trials_and_designs_that_are_all_alike_have_no_map() -> None:
    found = space_map(tiny(), drawn(tiny(), FEWEST - 1))
    assert all(str(number) in found.hidden for number in (FEWEST - 1, FEWEST))
    assert found == SpaceMap(hidden=found.hidden)
    assert space_map(tiny(), drawn(tiny(), FEWEST)).hidden == ""
    alone = next(tiny().enumerate())
    space = Space("alone", Record.of(side=Choice(("left", "right"))), lambda _: tiny().card(alone), "one card")
    assert "distance 0" in space_map(space, drawn(space, 10)).hidden
    assert space_map(twins(), drawn(twins(), 10)).designs == 12


def test_a_space_that_cannot_be_listed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(space: Space) -> None:
        raise NotCountable("nobody knows its designs")

    monkeypatch.setattr(module, "listing", refuse)
    hidden = space_map(small(), drawn(small(), 10)).hidden
    assert hidden == "The designs of this space cannot be placed: nobody knows its designs"
