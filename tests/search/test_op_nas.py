from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from tests.search.contract import Contract

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.graph import plain_digest
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Identity, LightweightConvolution
from formwright.core.records import History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.op_nas import (
    ALPHA,
    OPERATIONS,
    Floats,
    OpNas,
    Priorities,
    _edited,
    draw_order,
    operation_scores,
    upper_bounds,
)
from formwright.search.proposals import Legal, SpaceExhausted, anything
from formwright.space import Case, Choice, Expressions, Fields, Record, Repeat, Space, Switch
from formwright.space.term_edits import TermGene, operation_names
from formwright.space.zoo.autobert_zero import autobert_zero
from formwright.testing.searcher_contract import ACCURACY, SearcherContract
from formwright.testing.toy_problem import Toy, large, run, small

SPACE = autobert_zero("tiny attentions", 3, 2, 4, largest=7, kernels=(3, 5, 7), vocabulary=50)


@dataclass(frozen=True)
class Scores:
    """Score formulas by how often softmax comes second and a product last, and convolutions by a kernel of 5."""

    def evaluate(self, request: Request, context: Any = None) -> Observation:
        layers = request.card.encoder.layers  # type: ignore[attr-defined]
        return Observation({"accuracy": float(np.mean([self.merit(layer) for layer in layers]))})

    def merit(self, layer: Block) -> float:
        if isinstance(layer.mixer, LightweightConvolution):
            return 0.6 if layer.mixer.kernel == 5 else 0.2
        names = operation_names(layer.mixer.term)
        return 0.5 * (names[1:2] == ("softmax",)) + 0.5 * (names[-1] == "matmul")


class TestOpNas(Contract):
    kind, options = OpNas, {"population": 8, "parents": 3, "children": 2}


class TestOpNasOnFormulas(SearcherContract):
    """The same where layers hold formulas."""

    trials = 18

    def make(self, space: Space, objectives: tuple[Objective, ...], legal: Legal = anything) -> OpNas:
        return OpNas(space, objectives, legal, population=5, parents=2, children=2, alpha=0.0)

    def test_designs_with_formulas_are_new_and_belong_to_the_space(self) -> None:
        history = run(self.make(SPACE, (ACCURACY,)), Scores(), self.trials)
        assert all(SPACE.contains(trial.request.design) for trial in history.trials)
        assert len(history.digests) == self.trials

    def test_another_object_asks_the_same_of_formulas(self) -> None:
        history = run(self.make(SPACE, (ACCURACY,)), Scores(), self.trials)
        for length in (6, 12, 18):
            past = History(history.trials[:length])
            asked = [self.make(SPACE, (ACCURACY,)).ask(past, derive(7)) for _ in range(2)]
            assert asked[0] == asked[1]


def test_formulas_that_are_equal_by_algebra_are_proposed_once() -> None:
    space = autobert_zero("one tiny attention", 1, 2, 4, largest=2, kernels=(3,), vocabulary=50)
    plain = {plain_digest(space.card(design)): design for design in space.enumerate()}
    assert len(plain) < space.count()
    requests = [Request(space.card(design), design=design) for design in plain.values()]
    trials = [Trial(number, one, "finished", Observation({"accuracy": 0.5})) for number, one in enumerate(requests)]
    searcher = OpNas(space, (ACCURACY,), anything, population=5, parents=2, children=2)
    asked = searcher.ask(History(tuple(trials[:-1])), derive(0))
    assert plain_digest(asked.card) == plain_digest(requests[-1].card)  # type: ignore[arg-type]
    with pytest.raises(SpaceExhausted):
        searcher.ask(History(tuple(trials)), derive(0))


def test_formulas_with_other_letters_are_proposed_once() -> None:
    one, twin = (("matmul", ("softmax", ("matmul", name, ("transpose", "K"))), "V") for name in ("Q", "P"))
    first, second = (SPACE.card(Fields.of(layers=(Case("attention", term),) * 3)) for term in (one, twin))
    assert first.digest != second.digest
    assert plain_digest(first) == plain_digest(second)


def best(history: History) -> float:
    return max(trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation)


@pytest.mark.slow
def test_it_beats_random_search_on_formulas() -> None:
    found = [best(run(OpNas(SPACE, (ACCURACY,), anything, 20, 5, 2), Scores(), 120, seed)) for seed in range(3)]
    drawn = [best(run(RandomSearch(SPACE, (ACCURACY,)), Scores(), 120, seed)) for seed in range(3)]
    assert np.mean(found) > np.mean(drawn) + 0.1


@pytest.mark.slow
@pytest.mark.long
def test_it_beats_random_search_where_there_are_no_formulas() -> None:
    found = [best(run(OpNas(large(), (ACCURACY,), anything, 20, 5, 2), Toy(), 150, seed)) for seed in range(3)]
    drawn = [best(run(RandomSearch(large(), (ACCURACY,)), Toy(), 150, seed)) for seed in range(3)]
    assert min(found) > max(drawn)


def test_parents_are_the_best_before_the_generation_and_have_equally_many_children() -> None:
    searcher = OpNas(small(), (ACCURACY,), anything, population=6, parents=3, children=2)
    history = run(searcher, Toy(), 6 + 3 * 6)
    for start in (6, 12, 18):
        past = History(history.trials[:start]).finished
        ranked = sorted(past, key=lambda trial: -(trial.observation.metrics["accuracy"] if trial.observation else 0.0))
        worst = ranked[2].observation.metrics["accuracy"]  # type: ignore[union-attr]
        asked = [trial.request.parent for trial in history.trials[start : start + 6]]
        assert all(parent is not None and parent < start for parent in asked)
        assert asked[0] == asked[1] != asked[2] == asked[3] != asked[4] == asked[5]
        for parent in asked:
            assert history.trials[parent].observation.metrics["accuracy"] >= worst  # type: ignore[index, union-attr]


def test_a_child_differs_from_its_parent_in_few_layers_of_either_kind() -> None:
    history = run(OpNas(SPACE, (ACCURACY,), anything, 6, 3, 2), Scores(), 40)
    pairs = [_beside_its_parent(history, trial) for trial in history.trials[6:]]
    # one layer may change its kind, and one its formula or kernel
    assert {sum(mine != theirs for mine, theirs in layers) for layers in pairs} <= {1, 2}
    turns = {(theirs.tag, mine.tag) for layers in pairs for mine, theirs in layers if mine.tag != theirs.tag}
    assert turns == {("attention", "convolution"), ("convolution", "attention")}


def _beside_its_parent(history: History, trial: Trial) -> list[tuple[Case, Case]]:
    assert trial.request.parent is not None
    parent = history.trials[trial.request.parent]
    return list(zip(_layers(trial.request), _layers(parent.request), strict=True))


def _layers(request: Request) -> tuple[Case, ...]:
    return request.design.layers  # type: ignore[attr-defined, no-any-return]


def told(*scored: tuple[tuple[Case, ...], float]) -> History:
    """Make a history of designs with given scores."""
    trials = []
    for number, (layers, accuracy) in enumerate(scored):
        design = Fields.of(layers=layers)
        assert SPACE.contains(design)
        request = Request(SPACE.card(design), design=design)
        trials.append(Trial(number, request, "finished", Observation({"accuracy": accuracy})))
    return History(tuple(trials))


def test_an_operation_that_did_best_at_a_place_is_put_there() -> None:
    """Formulas begin with many operations, and only the one that begins with softmax did well."""
    rng, formulas = derive(0, "formulas"), {}
    for _ in range(100):
        for layer in SPACE.sample(rng).layers:  # type: ignore[attr-defined]
            if layer.tag == "attention":
                formulas[operation_names(layer.value)[0]] = (layer,) * 3
    history = told(*((layers, float(name == "softmax")) for name, layers in formulas.items()))
    plain = ("matmul", ("neg", "Q"), ("matmul", ("transpose", "K"), "V"))
    design = Fields.of(layers=(Case("attention", plain),) * 3)
    gene = next(gene for gene in SPACE.genes(design) if isinstance(gene, TermGene))

    def led_by_softmax(trials: tuple[Trial, ...]) -> int:
        priorities, draws = Priorities.of(SPACE, trials, (ACCURACY,), ALPHA), derive(1)
        edited = [_edited(gene, priorities, draws) for _ in range(250)]
        return sum(operation_names(term)[0] == "softmax" for term in edited if term is not None)

    assert led_by_softmax(history.finished) > 2 * led_by_softmax(()) > 0


def convolutions(*kernels: int) -> tuple[Case, ...]:
    return tuple(Case("convolution", kernel) for kernel in kernels)


def test_kernels_are_drawn_by_merit_in_their_own_layer() -> None:
    history = told(
        *((convolutions(5, kernel, 3), 0.9) for kernel in (3, 5)),
        *((convolutions(3, kernel, 5), 0.1) for kernel in (3, 5)),
        (convolutions(7, 3, 7), 0.1),
    )
    searcher = OpNas(SPACE, (ACCURACY,), anything, population=5, parents=1, children=1, alpha=0.0)
    asked = [_layers(searcher.ask(history, default_rng(seed))) for seed in range(150)]
    first = Counter(layers[0].value for layers in asked if layers[0].tag == "convolution")
    last = Counter(layers[2].value for layers in asked if layers[2].tag == "convolution")
    assert first.most_common(1)[0][0] == 5
    assert last.most_common(1)[0][0] == 3


def test_unguided_kernels_are_equally_likely_and_guided_ones_are_not() -> None:
    history = told((convolutions(5, 5, 5), 0.9), *((convolutions(3, 3, kernel), 0.1) for kernel in (3, 5, 7)))

    def share_of_5(**options: bool) -> float:
        searcher = OpNas(SPACE, (ACCURACY,), anything, population=4, parents=1, children=1, **options)
        asked = [_layers(searcher.ask(history, default_rng(seed))) for seed in range(200)]
        changed = [layer.value for layers in asked for layer in layers if layer.tag == "convolution"]
        return sum(kernel == 5 for kernel in changed) / len(changed)

    assert share_of_5() > share_of_5(guided=False) + 0.02


def test_more_exploration_leads_elsewhere() -> None:
    def asked(alpha: float) -> list[str]:
        searcher = OpNas(SPACE, (ACCURACY,), anything, 6, 3, 2, alpha=alpha)
        return [trial.request.card.digest for trial in run(searcher, Scores(), 24).trials]

    none, little, much = asked(0.0), asked(0.3), asked(3.0)
    assert none[:6] == little[:6] == much[:6]
    assert len({tuple(none), tuple(little), tuple(much)}) == 3


GOAL = (Objective.parse("accuracy:max"),)
CARD = Card(Stack(TokenEmbedding(10, 8), (Block(8, Identity(), (8,)),)))

TWO_LAYERS = Space(
    "two layers",
    Record.of(layers=Repeat(Switch.of(attention=Expressions(3), convolution=Choice((3, 5, 7))), 2)),
    lambda design: CARD,
)

SUM, NEGATED = ("add", "K", "Q"), ("neg", ("add", "K", "Q"))


def trial(number: int, accuracy: float, *layers: object) -> Trial:
    cases = [Case("convolution" if isinstance(layer, int) else "attention", layer) for layer in layers]
    design = Fields.of(layers=tuple(cases))
    assert TWO_LAYERS.contains(design)
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
    table = operation_scores(TWO_LAYERS, [WORSE, BETTER], GOAL, alpha=0.05)  # half of the standard deviation
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
    priorities = Priorities.of(TWO_LAYERS, trials, GOAL, alpha=0.0)
    for layer, expected in ((0, [-1.0, 1.0, 1.0]), (1, [1.0, -1.0, 1.0])):  # a kernel never seen is worth the best
        gene = next(
            gene for gene in TWO_LAYERS.genes(trials[0].request.design) if gene.path == ("layers", layer, "convolution")
        )
        assert priorities.scores(gene.path, gene.options).tolist() == pytest.approx(expected)
    assert priorities.places == 0


def test_trials_without_designs_or_formulas_add_nothing() -> None:
    own = Trial(2, Request(CARD), "finished", Observation({"accuracy": 0.99}))
    pending = Trial(3, BETTER.request)
    every = operation_scores(TWO_LAYERS, [WORSE, own, BETTER, pending], GOAL)
    two = operation_scores(TWO_LAYERS, [WORSE, BETTER], GOAL)
    assert np.array_equal(every.counts, two.counts)
    assert np.array_equal(every.scores, two.scores)
    for trials in ([], [trial(0, 0.5, 3, 3)]):
        table = operation_scores(TWO_LAYERS, trials, GOAL)
        assert table.scores.shape == table.counts.shape == (0, 10)
    priorities = Priorities.of(TWO_LAYERS, [WORSE, BETTER], GOAL, alpha=0.01)
    assert priorities.scores(7).tolist() == [0.0] * 10


def shares(scores: Sequence[float], draws: int = 4_000) -> dict[int, float]:
    rng = default_rng(0)
    firsts: Counter[Any] = Counter(draw_order(np.array(scores), rng)[0] for _ in range(draws))
    return {index: firsts[index] / draws for index in range(len(scores))}


def test_draws_follow_the_softmax_and_hold_every_index_once() -> None:
    assert sorted(draw_order(np.array([3.0, -2.0, 0.0, 0.0]), default_rng(1))) == [0, 1, 2, 3]
    scores = [1.0, 0.0, -1.0]
    expected = np.exp(scores) / np.exp(scores).sum()
    assert shares(scores) == pytest.approx(dict(enumerate(expected)), abs=0.03)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.7), (0.68, 0.7), (50.0, 70.0)])
def test_bounds_are_in_the_order_of_raw_scores(low: float, high: float) -> None:
    trials = [trial(0, low, SUM, 3), trial(1, high, ("scale", SUM), 3), trial(2, low, ("neg", SUM), 3)]
    trials += [trial(3 + number, high, ("scale", SUM), 3) for number in range(5)]
    for alpha in (0.01, 0.3):
        scores = Priorities.of(TWO_LAYERS, trials, GOAL, alpha).scores(1)
        raw = upper_bounds([high if name == "scale" else low for name in ("scale", "neg")], [6, 1], alpha)
        scale, neg = (scores[OPERATIONS.index(name)] for name in ("scale", "neg"))
        spread = np.std([one.observation.metrics["accuracy"] for one in trials if one.observation])
        assert (scale - neg) * spread == pytest.approx(raw[0] - raw[1])


def test_where_only_the_order_of_trials_counts_alpha_is_in_its_unit() -> None:
    goals = (*GOAL, Objective.parse("accuracy>=0.6"))  # which one of the trials breaks
    table = operation_scores(TWO_LAYERS, [WORSE, BETTER], goals, alpha=0.5)
    add = OPERATIONS.index("add")
    assert table.scores[0, add] == pytest.approx(1 / 3 + 0.5 * np.sqrt(2 * np.log(3) / 3))


def test_scores_that_differ_by_rounding_do_not_make_exploration_endless() -> None:
    trials = [trial(number, 0.1, SUM, 3) for number in range(3)]  # whose computed deviation is 1.4e-17
    assert np.std([0.1] * 3) > 0
    scores = Priorities.of(TWO_LAYERS, trials, GOAL, 0.5).scores(0)
    assert np.ptp(scores) < 1.0


def first_place(alpha: float) -> Floats:
    """Score operations at the first place: sums did best, similarities badly, products were never there."""
    trials = [trial(number, 0.9 + number / 1e3, SUM, 3) for number in range(10)]
    poor = ("matmul", ("cosine", "Q", "K"), "V")
    trials += [trial(10 + number, 0.1 + number / 1e3, poor, 3) for number in range(10)]
    return Priorities.of(TWO_LAYERS, trials, GOAL, alpha).scores(0)


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
    scores = dict(zip(OPERATIONS, Priorities.of(TWO_LAYERS, trials + more, GOAL, 1.0).scores(1), strict=True))
    assert scores["softmax"] > scores["neg"] > scores["scale"]
