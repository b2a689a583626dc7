"""Facts follow from the log alone, whether the study is new, running or over."""

from pathlib import Path

import pytest
from tests.report.compressed import compressed_facts
from tests.report.studies import SPACE, WORKER, ask, deliver, design_of, fail, new_log, small_study, tell

from formwright.cost import params
from formwright.report.facts import study_facts


def test_the_facts_of_a_running_study(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    assert (facts.name, facts.run.command) == ("tried", "formwright search --seed 0")
    assert [row.state for row in facts.trials] == ["finished"] * 4 + ["failed", "pending"]
    assert [str(goal) for goal in facts.goals] == ["accuracy:max", "params:min"]
    ledger = facts.ledger
    assert (ledger.finished, ledger.failed, ledger.pending) == (4, 1, 1)
    assert (ledger.spent.seconds, ledger.spent.steps, ledger.spent.macs) == (10.0, 1200, 4 * 10**9)
    assert facts.over == ""
    assert [model.role for model in facts.models] == ["front", "earlier", "baseline"]
    assert (facts.baseline, facts.found) == (facts.models[2], facts.models[0])


def test_the_front_and_the_best_of_it(tmp_path: Path) -> None:
    facts = study_facts(small_study(tmp_path), SPACE)
    sizes = [params(SPACE.card(design_of(number))) for number in range(4)]
    scores = [0.61, 0.74, 0.69, 0.74]
    beaten = [
        any(
            scores[other] >= scores[one]
            and sizes[other] <= sizes[one]
            and (scores[other], sizes[other]) != (scores[one], sizes[one])
            for other in range(4)
        )
        for one in range(4)
    ]
    assert facts.front == tuple(number for number in range(4) if not beaten[number])
    assert facts.best == min((1, 3), key=lambda number: sizes[number])


def test_limits_keep_trials_off_the_front(tmp_path: Path) -> None:
    log = small_study(tmp_path, objectives=["accuracy:max"], limits=["accuracy<=0.7"])
    facts = study_facts(log, SPACE)
    assert facts.front == (2,)
    assert facts.best_row is facts.trials[2]
    assert facts.progress.by_number[-1] == (2, 0.69)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    log = small_study(tmp_path)
    assert study_facts(log, SPACE) == study_facts(log, SPACE)


def test_a_study_without_any_event(tmp_path: Path) -> None:
    facts = study_facts(new_log(tmp_path), SPACE)
    assert (facts.trials, facts.best, facts.best_row, facts.front, facts.run.as_of) == ((), None, None, (), None)
    assert (facts.baseline, facts.found) == (None, None)
    assert facts.ledger.elapsed == 0.0


def test_a_study_that_only_fails(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    ask(log, 0)
    fail(log, 0, "out of memory")
    assert study_facts(log, SPACE).best is None


def test_a_study_ends_and_may_be_taken_up_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append("started", WORKER, {"begins": True})
    ask(log, 0)
    tell(log, 0, accuracy=0.5)
    log.append("stopped", WORKER, {"reason": "1 trials"})
    assert study_facts(log, SPACE).over == "1 trials"
    log.append("note", WORKER, {"command": "x"})
    assert study_facts(log, SPACE).over == "1 trials"
    log.append("started", WORKER, {"begins": True})
    assert study_facts(log, SPACE).over == ""


@pytest.mark.parametrize("training", [{}, {"length": 0}, {"length": "long"}, None])
def test_operations_are_counted_at_some_length_in_any_case(tmp_path: Path, training: object) -> None:
    long = study_facts(small_study(tmp_path, training=training), SPACE)
    (tmp_path / "other").mkdir()
    short = study_facts(small_study(tmp_path / "other"), SPACE)
    assert long.trials[0].costs["macs"] > short.trials[0].costs["macs"]


def test_a_better_design_supersedes_a_delivered_model(tmp_path: Path) -> None:
    log = new_log(tmp_path, objectives=["accuracy:max"], keep=2)
    for number, accuracy in enumerate((0.5, 0.6, 0.7)):
        ask(log, number)
        tell(log, number, accuracy=accuracy)
    deliver(log, "trial-1", "best", 1, 0.65)
    deliver(log, "trial-2", "best", 2, 0.75)
    before = study_facts(log, SPACE)
    assert [model.role for model in before.models] == ["best", "best"]
    assert before.found is not None
    assert before.found.name == "trial-2"
    ask(log, 3)
    tell(log, 3, accuracy=0.8)
    after = study_facts(log, SPACE)
    assert [(model.name, model.role) for model in after.models] == [("trial-2", "best"), ("trial-1", "earlier")]
    assert after.found is None, "the best design now has not been delivered"


def test_a_study_that_goes_on_shows_where_to_and_how(tmp_path: Path) -> None:
    log = small_study(tmp_path, stop={"trials": 4, "failures": 3})
    log.append("started", WORKER, {"begins": True, "stop": {"trials": 60, "seconds": None}})
    log.append("note", WORKER, {"command": "formwright resume it --trials 60"})
    facts = study_facts(log, SPACE)
    assert facts.config["stop"] == {"trials": 60, "seconds": None, "failures": 3}
    assert facts.run.command == "formwright search --seed 0\nformwright resume it --trials 60"


def test_only_the_longest_trials_make_progress(tmp_path: Path) -> None:
    log = new_log(tmp_path, objectives=["accuracy:max"])
    for number, (steps, accuracy) in enumerate(((100, 0.9), (300, 0.6), (300, 0.7))):
        ask(log, number, steps=steps)
        tell(log, number, accuracy=accuracy)
    facts = study_facts(log, SPACE)
    assert facts.progress.by_number == ((1, 0.6), (2, 0.7))
    assert facts.best == 2


def test_a_design_that_cannot_be_trained_to_the_end_is_not_the_best(tmp_path: Path) -> None:
    log = new_log(tmp_path, objectives=["accuracy:max"])
    for number, accuracy in enumerate((0.7, 0.6)):
        ask(log, number)
        tell(log, number, accuracy=accuracy)
    failed = {"name": "trial-0", "digest": SPACE.card(design_of(0)).digest, "reason": "the loss is nan"}
    log.append("note", WORKER, {"undelivered": failed})
    deliver(log, "trial-1", "best", 1, 0.65)
    facts = study_facts(log, SPACE)
    assert facts.best == 1
    assert facts.found == facts.models[0]
    assert facts.found.role == "best"


def test_a_study_of_a_compressed_model_has_a_teacher(tmp_path: Path) -> None:
    facts = compressed_facts(tmp_path)
    assert facts.compression is not None
    assert facts.teacher == facts.models[0]
    assert (facts.teacher.name, facts.teacher.steps) == ("teacher", 500)
    (tmp_path / "other").mkdir()
    other = study_facts(small_study(tmp_path / "other"), SPACE)
    assert (other.compression, other.teacher) == (None, None)
