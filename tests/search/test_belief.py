import numpy as np
import pytest

from formwright.core.records import Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.belief import FEWEST, believed
from formwright.space import Space
from formwright.space.zoo import load_card, load_space
from formwright.space.zoo.elastic import elastic
from formwright.testing.spaces import small

SPACE = elastic(load_card("bert-mini"), (1, 2, 3, 4), (256, 512, 768, 1024))


def worth(design: object) -> float:
    """Say how good a design really is: wider is better, and the first layers count most."""
    layers = design.layers  # type: ignore[attr-defined]
    return sum((layer.heads / 4 + layer.feed_forward / 1024) / (2 + index) for index, layer in enumerate(layers)) / 10


def trials(number: int, seed: int = 0, space: Space = SPACE) -> list[Trial]:
    rng = derive(seed, "designs")
    designs = [space.sample(rng) for _ in range(number)]
    return [
        Trial(index, Request(space.card(design), design=design), "finished", Observation({"loss": 0.0}))
        for index, design in enumerate(designs)
    ]


def scored(found: list[Trial], noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    true = np.array([worth(trial.request.design) for trial in found])
    return true, true + noise * derive(seed, "noise").normal(size=len(found))


@pytest.mark.parametrize("seed", range(5))
def test_noisy_scores_are_believed_to_be_nearer_to_the_truth(seed: int) -> None:
    found = trials(80, seed)
    true, seen = scored(found, 0.02, seed)
    told = believed(SPACE, found, seen)
    assert np.abs(told - true).mean() < 0.6 * np.abs(seen - true).mean()


def test_what_is_chosen_by_belief_is_better_than_what_is_chosen_by_noisy_scores() -> None:
    gains = []
    for seed in range(20):
        found = trials(60, seed)
        true, seen = scored(found, 0.03, seed)
        gains.append(true[believed(SPACE, found, seen).argmax()] - true[seen.argmax()])
    assert np.mean(gains) > 0.005
    assert np.mean(np.array(gains) < 0) < 0.3


def test_scores_without_noise_keep_their_order() -> None:
    found = trials(60)
    true, _ = scored(found, 0.0)
    told = believed(SPACE, found, true)
    assert np.abs(told - true).max() < 0.01 * np.ptp(true)
    assert told.argmax() == true.argmax()


def test_pure_noise_leaves_little_difference() -> None:
    found = trials(80)
    seen = derive(3, "noise").normal(size=80)
    assert np.ptp(believed(SPACE, found, seen)) < 0.5 * np.ptp(seen)


def test_sizes_and_layers_that_differ_are_numbers_too() -> None:
    space = elastic(load_card("bert-mini"), [[1, 2, 4], [2, 4], [1, 4], [4]], [[256, 1024]] * 4, hidden=(128, 256))
    found = trials(80, space=space)
    true = np.array([sum(gene.value for gene in space.genes(trial.request.design)) / 4e3 for trial in found])
    seen = true + 0.1 * true.std() * derive(0, "noise").normal(size=80)
    assert np.abs(believed(space, found, seen) - true).mean() < np.abs(seen - true).mean()


def test_equal_scores_stay_equal() -> None:
    found = trials(30)
    assert np.ptp(believed(SPACE, found, np.full(30, 0.7))) == 0.0


def test_few_scores_are_believed_as_they_are() -> None:
    found = trials(FEWEST - 1)
    _, seen = scored(found, 0.1)
    assert (believed(SPACE, found, seen) == seen).all()


def test_scores_of_designs_from_elsewhere_are_believed_as_they_are() -> None:
    found = trials(30)
    _, seen = scored(found, 0.1)
    found[3] = Trial(3, Request(found[3].request.card), "finished", Observation({"loss": 0.0}))
    assert (believed(SPACE, found, seen) == seen).all()


@pytest.mark.parametrize("space", [small(), load_space("flexibert-nano")], ids=lambda space: space.name)
def test_scores_of_designs_that_choose_other_things_than_numbers_are_believed_as_they_are(space: Space) -> None:
    found, seen = trials(30, space=space), derive(0).normal(size=30)
    assert (believed(space, found, seen) == seen).all()
