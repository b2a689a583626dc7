import pytest

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.scores import goals_of, score, violation
from formwright.testing.spaces import tiny


def trial(**metrics: float) -> Trial:
    space = tiny()
    return Trial(7, Request(space.card(space.sample(derive(0)))), "finished", Observation(metrics))


def objectives(*texts: str) -> tuple[Objective, ...]:
    return tuple(map(Objective.parse, texts))


def test_smaller_is_better_in_every_column() -> None:
    scores = score(
        [trial(accuracy=0.5, params=3), trial(accuracy=0.7, params=4)], objectives("accuracy:max", "params:min")
    )
    assert scores.values.tolist() == [[-0.5, 3.0], [-0.7, 4.0]]
    assert scores.violations.tolist() == [0.0, 0.0]


def test_violations_of_all_limits_add_up() -> None:
    given = objectives("accuracy:max", "params<=10", "accuracy>=0.8", "bias<=0")
    scores = score([trial(accuracy=0.4, params=15, bias=0.25), trial(accuracy=0.9, params=10, bias=-1)], given)
    assert scores.violations.tolist() == pytest.approx([0.5 + 0.5 + 0.25, 0.0])


def test_a_limit_nobody_measured_was_checked_before() -> None:
    assert score([trial(accuracy=0.4)], objectives("accuracy:max", "params<=10")).violations.tolist() == [0.0]


def test_a_missing_goal_is_told() -> None:
    with pytest.raises(IllegalInput, match="trial 7 has no metric 'f1'; it has: accuracy, loss"):
        score([trial(loss=1.0, accuracy=0.4)], objectives("f1:max"))


def test_no_trials_have_no_rows() -> None:
    scores = score([], objectives("accuracy:max", "params:min"))
    assert scores.values.shape == (0, 2)
    assert scores.violations.shape == (0,)


def test_goals_are_what_has_no_bound() -> None:
    given = objectives("accuracy:max", "params<=10")
    assert goals_of(given) == given[:1]
    with pytest.raises(IllegalInput, match="nothing to improve; add an objective"):
        goals_of(())


def test_a_goal_is_never_violated() -> None:
    assert violation(Objective.parse("accuracy:max"), -5.0) == 0.0
    assert violation(Objective.parse("error<=-2"), 1.0) == 1.5
