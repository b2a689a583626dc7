from pathlib import Path

from tests.study.cases import new_log, run, toy_study

from formwright.core.records import Budget, Observation, Request
from formwright.cost import params
from formwright.search.scores import score
from formwright.study.candidates import candidates
from formwright.study.replay import asked_data
from formwright.study.study import Study
from formwright.testing.spaces import small

SPACE = small()
DESIGNS = list(SPACE.enumerate())


def told(folder: Path, *trials: tuple[dict[str, float], int | None], objectives: tuple[str, ...]) -> Study:
    """Give a study with these scores, found at these budgets."""
    folder.mkdir(exist_ok=True)
    log = new_log(folder)
    for number, (metrics, steps) in enumerate(trials):
        request = Request(SPACE.card(DESIGNS[number]), Budget(steps), None, DESIGNS[number])
        log.ask(number, "me", 60, asked_data(request, SPACE, 0))
        log.finish(number, "me", "told", {"observation": Observation(metrics).to_json()})
    return toy_study(log, folder, objectives=objectives)


def scored(*accuracies: float) -> list[tuple[dict[str, float], None]]:
    return [({"accuracy": value}, None) for value in accuracies]


def chosen(study: Study, keep: int = 1) -> list[int | None]:
    return [candidate.trial for candidate in candidates(study, keep, baseline=False)]


def test_with_one_goal_the_best_are_kept(tmp_path: Path) -> None:
    study = told(tmp_path, *scored(0.3, 0.9, 0.1, 0.5), objectives=("accuracy:max",))
    assert chosen(study) == [1]
    assert chosen(study, 3) == [1, 3, 0]
    assert chosen(study, 9) == [1, 3, 0, 2]
    best = candidates(study, 1)[0]
    assert (best.name, best.role, best.card) == ("trial-1", "best", SPACE.card(DESIGNS[1]))


def test_a_goal_may_be_to_lower(tmp_path: Path) -> None:
    assert chosen(told(tmp_path, *scored(0.3, 0.9, 0.1), objectives=("accuracy:min",)), 2) == [2, 0]


def test_limits_are_kept(tmp_path: Path) -> None:
    trials = [({"accuracy": accuracy, "params": 10.0 * accuracy}, None) for accuracy in (0.3, 0.9, 0.5)]
    study = told(tmp_path, *trials, objectives=("accuracy:max", "params<=5"))
    assert chosen(study, 3) == [2, 0]


def test_where_nothing_keeps_the_limits_there_is_nothing_to_deliver(tmp_path: Path) -> None:
    assert candidates(told(tmp_path, *scored(0.3), objectives=("accuracy:max", "accuracy>=0.5")), 3) == []


def test_an_unfinished_study_has_nothing_to_deliver(tmp_path: Path) -> None:
    assert candidates(toy_study(new_log(tmp_path), tmp_path), 3) == []


def test_with_several_goals_the_front_is_kept(tmp_path: Path) -> None:
    pairs = [(0.9, 90.0), (0.5, 50.0), (0.4, 60.0), (0.1, 10.0), (0.48, 49.0)]
    trials = [({"accuracy": accuracy, "params": size}, None) for accuracy, size in pairs]
    study = told(tmp_path, *trials, objectives=("accuracy:max", "params:min"))
    assert set(chosen(study, 9)) == {0, 1, 3, 4}
    assert chosen(study, 2) == [0, 3]  # the ends of the front are the least crowded
    assert chosen(told(tmp_path / "x", *trials[::-1], objectives=("accuracy:max", "params:min"))) == [4]
    assert {candidate.role for candidate in candidates(study, 9, baseline=False)} == {"front"}


def test_of_halving_the_longest_trained_are_kept(tmp_path: Path) -> None:
    trials = [({"accuracy": 0.9}, 1), ({"accuracy": 0.5}, 9), ({"accuracy": 0.8}, 3), ({"accuracy": 0.6}, 9)]
    assert chosen(told(tmp_path, *trials, objectives=("accuracy:max",)), 9) == [3, 1]


def test_whatever_halving_finds_can_be_delivered(tmp_path: Path) -> None:
    study = toy_study(new_log(tmp_path), tmp_path, "halving", stop=40, objectives=("accuracy:max",))
    run(study)
    (best,) = chosen(study)
    trials = study.history().trials
    longest = max(trial.request.budget.steps or 0 for trial in trials)
    rivals = [trial for trial in trials if trial.request.budget.steps == longest]
    values = score(rivals, study.objectives).values[:, 0]
    assert best == rivals[int(values.argmin())].number


def test_a_plain_design_of_no_smaller_size_stands_beside_the_best(tmp_path: Path) -> None:
    study = told(tmp_path, *scored(0.3, 0.9), objectives=("accuracy:max",))
    best, baseline = candidates(study, 1)
    assert (baseline.name, baseline.role, baseline.trial) == ("baseline", "baseline", None)
    assert params(baseline.card) >= params(best.card)
