from dataclasses import replace

import numpy as np
import pytest
from tests.search.contract import Contract
from tests.search.smooth import Smooth

from formwright.core.errors import IllegalDesign
from formwright.core.records import History, Observation, Request, Spent
from formwright.core.rng import derive
from formwright.search import linas, make_searcher
from formwright.search.evolution import Nsga2
from formwright.search.linas import Linas, _gains
from formwright.search.predictors.ensembles import CrossValidated
from formwright.search.predictors.regressors import Ridge, SupportVectors
from formwright.search.scores import Scores, hypervolume, score
from formwright.space import Space
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Toy, ask, run, small, tell

GOALS = (ACCURACY, PARAMS)


class TestLinas(Contract):
    kind, trials, options = Linas, 12, {"initial": 5, "population": 8, "generations": 3}


class TestLinasInRounds(Contract):
    kind, trials, options = (
        Linas,
        12,
        {"initial": 5, "population": 8, "generations": 3, "batch": 4, "predictor": SupportVectors()},
    )


def asked_at_once(searcher: Linas, history: History, number: int) -> list[str]:
    """Ask for some designs before any of them is evaluated."""
    for _ in range(number):
        history = ask(searcher, history, seed=0)
    return [trial.request.card.digest for trial in history.trials[-number:]]


def test_designs_of_a_round_do_not_depend_on_which_of_them_are_evaluated() -> None:
    searcher = Linas(small(), GOALS, initial=6, population=8, generations=3, batch=4, explore=0.0)
    begun = run(searcher, Toy(), 10)  # six random ones and a round
    one_by_one = [trial.request.card.digest for trial in run(searcher, Toy(), 14).trials[10:]]
    assert asked_at_once(searcher, begun, 4) == one_by_one
    learning = Linas(small(), GOALS, initial=6, population=8, generations=3, batch=1, explore=0.0)
    assert asked_at_once(learning, begun, 4) != [
        one.request.card.digest for one in run(learning, Toy(), 14).trials[10:]
    ]


def test_failed_designs_do_not_count_as_proposed() -> None:
    searcher = Linas(small(), GOALS, initial=3, batch=4)
    history = run(searcher, Toy(), 5)
    (known, none), waiting = searcher._known(history), ask(searcher, history, seed=0)
    assert len(known) == 3
    assert [trial.number for trial in history.trials[3:]] == [3, 4]
    assert len(none) == 2
    design = waiting.trials[-1].request.design
    assert searcher._known(waiting)[1] == [*none, design]
    failed = replace(waiting.trials[-1], state="failed", reason="too large")
    assert searcher._known(replace(waiting, trials=(*waiting.trials[:-1], failed)))[1] == none


def test_the_design_that_is_predicted_to_gain_most_is_proposed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = Linas(small(), GOALS, initial=6, population=8, generations=3, explore=0.0)
    seen: list[np.ndarray] = []

    def noted(scores: Scores, predicted: np.ndarray, proposed: np.ndarray) -> np.ndarray:
        seen.extend((predicted, _gains(scores, predicted, proposed)))
        return seen[1]

    history = run(searcher, Toy(), 8)
    monkeypatch.setattr(linas, "_gains", noted)
    first = next(searcher._promising(history, derive(0)))
    known, _ = searcher._known(history)
    predict = searcher._predictions(known, score(known, GOALS))
    predicted, gains = seen
    assert predict([first.design])[0] == pytest.approx(predicted[gains.argmax()])
    assert gains.max() > gains.min()


def test_a_trial_of_an_earlier_round_counts_as_soon_as_it_is_evaluated() -> None:
    searcher = Linas(small(), GOALS, initial=6, population=8, generations=3, batch=4, explore=0.0)
    waiting = History()
    for number in range(11):
        waiting = ask(searcher, waiting, seed=0)
        if number != 9:  # the last of its round takes longer
            waiting = tell(waiting, number, Toy().evaluate(waiting.trials[number].request))
    done = tell(waiting, 9, Toy().evaluate(waiting.trials[9].request))
    known, proposed = searcher._known(waiting)
    assert [trial.number for trial in known] == list(range(9))
    assert len(proposed) == 2
    known, proposed = searcher._known(done)
    assert [trial.number for trial in known] == list(range(10))
    assert len(proposed) == 1


def test_designs_that_are_proposed_add_nothing_a_second_time() -> None:
    known = Scores(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
    rows = np.array([[0.5, 0.5], [0.2, 0.7]])
    alone, other = _gains(known, rows)
    again, still = _gains(known, rows, proposed=rows[:1])
    assert again < 1e-6 < alone
    assert 0 < still < other


def test_designs_beyond_the_limits_do_not_evolve() -> None:
    def legal(card: object) -> bool:
        return len(card.encoder.layers) == 1  # type: ignore[attr-defined]

    space = small()
    searcher = Linas(space, GOALS, legal, initial=6, population=10, generations=4)
    history = run(searcher, Toy(), 8)
    known, _ = searcher._known(history)
    scores = Scores(np.array([[-one.observation.metrics["accuracy"]] for one in known if one.observation]), np.zeros(8))
    evolved = searcher._evolved(known, scores, searcher._predictions(known, scores), derive(0))
    assert all(legal(space.card(design)) for design in evolved)


def test_a_predictor_is_an_option_by_name_with_options_of_its_own() -> None:
    by_name = make_searcher("linas", small(), GOALS, predictor="auto", batch=5)
    assert isinstance(by_name, Linas)
    assert by_name.predictor == CrossValidated()
    given = {"name": "auto", "folds": 3, "candidates": ["ridge", {"name": "svr", "cost": 2.0}]}
    nested = make_searcher("linas", small(), GOALS, predictor=given)
    assert isinstance(nested, Linas)
    assert nested.predictor == CrossValidated((Ridge(), SupportVectors(cost=2.0)), folds=3)
    with pytest.raises(IllegalDesign, match="ridge"):
        make_searcher("linas", small(), GOALS, predictor="rigde")


def test_gains_are_what_a_design_adds_to_the_volume_of_legal_ones() -> None:
    known = Scores(np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2))
    rows = np.array([[0.5, 0.5], [0.9, 0.9], [-1.0, -1.0], [2.0, 2.0]])
    middle, edge, both, outside = _gains(known, rows)
    assert both > middle > edge > 0 > outside
    before = hypervolume(known.values, [1.1, 1.1], ["min", "min"])
    after = hypervolume(np.vstack((known.values, rows[:1])), [1.1, 1.1], ["min", "min"])
    assert middle == pytest.approx(after - before, abs=1e-6)
    broken = Scores(np.array([[0.0, 1.0], [1.0, 0.0], [-9.0, -9.0]]), np.array([0.0, 0.0, 2.0]))
    assert _gains(broken, np.array([[0.2, 0.2]]))[0] > 0


class Both:
    """A smooth score that grows with what a design costs."""

    def __init__(self, space: Space) -> None:
        self.smooth = Smooth(space)

    def evaluate(self, request: Request, context: object) -> Observation:
        found = self.smooth.evaluate(request, context)  # type: ignore[arg-type]
        size = float(np.sum(self.smooth.space.encode(request.design)[::2]))
        return Observation({**found.metrics, "params": size}, Spent(0.0, 0))


@pytest.mark.slow
def test_it_needs_fewer_evaluations_than_nsga2() -> None:
    space = small()

    def volume(searcher: Linas | Nsga2, trials: int, seed: int) -> float:
        history = run(searcher, Both(space), trials, seed)
        rows = [
            [trial.observation.metrics[goal.name] for goal in GOALS] for trial in history.finished if trial.observation
        ]
        return hypervolume(rows, [-5.0, 20.0], ["max", "min"])

    ours = [volume(Linas(space, GOALS, initial=8), 24, seed) for seed in range(3)]
    theirs = [volume(Nsga2(space, GOALS, population=8), 24, seed) for seed in range(3)]
    assert np.mean(ours) > np.mean(theirs)
