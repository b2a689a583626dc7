from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.evaluate.test_bi_branch import evaluator
from tests.recipes.test_recipes import TEXT, studied
from tests.study.cases import Crash, a_dead_name, begin, kinds, new_log, outline, run, toy_study
from tests.study.test_worker import Sometimes
from tests.supernet.branched import SPACE, same

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.evaluate.bi_branch import BRANCHES, VERSION, BiBranch
from formwright.evaluate.context import Combine, Context
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.autobert_zero import autobert_zero
from formwright.search.op_nas import OpNas
from formwright.study import worker as worker_module
from formwright.study.replay import history_as_of, read_asked
from formwright.study.store import Log
from formwright.study.study import StudySetup
from formwright.study.worker import TrialInterrupted, Worker
from formwright.supernet.branches import Branches, folded

TRIALS = 6


def test_it_is_made_of_the_parts_of_the_paper(tmp_path: Path) -> None:
    made = studied(autobert_zero(TEXT), tmp_path)
    assert made.space.name == "autobert-zero-nano"
    searcher: Any = made.searcher
    assert isinstance(searcher, OpNas)
    assert (searcher.population, searcher.parents, searcher.children, searcher.alpha) == (20, 5, 2, 0.01)
    assert isinstance(made.evaluator, Combine)
    (scores,) = made.evaluator.evaluators
    assert isinstance(scores, BiBranch)
    assert not scores.from_scratch
    assert scores.pretraining.training.recipe.steps == 100


def test_with_many_trials_the_search_is_that_of_the_paper(tmp_path: Path) -> None:
    many: Any = studied(autobert_zero(TEXT, trials=760), tmp_path).searcher
    assert (many.population, many.parents, many.children, many.alpha) == (100, 5, 5, 0.01)


def test_a_task_without_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="digits"):
        studied(autobert_zero(TaskChoice("digits")), tmp_path)


def tiny() -> BiBranch:
    """Give the evaluator of a tiny space and task."""
    return evaluator(branches=Branches.of(SPACE.card(SPACE.sample(derive(0))), 9))


def tiny_study(log: Log, folder: Path, trials: int = TRIALS) -> StudySetup:
    return toy_study(log, folder, "op-nas", stop=trials, space=SPACE, objectives=("accuracy:max",), evaluator=tiny())


def artifacts(made: StudySetup, name: str) -> list[str]:
    """List what all trials have of that name."""
    return [trial.observation.artifacts[name] for trial in made.history().trials if trial.observation]


def files(made: StudySetup) -> list[str]:
    """List what was left; files are named by their content."""
    return artifacts(made, BRANCHES)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> StudySetup:
    """Give a study that one worker did in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    made = tiny_study(new_log(folder), folder)
    run(made)
    return made


@pytest.mark.slow
def test_every_trial_starts_from_all_before_it(undisturbed: StudySetup) -> None:
    assert artifacts(undisturbed, VERSION) == [str(number) for number in range(TRIALS)]


@pytest.mark.slow
@pytest.mark.parametrize("error", [TrialInterrupted, Crash])
def test_a_study_that_was_killed_and_resumed_repeats_the_one_that_was_not(
    error: type[BaseException], undisturbed: StudySetup, tmp_path: Path
) -> None:
    log, sometimes = new_log(tmp_path), Sometimes(error, seed=1, share=0.05)
    while True:
        made = tiny_study(log, tmp_path)  # nothing is kept from one worker to the next but log and files
        try:
            run(made, name=a_dead_name(), between_steps=sometimes)
            break
        except (TrialInterrupted, Crash):
            continue
    assert sometimes.times > 1
    assert outline(made) == outline(undisturbed)
    assert files(made) == files(undisturbed)


@pytest.mark.slow
def test_workers_side_by_side_leave_what_the_log_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_WAIT", 0.01)
    log = new_log(tmp_path)
    begin(log)
    workers = [Worker(tiny_study(log, tmp_path), name=f"another-machine/{number}/1") for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Worker.run, workers))
    made, events = tiny_study(log, tmp_path), log.read()
    assert len({event.worker for event in kinds(log, "told")}) == 2
    assert artifacts(made, VERSION) != [str(number) for number in range(TRIALS)]  # some were under way together
    for event, left in zip(kinds(log, "asked"), files(made), strict=True):
        before = history_as_of(events, event.data["seen"], SPACE)
        again = tiny().evaluate(read_asked(event.data, SPACE).request, Context(made.seed, tmp_path, before))
        assert again.artifacts[BRANCHES] == left
    expected = tiny().store(Context(made.seed, tmp_path))
    for name in files(made):
        expected = folded(expected, [load_file(tmp_path / name)])
    assert same(tiny().store(Context(made.seed, tmp_path, made.history())), expected)
