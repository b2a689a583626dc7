import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.mutation import Mutation
from pymoo.core.problem import ElementwiseProblem
from pymoo.operators.crossover.ux import UniformCrossover
from pymoo.operators.sampling.rnd import IntegerRandomSampling
from pymoo.optimize import minimize
from tests.search.contract import Contract

from formwright.core.errors import IllegalInput
from formwright.core.protocols import Searcher
from formwright.core.records import History, Objective, Request
from formwright.core.rng import derive
from formwright.search.baselines import RandomSearch
from formwright.search.evolution import Nsga2, RegularizedEvolution
from formwright.search.op_nas import OpNas
from formwright.search.proposals import anything
from formwright.search.scores import front, hypervolume
from formwright.space import Space
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Toy, ask, large, layered, run, small, tell


class TestRegularizedEvolution(Contract):
    kind, options = RegularizedEvolution, {"population": 8, "tournament": 3}


def best(history: History) -> float:
    return max(trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation)


@pytest.mark.slow
def test_it_beats_random_search() -> None:
    goal = (ACCURACY,)
    evolved = [best(run(RegularizedEvolution(large(), goal, anything, 20, 5), Toy(), 150, seed)) for seed in range(4)]
    drawn = [best(run(RandomSearch(large(), goal), Toy(), 150, seed)) for seed in range(4)]
    assert min(evolved) > max(drawn) + 0.05


def test_a_child_is_one_gene_from_its_parent() -> None:
    space = large()
    for trial in run(RegularizedEvolution(space, (ACCURACY,), anything, 5, 2), Toy(), 30).trials[5:]:
        parent = trial.request.parent
        assert parent is not None
        assert trial.number - 5 <= parent < trial.number  # the older ones are dead


def test_the_whole_population_in_the_tournament_makes_the_best_win() -> None:
    # a tournament of hundreds drawn from five leaves nobody out
    searcher = RegularizedEvolution(small(), (ACCURACY,), anything, population=5, tournament=500)
    history = run(searcher, Toy(), 5)
    accuracies = [trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation]
    assert searcher.ask(history, derive(1)).parent == int(np.argmax(accuracies))


def test_several_goals_leave_only_the_first_front_as_parents() -> None:
    searcher = RegularizedEvolution(small(), (ACCURACY, PARAMS), anything, population=12, tournament=500)
    history = run(searcher, Toy(), 12)
    points = [trial.observation.metrics for trial in history.finished if trial.observation]
    parent = searcher.ask(history, derive(1)).parent
    assert parent is not None
    mine = points[parent]
    assert not any(
        other["accuracy"] >= mine["accuracy"] and other["params"] <= mine["params"] and other != mine
        for other in points
    )


@pytest.mark.parametrize(
    "searcher",
    [RegularizedEvolution(small(), (ACCURACY,), anything, 4, 2), OpNas(small(), (ACCURACY, PARAMS), anything, 4, 2, 1)],
)
def test_failed_trials_are_replaced_before_evolution_starts(searcher: Searcher) -> None:
    history = History()
    for number in range(6):
        history = ask(searcher, history, seed=0)
        assert history.trials[number].request.parent is None
        outcome = "no memory" if number < 2 else Toy().evaluate(history.trials[number].request)
        history = tell(history, number, outcome)
    assert ask(searcher, history, seed=0).trials[6].request.parent in range(2, 6)


def test_there_must_be_a_goal() -> None:
    with pytest.raises(IllegalInput, match=r"nothing to improve, only limits: params<=5\.0"):
        RegularizedEvolution(small(), (Objective.parse("params<=5"),))


GOALS = (ACCURACY, PARAMS)


class TestNsga2(Contract):
    kind, options = Nsga2, {"population": 8}


def volume(history: History) -> float:
    points = [trial.observation.metrics for trial in history.finished if trial.observation]
    return hypervolume([[point["accuracy"], point["params"] / 45_000] for point in points], [0, 1], ["max", "min"])


@pytest.mark.slow
def test_nsga2_beats_random_search() -> None:
    evolved = [volume(run(Nsga2(large(), GOALS, anything, 15), Toy(), 150, seed)) for seed in range(4)]
    drawn = [volume(run(RandomSearch(large(), GOALS, by="gene"), Toy(), 150, seed)) for seed in range(4)]
    assert min(evolved) > max(drawn)
    assert np.mean(evolved) > 1.2 * np.mean(drawn)


def test_it_finds_nearly_the_whole_front_of_a_small_space() -> None:
    everything = run(RandomSearch(small(), GOALS), Toy(), 342)
    found = run(Nsga2(small(), GOALS, anything, 12), Toy(), 120)
    assert volume(found) > 0.98 * volume(everything)


def test_parents_come_from_the_best_only() -> None:
    searcher = Nsga2(small(), GOALS, anything, population=6)
    history = run(searcher, Toy(), 60)
    best = {trial.number for trial in front(history, GOALS)}
    assert len(best) > 6  # so that the whole population is of the first front
    parents = {searcher.ask(history, derive(seed)).parent for seed in range(60)}
    assert parents <= best
    assert len(parents) > 3


def test_without_crossover_a_child_is_a_mutant() -> None:
    space = small()
    history = run(Nsga2(space, GOALS, anything, population=5, crossover=0.0), Toy(), 12)
    for trial in history.trials[5:]:
        assert trial.request.parent is not None
        parent = history.trials[trial.request.parent].request.design
        same_depth = len(parent["layers"]) == len(trial.request.design["layers"])  # type: ignore[index]
        genes = [{gene.path: gene.value for gene in space.genes(design)} for design in (parent, trial.request.design)]
        changed = [path for path in genes[0].keys() & genes[1].keys() if genes[0][path] != genes[1][path]]
        assert len(changed) == 1 or not same_depth


MIXERS = (
    {"attention": "sdp"}, {"attention": "wma"}, {"transform": {}}, {"convolution": 3}, {"convolution": 5},
    {"convolution": 9},
)  # fmt: skip


class Chain(ElementwiseProblem):  # type: ignore[misc]
    """The toy problem over twelve layers, as pymoo sees it."""

    def __init__(self, space: Space) -> None:
        self.space = space
        super().__init__(n_var=24, n_obj=2, xl=0, xu=np.array([5, 2] * 12), vtype=int)

    def _evaluate(self, x: np.ndarray, out: dict[str, object], *args: object, **kwargs: object) -> None:
        pairs = x.astype(int).reshape(12, 2)
        layers = [{"mixer": MIXERS[mixer], "feed_forward": (16, 32, 64)[width]} for mixer, width in pairs]
        metrics = Toy().evaluate(Request(self.space.card(self.space.from_json({"layers": layers})))).metrics
        out["F"] = [-metrics["accuracy"], metrics["params"] / 45_000]


class Redraw(Mutation):  # type: ignore[misc]
    """Draw one gene in 24 anew."""

    def _do(
        self, problem: Chain, rows: np.ndarray, *args: object, random_state: np.random.Generator, **kwargs: object
    ) -> np.ndarray:
        drawn = random_state.integers(problem.xl.astype(int), problem.xu.astype(int) + 1, size=rows.shape)
        return np.where(random_state.random(rows.shape) < 1 / 24, drawn, rows)


def volume_by_pymoo(space: Space, seed: int) -> float:
    algorithm = NSGA2(20, sampling=IntegerRandomSampling(), crossover=UniformCrossover(prob=0.9), mutation=Redraw())
    found = minimize(Chain(space), algorithm, ("n_eval", 300), seed=seed)
    return hypervolume(found.F, [0, 1], ["min", "min"])


@pytest.mark.slow
@pytest.mark.long
def test_it_is_level_with_pymoo() -> None:
    space = layered("chain", (12,), (16, 32, 64), (3, 5, 9))
    ours = [volume(run(Nsga2(space, GOALS, anything, 20), Toy(), 300, seed)) for seed in range(4)]
    theirs = [volume_by_pymoo(space, seed) for seed in range(4)]
    assert np.mean(ours) > 0.97 * np.mean(theirs)
