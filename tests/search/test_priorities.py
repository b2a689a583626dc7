from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from formwright.arch.card import Card
from formwright.arch.layers import Block, Stack, TokenEmbedding
from formwright.arch.ops import Identity
from formwright.core.records import Objective, Observation, Request, Trial
from formwright.search.priorities import OPERATIONS, Floats, Priorities, draw_order, operation_scores, upper_bounds
from formwright.space import Case, Choice, Expressions, Fields, Record, Repeat, Space, Switch

GOAL = (Objective.parse("accuracy:max"),)
CARD = Card(Stack(TokenEmbedding(10, 8), (Block(8, Identity(), (8,)),)))
SPACE = Space(
    "two layers",
    Record.of(layers=Repeat(Switch.of(attention=Expressions(3), convolution=Choice((3, 5, 7))), 2)),
    lambda design: CARD,
)
SUM, NEGATED = ("add", "K", "Q"), ("neg", ("add", "K", "Q"))


def trial(number: int, accuracy: float, *layers: object) -> Trial:
    cases = [Case("convolution" if isinstance(layer, int) else "attention", layer) for layer in layers]
    design = Fields.of(layers=tuple(cases))
    assert SPACE.contains(design)
    return Trial(number, Request(CARD, design=design), "finished", Observation({"accuracy": accuracy}))


# two trials of different accuracy are standardised to -1 and 1
WORSE, BETTER = trial(0, 0.5, SUM, 3), trial(1, 0.7, NEGATED, SUM)


def test_bounds_are_those_of_the_equation() -> None:
    bounds = upper_bounds([0.5, -1.0, 0.25], [4, 1, 0], alpha=0.01)
    root = np.sqrt(2 * np.log(5))
    assert bounds.tolist() == pytest.approx([0.5 + 0.01 * root / 2, -1.0 + 0.01 * root, 0.25 + 0.01 * root])
    assert upper_bounds([0.5, -1.0], [4, 1], alpha=0.0).tolist() == [0.5, -1.0]
    assert upper_bounds([0.0, 0.0], [0, 0], alpha=1.0).tolist() == [0.0, 0.0]


def test_a_table_computed_by_hand() -> None:
    table = operation_scores(SPACE, [WORSE, BETTER], GOAL, alpha=0.05)  # half of the standard deviation
    assert table.operations == OPERATIONS
    assert table.scores.shape == table.counts.shape == (2, 10)
    add, neg = OPERATIONS.index("add"), OPERATIONS.index("neg")
    # first place: a sum in three formulas, of scores -1, 1 and 1
    assert table.counts[0].tolist() == [3 if index == add else 0 for index in range(10)]
    assert table.scores[0, add] == pytest.approx(1 / 3 + 0.5 * np.sqrt(2 * np.log(3) / 3))
    assert table.scores[0, neg] == pytest.approx(1 / 3 + 0.5 * np.sqrt(2 * np.log(3)))
    # second place: a minus in one formula, of score 1
    assert table.counts[1].tolist() == [1 if index == neg else 0 for index in range(10)]
    assert table.scores[1] == pytest.approx(1.0)


def test_a_place_is_shared_by_layers_and_an_option_is_not() -> None:
    trials = [trial(0, 0.1, 3, 5), trial(1, 0.9, 5, 3)]
    priorities = Priorities.of(SPACE, trials, GOAL, alpha=0.0)
    for layer, expected in ((0, [-1.0, 1.0, 1.0]), (1, [1.0, -1.0, 1.0])):  # a kernel never seen is worth the best
        gene = next(
            gene for gene in SPACE.genes(trials[0].request.design) if gene.path == ("layers", layer, "convolution")
        )
        assert priorities.of_options(gene, gene.options).tolist() == pytest.approx(expected)
    assert priorities.places == 0


def test_trials_without_a_design_or_an_end_are_left_out() -> None:
    own = Trial(2, Request(CARD), "finished", Observation({"accuracy": 0.99}))
    pending = Trial(3, BETTER.request)
    every = operation_scores(SPACE, [WORSE, own, BETTER, pending], GOAL)
    two = operation_scores(SPACE, [WORSE, BETTER], GOAL)
    assert np.array_equal(every.counts, two.counts)
    assert np.array_equal(every.scores, two.scores)


def test_no_trial_and_no_formula_make_an_empty_table() -> None:
    for trials in ([], [trial(0, 0.5, 3, 3)]):
        table = operation_scores(SPACE, trials, GOAL)
        assert table.scores.shape == table.counts.shape == (0, 10)


def test_places_that_were_never_seen_prefer_nothing() -> None:
    priorities = Priorities.of(SPACE, [WORSE, BETTER], GOAL, alpha=0.01)
    assert priorities.of_operations(7).tolist() == [0.0] * 10


def shares(scores: Sequence[float], draws: int = 4_000) -> dict[int, float]:
    rng = default_rng(0)
    firsts: Counter[Any] = Counter(draw_order(np.array(scores), rng)[0] for _ in range(draws))
    return {index: firsts[index] / draws for index in range(len(scores))}


def test_draws_follow_the_softmax() -> None:
    scores = [1.0, 0.0, -1.0]
    expected = np.exp(scores) / np.exp(scores).sum()
    assert shares(scores) == pytest.approx(dict(enumerate(expected)), abs=0.03)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.7), (0.68, 0.7), (50.0, 70.0)])
def test_bounds_are_in_the_order_of_raw_scores(low: float, high: float) -> None:
    trials = [trial(0, low, SUM, 3), trial(1, high, ("scale", SUM), 3), trial(2, low, ("neg", SUM), 3)]
    trials += [trial(3 + number, high, ("scale", SUM), 3) for number in range(5)]
    for alpha in (0.01, 0.3):
        scores = Priorities.of(SPACE, trials, GOAL, alpha).of_operations(1)
        raw = upper_bounds([high if name == "scale" else low for name in ("scale", "neg")], [6, 1], alpha)
        scale, neg = (scores[OPERATIONS.index(name)] for name in ("scale", "neg"))
        spread = np.std([one.observation.metrics["accuracy"] for one in trials if one.observation])
        assert (scale - neg) * spread == pytest.approx(raw[0] - raw[1])


def test_where_only_the_order_of_trials_counts_alpha_is_in_its_unit() -> None:
    goals = (*GOAL, Objective.parse("accuracy>=0.6"))  # which one of the trials breaks
    table = operation_scores(SPACE, [WORSE, BETTER], goals, alpha=0.5)
    add = OPERATIONS.index("add")
    assert table.scores[0, add] == pytest.approx(1 / 3 + 0.5 * np.sqrt(2 * np.log(3) / 3))


def test_scores_that_differ_by_rounding_do_not_make_exploration_endless() -> None:
    trials = [trial(number, 0.1, SUM, 3) for number in range(3)]  # whose computed deviation is 1.4e-17
    assert np.std([0.1] * 3) > 0
    scores = Priorities.of(SPACE, trials, GOAL, 0.5).of_operations(0)
    assert np.ptp(scores) < 1.0


def test_an_order_holds_every_index_once() -> None:
    assert sorted(draw_order(np.array([3.0, -2.0, 0.0, 0.0]), default_rng(1))) == [0, 1, 2, 3]


def first_place(alpha: float) -> Floats:
    """Score operations at the first place: sums did best, similarities badly, products were never there."""
    trials = [trial(number, 0.9 + number / 1e3, SUM, 3) for number in range(10)]
    poor = ("matmul", ("cosine", "Q", "K"), "V")
    trials += [trial(10 + number, 0.1 + number / 1e3, poor, 3) for number in range(10)]
    return Priorities.of(SPACE, trials, GOAL, alpha).of_operations(0)


def test_without_exploration_better_means_likelier_and_nothing_else() -> None:
    scores = dict(zip(OPERATIONS, first_place(alpha=0.0), strict=True))
    assert scores["add"] == pytest.approx(-scores["cosine"])
    drawn = dict(zip(OPERATIONS, shares(list(scores.values())).values(), strict=True))
    assert drawn["add"] > 5 * drawn["cosine"]
    assert drawn["add"] / drawn["cosine"] == pytest.approx(np.exp(scores["add"] - scores["cosine"]), rel=0.3)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.4])
def test_what_was_never_tried_is_not_starved(alpha: float) -> None:
    scores = dict(zip(OPERATIONS, first_place(alpha), strict=True))
    drawn = dict(zip(OPERATIONS, shares(list(scores.values())).values(), strict=True))
    assert drawn["matmul"] > 1 / len(OPERATIONS) - 0.02
    assert drawn["cosine"] > 0.0


def test_exploration_favours_what_was_tried_less() -> None:
    trials = [trial(0, 0.5, SUM, 3), trial(1, 0.5, NEGATED, 3), trial(2, 0.5, ("neg", ("neg", SUM)), 3)]
    more = [trial(3 + number, 0.5, ("scale", SUM), 3) for number in range(6)]
    scores = dict(zip(OPERATIONS, Priorities.of(SPACE, trials + more, GOAL, 1.0).of_operations(1), strict=True))
    assert scores["softmax"] > scores["neg"] > scores["scale"]
