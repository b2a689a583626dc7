import pytest

from formwright.core.records import History, Observation
from formwright.search.baselines import RandomSearch
from formwright.search.proposals import SpaceExhausted
from formwright.testing.loop import ask, outline, run, run_out, tell
from formwright.testing.objective import Toy
from formwright.testing.spaces import small, tiny


def test_a_run_can_be_taken_up_anywhere() -> None:
    whole = run(RandomSearch(small()), Toy(), 10, seed=3)
    begun = History(whole.trials[:6])
    assert ask(RandomSearch(small()), begun, seed=3).trials[6].request == whole.trials[6].request


def test_trials_end_finished_or_failed() -> None:
    history = ask(RandomSearch(small()), ask(RandomSearch(small()), History(), 0), 0)
    history = tell(tell(history, 1, Observation({"accuracy": 1.0})), 0, "no memory")
    assert [trial.state for trial in history.trials] == ["failed", "finished"]
    assert history.trials[0].reason == "no memory"
    assert all(request.design is None for request in outline(history))


def test_running_out_needs_the_promised_end() -> None:
    assert len(run_out(RandomSearch(tiny()), Toy(), 20, SpaceExhausted).trials) == 12
    with pytest.raises(AssertionError, match="went on after 5 requests; SpaceExhausted was due"):
        run_out(RandomSearch(tiny()), Toy(), 5, SpaceExhausted)
