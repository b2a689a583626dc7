from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.study.cases import new_log, own_rows, run, toy_study

from formwright.core.records import Budget, Observation, Request
from formwright.core.rng import derive
from formwright.cost import params
from formwright.evaluate.final import openings
from formwright.nn.hf.save import load_folder
from formwright.nn.task_model import TaskModel
from formwright.search.scores import score
from formwright.space.zoo import load_space
from formwright.study.assemble import assemble
from formwright.study.config import TrainingChoice
from formwright.study.finish import (
    Candidate,
    Undelivered,
    candidates,
    card_of_model,
    deliver,
    deliver_all,
    delivered,
    undelivered,
)
from formwright.study.launch import work_at
from formwright.study.place import Opened, create, find
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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path)).open() as found:
        yield found


def candidate() -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("trial-7", "best", space.card(space.sample(derive(4))), 7)


@pytest.mark.slow
def test_a_delivered_model_loads_and_is_noted_and_tested_once(opened: Opened, tmp_path: Path) -> None:
    steps: list[int] = []
    found = deliver(opened, candidate(), lambda step, _: steps.append(step))
    assert len(steps) == opened.config.final_steps == found.steps
    assert (found.name, found.role, found.trial, found.digest) == ("trial-7", "best", 7, candidate().card.digest)
    assert found.path == str(tmp_path / "mine" / "models" / "trial-7")
    assert card_of_model(found) == candidate().card
    model = load_folder(found.path)
    assert isinstance(model, TaskModel)
    assert model.transformer.card == candidate().card
    check_scores(found.validation)
    check_scores(found.test)
    readme = (Path(found.path) / "README.md").read_text(encoding="utf-8")
    assert "test accuracy" in readme
    assert "flexibert-nano" in readme
    assert str(tmp_path) not in readme
    assert delivered(opened) == {"trial-7": found}
    opened_before = openings(tmp_path / "mine" / "final" / "trial-7")
    assert len(opened_before) == 1

    def fail(_: int, __: float) -> None:
        pytest.fail("trained again")

    assert deliver(opened, candidate(), fail) == found
    moved = (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(moved)).open() as again:
        kept = deliver(again, candidate(), fail)
        assert kept.path == str(moved / "models" / "trial-7")
        assert card_of_model(kept) == candidate().card
    assert openings(moved / "final" / "trial-7") == opened_before


def check_scores(scores: Mapping[str, float] | None) -> None:
    assert scores is not None
    assert 0.0 <= scores["accuracy"] <= 1.0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_several_models_are_delivered_side_by_side(opened: Opened, tmp_path: Path) -> None:
    assert deliver_all(opened, [], 2) == []
    assert work_at(opened.place) == 0
    study = assemble(opened.config, opened.log, opened.place.folder)
    wanted = candidates(study, 1)
    models = deliver_all(opened, wanted, 2)
    assert [model.name for model in models] == [each.name for each in wanted]
    assert [model.role for model in models] == ["best", "baseline"]
    assert models[1].params >= models[0].params
    assert {name: model.path for name, model in delivered(opened).items()} == {
        model.name: str(tmp_path / "mine" / "models" / model.name) for model in models
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_one_that_cannot_be_trained_is_replaced_by_the_next_best(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = own_rows(tmp_path, training=TrainingChoice(steps=5, batch=8, length=16, learning_rate=1e30))
    with create(tmp_path / "mine", config).open() as opened:  # whatever is trained with such a rate fails
        assert work_at(opened.place) == 0
        study = assemble(opened.config, opened.log, opened.place.folder)
        ranked = [candidate.name for candidate in candidates(study, 9, baseline=False)]
        assert len(ranked) == 4
        assert deliver_all(opened, candidates(study, 1), 2) == []
        failed = undelivered(opened.log)
        assert sorted(each.name for each in failed.values()) == sorted([*ranked, "baseline"])
        assert {each.role for each in failed.values()} == {"best", "baseline"}
        said = capfd.readouterr().err
        for each in failed.values():
            assert "lower the learning rate" in each.reason
            assert f"{each.name} cannot be delivered: {each.reason}\n" in said
        assert candidates(study, 1) == []  # and none is tried again
        assert delivered(opened) == {}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_where_one_fails_the_others_are_delivered(opened: Opened) -> None:
    assert work_at(opened.place) == 0
    study = assemble(opened.config, opened.log, opened.place.folder)
    first, second, third = candidates(study, 3, baseline=False)
    note = Undelivered(first.name, first.role, first.card.digest, "no luck", first.trial)
    opened.log.append("note", "me", {"undelivered": asdict(note)})
    models = deliver_all(opened, [Candidate("baseline", "baseline", third.card), first], 1)
    assert [model.name for model in models] == [second.name, "baseline"]
    assert [candidate.name for candidate in candidates(study, 2, baseline=False)] == [second.name, third.name]
