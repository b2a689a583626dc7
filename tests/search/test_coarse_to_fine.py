from typing import Any, ClassVar

import numpy as np
import pytest
from tests.search.contract import Contract

from formwright.core.errors import IllegalDesign
from formwright.core.records import History, Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search import make_searcher
from formwright.search import searcher as choose
from formwright.search.coarse_to_fine import CoarseToFine, converged, usual_levels
from formwright.space import Choice, Record, Repeat, Space
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY
from formwright.testing.toy_problem import Build, Toy, ask, large, run, small, tell, tiny

GOALS = (Objective.parse("accuracy:max"),)
CARD = small().card(next(small().enumerate()))


def level_of(searcher: CoarseToFine, history: History) -> int:
    """Return the level that the next trial belongs to, from 0."""
    return len(searcher._ends(history))


def trials(*scores: float | None) -> list[Trial]:
    """Make finished trials with these accuracies; None stands for one that failed."""
    return [
        Trial(number, Request(CARD), "failed", reason="diverged")
        if score is None
        else Trial(number, Request(CARD), "finished", Observation({"accuracy": score, "params": 1.0}))
        for number, score in enumerate(scores)
    ]


def test_usual_levels() -> None:
    assert usual_levels(load_space("flexibert-nano-s1star")) == (
        {"layers": 2, "layers.feed_forward": 3},
        {"layers.feed_forward": 3},
        {},
    )
    assert usual_levels(load_space("flexibert-nano-s1")) == ({"layers": 2}, {})
    assert usual_levels(tiny()) == ({"layers": 2}, {})
    plain = Space("plain", Record.of(width=Choice((1, 2))), Build())
    assert usual_levels(plain) == ({},)
    single = Space("single", Record.of(layers=Repeat(Choice((1, 2)), 1)), Build())
    assert usual_levels(single) == ({},)


def test_a_level_has_converged_when_so_many_trials_improved_nothing() -> None:
    assert converged(trials(0.5, 0.6, 0.6, 0.55), GOALS, 2, 1e-4) == 4
    assert converged(trials(0.5, 0.6, 0.6, 0.7, 0.6), GOALS, 2, 1e-4) is None
    assert converged([], GOALS, 1, 1e-4) is None
    assert converged(trials(0.5, 0.50005, 0.50009), GOALS, 2, 1e-4) == 3
    assert converged(trials(0.5, 0.50005, 0.50019), GOALS, 2, 1e-4) is None
    both = (*GOALS, Objective.parse("params:min"))
    assert converged(trials(0.5, 0.6, 0.7), both, 2, 1e-4) is None
    assert converged(trials(0.5, 0.4, 0.4), both, 2, 1e-4) == 3
    limited = (*GOALS, Objective.parse("accuracy<=0.55"))
    assert converged(trials(0.5, 0.6, 0.7), limited, 2, 1e-4) == 3


def test_warming_up_and_failures_do_not_count() -> None:
    assert converged(trials(0.5, 0.4, 0.4, 0.4), GOALS, 2, 1e-4, warmup=2) == 4
    assert converged(trials(0.5, None, None, 0.4, None), GOALS, 2, 1e-4) is None
    # two failed random designs are replaced by two more, so that patience begins with the fifth trial
    assert converged(trials(None, 0.5, None, 0.4, 0.4), GOALS, 2, 1e-4, warmup=2) is None
    assert converged(trials(None, 0.5, None, 0.4, 0.4, 0.4), GOALS, 2, 1e-4, warmup=2) == 6
    pending = [Trial(0, Request(CARD)), *trials(0.5, 0.4, 0.4)]
    assert converged(pending, GOALS, 2, 1e-4, warmup=2) == 4  # what is under way is replaced by nothing


FINE = load_space("flexibert-nano-s1star")
OPERATIONS = ("sa", "lt", "dsc")


class TestCoarseToFine(Contract):
    inner: ClassVar = {"population": 6, "tournament": 2}
    kind = CoarseToFine
    options: ClassVar = {"searcher": choose("regularized-evolution", **inner), "planned": 20, "neighbours": 0}


@pytest.mark.long
class TestCoarseToFineUntilConverged(Contract):
    kind, options = CoarseToFine, {"searcher": choose("random"), "planned": 60, "patience": 3, "parents": 2}


@pytest.mark.slow
@pytest.mark.long
class TestCoarseToFineByPredictions(Contract):
    kind, trials, options = CoarseToFine, 12, {"planned": 12}


def quickly(space: Space, **options: Any) -> CoarseToFine:
    """Search by chance, without a look at neighbours unless wanted."""
    return CoarseToFine(space, (ACCURACY,), **{"searcher": choose("random"), "neighbours": 0, **options})


def layers(trial: Trial) -> Any:
    return trial.request.design["layers"]  # type: ignore[index]


def tied(trial: Trial) -> bool:
    members = layers(trial)
    return all(one == other for one, other in zip(members[::2], members[1::2], strict=True))


def equal_stacks(trial: Trial) -> bool:
    return all(len(set(layer.feed_forward)) == 1 for layer in layers(trial))


def merit(trial: Trial) -> float:
    """Prefer heterogeneous designs a little, and one operation at each depth a lot."""
    members = layers(trial)
    fits = [layer.operation.tag == OPERATIONS[depth % 3] for depth, layer in enumerate(members)]
    stacks = [len(set(layer.feed_forward)) > 1 for layer in members]
    return float(np.mean(fits) + 0.2 * np.mean(stacks) + 0.1 * (len(members) == 4))


def searched(searcher: CoarseToFine, trials: int, seed: int = 0) -> History:
    """Search the fine space for merit."""
    history = History()
    for number in range(trials):
        history = ask(searcher, history, seed)
        history = tell(history, number, Observation({"accuracy": merit(history.trials[number])}))
    return history


def test_levels_become_finer_after_their_shares() -> None:
    history = searched(quickly(FINE, planned=30), 30)
    assert all(tied(trial) and equal_stacks(trial) for trial in history.trials[:10])
    assert all(equal_stacks(trial) for trial in history.trials[10:20])
    assert not all(tied(trial) for trial in history.trials[10:20])
    assert not all(equal_stacks(trial) for trial in history.trials[20:])
    assert all(FINE.contains(trial.request.design) for trial in history.trials)


def test_shares_need_not_be_equal() -> None:
    searcher = quickly(FINE, planned=20, shares=[2, 1, 1])
    history = searched(searcher, 20)
    ends = [level_of(searcher, History(history.trials[:count])) for count in (0, 9, 10, 14, 15, 20)]
    assert ends == [0, 0, 1, 1, 2, 2]


def test_children_are_made_of_what_the_best_parents_have_at_the_same_depth() -> None:
    searcher = quickly(FINE, planned=30, parents=2)
    history = searched(searcher, 20)
    coarse = sorted(history.trials[:10], key=merit, reverse=True)
    parents = [layers(trial) for trial in coarse if merit(trial) >= merit(coarse[1])]
    for trial in history.trials[10:]:
        assert len(layers(trial)) in {len(parent) for parent in parents}
        for depth, layer in enumerate(layers(trial)):
            above = [parent[depth] for parent in parents if depth < len(parent)]
            for gene in ("heads", "hidden"):
                assert layer[gene] in {other[gene] for other in above}
            assert layer.operation in {other.operation for other in above}
            assert set(layer.feed_forward) <= {width for other in above for width in other.feed_forward}


def test_neighbours_widen_the_choices() -> None:
    space, trials = small(), run(quickly(small(), planned=40), Toy(), 20)
    alone, together = (quickly(space, planned=40, parents=1, neighbours=number) for number in (0, 3))
    coarse = alone._narrowed(0, [])
    sizes = [searcher._finer(1, coarse, trials.trials).count() for searcher in (alone, together)]
    assert 1 == sizes[0] < sizes[1] < space.count()


def test_neighbours_are_within_the_limits() -> None:
    def deep(card: Any) -> bool:
        return len(card.encoder.layers) == 2

    searcher = CoarseToFine(small(), (ACCURACY,), deep, searcher=choose("random"), planned=4)
    coarse = searcher._narrowed(0, [])
    design = next(design for design in coarse.enumerate() if len(design["layers"]) == 2)
    (near,) = searcher._near(design, coarse)  # the nearest of all has the first of the two layers alone
    assert len(near["layers"]) == 2


def test_a_level_ends_when_nothing_gets_better() -> None:
    searcher, history = quickly(FINE, planned=60, patience=5), History()
    for number in range(25):
        history = tell(ask(searcher, history, seed=0), number, Observation({"accuracy": 0.5}))
    reached = [level_of(searcher, History(history.trials[:count])) for count in range(26)]
    # twelve random designs and five without a gain; then a first one of the next level, and five without a gain
    assert reached == [0] * 17 + [1] * 6 + [2] * 3


@pytest.mark.long
@pytest.mark.slow
def test_patience_begins_after_the_random_designs_that_were_asked_for() -> None:
    searcher = quickly(FINE, planned=60, patience=5, searcher=choose("boshnas", initial=4))
    history = History()
    for number in range(10):
        history = tell(ask(searcher, history, seed=0), number, Observation({"accuracy": 0.5}))
    assert [level_of(searcher, History(history.trials[:count])) for count in (8, 9)] == [0, 1]


def test_used_up_or_failed_designs_leave_others() -> None:
    space = small()
    history = run(quickly(space, planned=4, parents=1), Toy(), 60)
    assert len(history.digests) == 60
    searcher, history = quickly(FINE, planned=6), History()
    for number in range(6):
        history = tell(ask(searcher, history, seed=0), number, "out of memory")
    assert len(history.digests) == 6


def test_levels_may_be_given() -> None:
    searcher = quickly(large(), levels=[{"layers": 4}, {"layers": 2}, {}], planned=9)
    history = run(searcher, Toy(), 6)
    assert all(len(set(layers(trial)[:4])) == 1 for trial in history.trials[:3])
    assert all(tied(trial) for trial in history.trials)


def test_it_is_made_by_its_name_for_the_planned_trials() -> None:
    searcher = make_searcher("coarse-to-fine", small(), (ACCURACY,), trials=40, searcher="random")
    assert isinstance(searcher, CoarseToFine)
    assert searcher.planned == 40
    assert make_searcher("coarse-to-fine", small(), (ACCURACY,)).planned == 100  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"levels": [{"layer": 2}, {"blocks": 3}, {"layers": 2}]}, ["'layer'; nearest: 'layers'", "'blocks'"]),
        ({"levels": []}, ["levels: is"]),
        ({"levels": "layers"}, ["levels: must be a list"]),
        ({"levels": [{"layers": 0}]}, ["levels: is"]),
        ({"levels": [{"layers": "two"}, {"layers": True}]}, ["levels[0].layers: must be", "levels[1].layers: must be"]),
        ({"levels": [{}, {}], "shares": [1.0]}, ["shares: is"]),
        ({"levels": [{}, {}], "shares": [1.0, 0.0]}, ["shares: is"]),
        ({"parents": 0, "patience": 0}, ["parents: ", "patience: "]),
        ({"tolerance": "little"}, ["tolerance: "]),
        ({"tolerance": float("nan")}, ["tolerance: "]),
        ({"tolerance": -1}, ["tolerance: "]),
        ({"searcher": 5}, ["searcher: must be a name"]),
        ({"searcher": "halving"}, ["searcher: is halving"]),
        ({"searcher": "coarse-to-fine"}, ["searcher: is coarse-to-fine itself"]),
        ({"searcher": "regevo"}, ["Nearest: 'regularized-evolution'"]),
        ({"searcher": {"name": "boshnas", "colour": "red"}}, ["searcher.colour: "]),
        ({"searcher": {"name": "boshnas", "k1": -1}}, ["searcher.k1: "]),
    ],
)
def test_faults_are_told_when_it_is_made(options: dict[str, Any], told: list[str]) -> None:
    with pytest.raises(IllegalDesign) as caught:
        make_searcher("coarse-to-fine", small(), (ACCURACY,), **options)
    assert all(fact in str(caught.value) for fact in told)
    assert len(caught.value.faults) == len(told)


def test_the_whole_space_is_searched_where_nothing_can_be_tied() -> None:
    searcher = quickly(FINE, levels=[{}], planned=10)
    assert FINE.contains(searcher.ask(History(), derive(0)).design)
    assert level_of(searcher, History()) == 0


@pytest.mark.parametrize("name", ["reinforce", "tpe"])
def test_searchers_that_see_a_list_of_choices_search_every_level(name: str) -> None:
    searcher = CoarseToFine(FINE, (ACCURACY,), searcher=choose(name), planned=12, neighbours=0)
    history = run(searcher, Toy(), 12)
    assert len({trial.request.card.digest for trial in history.trials}) == 12
    lengths = {len(set(trial.request.design["layers"])) for trial in history.trials}
    assert max(lengths) > 2  # of four free layers: a level whose layers are not tied in pairs
