import numpy as np
import pytest
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.arch.card import Card
from formwright.arch.layers import Block
from formwright.core.rng import derive
from formwright.search.bananas import Bananas, Layers, outputs, path_codes, path_encoding, predict, slopes
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import large, run, small, tiny

GOAL = (ACCURACY,)


@pytest.mark.slow
class TestBananas(Contract):
    kind, trials, options = Bananas, 12, {"members": 3, "candidates": 30, "initial": 6}


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["path", "one-hot"])
def test_it_finds_good_designs_of_a_small_space_by_any_coordinates(coordinates: str) -> None:
    searcher = Bananas(small(), GOAL, coordinates=coordinates, initial=8)  # type: ignore[arg-type]
    assert Smooth(small()).better(searcher, 30, seed=0) < 0.02


@pytest.mark.slow
def test_most_proposals_are_mutants_of_the_best() -> None:
    space = small()
    searcher = Bananas(space, GOAL, parents=1, initial=8)
    history = run(searcher, Smooth(space), 16)
    scores = [trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation]
    best = history.trials[int(np.argmax(scores))].request.design
    near = {space.card(space.mutate(best, derive(seed))).digest for seed in range(300)}
    asked = [searcher.ask(history, derive(seed)).card.digest for seed in range(10)]
    assert sum(digest in near for digest in asked) > 5
    assert len(set(asked)) > 1  # scores are drawn, so that not all workers ask for the same


def encoder(number: int) -> tuple[Block, ...]:
    """Return the layers of one of the two-layer designs of a small space."""
    space = small()
    deep = (space.card(design) for design in space.enumerate())
    cards = [card for card in deep if card.encoder and len(card.encoder.layers) == 2]
    stack = cards[number].encoder
    return stack.layers  # type: ignore[return-value]


def card_of(*layers: Block) -> Card:
    stack = next(iter(map(small().card, small().enumerate()))).encoder
    return Card(encoder=stack.__class__(stack.embedding, layers))


def test_designs_of_a_space_have_different_points() -> None:
    for space in (tiny(), small()):
        designs = list(space.enumerate())
        points = path_encoding(space)(designs, [space.card(design) for design in designs])
        assert len(np.unique(points, axis=0)) == len(designs)
        assert set(points.ravel()) == {0.0, 1.0}


def test_each_residual_part_has_two_paths() -> None:
    below, above = encoder(5)
    # the input, then two parts of each layer, with a way around and one through each, then the output
    assert len(path_codes(card_of(below, above))) == 1 + 4 * 2 + 1
    assert len(path_codes(card_of(below))) == 1 + 2 * 2 + 1


def test_paths_are_shared_by_place() -> None:
    layers = encoder(100)
    first, second = layers
    assert first != second
    one, other = set(path_codes(card_of(first, first))), set(path_codes(card_of(first, second)))
    lone = set(path_codes(card_of(first)))
    assert len(lone - one) == 1  # all but the output, which is elsewhere
    assert 4 < len(one & other) < len(one)
    assert path_codes(card_of(first, second)) != path_codes(card_of(second, first))


def test_columns_are_few_and_the_commonest() -> None:
    space = large()
    designs = [space.sample(derive(seed), "gene") for seed in range(50)]
    cards = [space.card(design) for design in designs]
    all_columns, few = path_encoding(space)(designs, cards), path_encoding(space, 10)(designs, cards)
    assert few.shape == (50, 10)
    np.testing.assert_array_equal(few, all_columns[:, :10])
    assert few.mean() > all_columns.mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["autobert-zero", "evolved-transformer", "hat"])
def test_op_graphs_and_decoders_have_paths_too(name: str) -> None:
    space = load_space(name)
    cards = [space.card(space.sample(derive(seed), "gene")) for seed in range(5)]
    codes = [path_codes(card) for card in cards]
    assert all(len(found) > 2 for found in codes)
    assert len(set(codes)) == 5


def test_an_empty_list_has_no_points() -> None:
    assert path_encoding(tiny())([], []).shape[0] == 0


def layers(rng: np.random.Generator) -> Layers:
    return [(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 1, 5))), (rng.normal(size=(3, 5, 1)), np.ones((3, 1, 1)))]


def test_slopes_are_those_of_the_error() -> None:
    rng = np.random.default_rng(0)
    net, points, values = layers(rng), rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 6))

    def error() -> float:
        return float(np.square(outputs(net, points)[-1][..., 0] - values).mean(axis=1).sum())

    for part, slope in zip(
        [a for layer in net for a in layer], [a for layer in slopes(net, points, values) for a in layer], strict=True
    ):
        assert part.shape == slope.shape
        for place in list(np.ndindex(part.shape))[::3]:
            before = part[place]
            part[place] = before + 1e-6
            above = error()
            part[place] = before - 1e-6
            below = error()
            part[place] = before
            assert slope[place] == pytest.approx((above - below) / 2e-6, abs=1e-4)


def test_it_learns_and_is_unsure_elsewhere() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 3))
    values = points[:, 0] - 0.5 * np.abs(points[:, 1])
    values = (values - values.mean()) / values.std()
    queries = rng.normal(size=(30, 3))
    truth = queries[:, 0] - 0.5 * np.abs(queries[:, 1])
    found = predict(points, values, np.vstack([queries, 20 * queries]), 5, np.random.default_rng(1))
    assert found.shape == (5, 60)
    assert np.corrcoef(found[:, :30].mean(axis=0), truth)[0, 1] > 0.9
    deviation = found.std(axis=0)
    assert deviation[30:].mean() > 5 * deviation[:30].mean()
    assert all(len(set(column)) == 5 for column in found.T)  # no member is like another


def test_points_far_from_the_origin_and_constant_columns_are_no_trouble() -> None:
    points = np.column_stack([1e6 + np.arange(20.0), np.ones(20)])
    values = np.linspace(-1.5, 1.5, 20)
    found = predict(points, values, points, 3, np.random.default_rng(0))
    assert np.abs(found.mean(axis=0) - values).mean() < 0.5
    assert np.isfinite(predict(np.ones((4, 2)), np.zeros(4), np.ones((1, 2)), 3, np.random.default_rng(0))).all()
