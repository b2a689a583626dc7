import sys
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from tests.search.contract import Contract

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.core.records import History, Objective
from formwright.search.baselines import RandomSearch
from formwright.search.optuna_search import CmaEs, GpSampler, OptunaSearch, RandomSampler, Tpe
from formwright.search.proposals import SpaceExhausted
from formwright.space import Choice, Record, Repeat, Space, Switch
from formwright.space.zoo import load_space
from formwright.testing.searcher_contract import ACCURACY, PARAMS
from formwright.testing.toy_problem import Build, Toy, ask, large, run, run_out, small, tell, tiny


@pytest.mark.slow
class TestTpe(Contract):
    kind, trials, options = Tpe, 14, {"startup": 5}


@pytest.mark.slow
@pytest.mark.long
class TestCmaEs(Contract):
    kind, trials, objectives, options = CmaEs, 14, (ACCURACY,), {"startup": 5}


@pytest.mark.slow
@pytest.mark.long
class TestOptunaRandom(Contract):
    kind, trials, options = RandomSampler, 14, {"startup": 5}


@pytest.mark.slow
@pytest.mark.long
class TestGp(Contract):
    kind, trials, objectives, options = GpSampler, 7, (ACCURACY,), {"startup": 5}


def best(history: History) -> float:
    return max(trial.observation.metrics["accuracy"] for trial in history.finished if trial.observation)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CmaEs, pytest.param(Tpe, marks=pytest.mark.long)])
def test_it_beats_random_search(kind: Callable[..., OptunaSearch]) -> None:
    found = [best(run(kind(large(), (ACCURACY,)), Toy(), 40, seed)) for seed in range(3)]
    drawn = [best(run(RandomSearch(large(), (ACCURACY,)), Toy(), 40, seed)) for seed in range(3)]
    assert np.mean(found) > np.mean(drawn) + 0.03


def test_a_broken_limit_is_shown_to_the_sampler() -> None:
    limits = (ACCURACY, Objective.parse("params<=5000"))
    history = run(RandomSearch(small()), Toy(), 12)
    shown = Tpe(small(), limits).study(history, seed=0).trials
    broken = [sum(trial.constraints.values()) for trial in shown]
    sizes = [trial.observation.metrics["params"] for trial in history.finished if trial.observation]
    assert broken == pytest.approx([max(0.0, size / 5000 - 1) for size in sizes])
    assert any(broken)
    assert not all(broken)


def test_pending_trials_are_shown_as_running_and_failed_ones_are_not_shown() -> None:
    searcher = Tpe(small(), (ACCURACY,))
    history = run(RandomSearch(small()), Toy(), 12)
    history = ask(searcher, history, seed=0)
    history = tell(ask(searcher, history, seed=0), 13, "no memory")
    states = [trial.state.name for trial in searcher.study(history, seed=0).trials]
    assert states == ["COMPLETE"] * 12 + ["RUNNING"]


def test_optuna_speaks_as_loudly_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    run(Tpe(tiny(), (ACCURACY, PARAMS), startup=2), Toy(), 5)
    assert optuna.logging.get_verbosity() == before
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_goals_and_spaces_beyond_a_sampler_are_refused() -> None:
    with pytest.raises(IllegalInput, match="cmaes improves one goal, not accuracy, params; take 'nsga2'"):
        CmaEs(small(), (ACCURACY, PARAMS))
    with pytest.raises(IllegalInput, match="cannot search Expressions"):
        Tpe(load_space("autobert-zero-nano"), (ACCURACY,))


def test_without_optuna_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"formwright\[optuna\]"):
        Tpe(small(), (ACCURACY,))


def test_a_space_without_choices_is_used_up_at_once() -> None:
    layer = Record.of(mixer=Switch.of(transform=Record.of()), feed_forward=Choice((32,)))
    single = Space("single", Record.of(layers=Repeat(layer, 1)), Build())
    assert len(run_out(Tpe(single, (ACCURACY,), startup=1), Toy(), 3, SpaceExhausted).trials) == 1
