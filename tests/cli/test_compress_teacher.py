"""A teacher near chance stops a compression; what takes long is shown; workers are kept."""

import json
from pathlib import Path

import pytest
from tests.cli.compressing import line, setting
from tests.cli.conftest import Run
from tests.compress.tiny import bert

from formwright.nn.task_model import HeadSpec
from formwright.pipeline.run_events import last_options
from formwright.pipeline.run_folder import find

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.usefixtures("one_process")]
ACCEPT = "--accept-weak-teacher"
UNTAUGHT = ("--learning-rate", 1e-9, *setting(teacher__epochs=1))  # nothing is learnt at this rate


def test_a_teacher_near_chance_stops_the_run_unless_it_is_accepted(run: Run, tmp_path: Path) -> None:
    words = line(tmp_path, *UNTAUGHT)
    strict = [word for word in words if word != ACCEPT]
    done = run(*strict)
    assert (done.code, done.out) == (1, "")
    for fact in ("accuracy", "chance", "teacher.epochs", "(now 1)", "(now 1e-09)", ACCEPT):
        assert fact in done.err, fact
    assert not (tmp_path / "out" / "super-network").exists()
    assert "answers of the teacher" not in done.err
    told = run(*strict, "--json")  # the teacher is there, and is no better
    assert told.code == 1
    weak = json.loads(told.out)["weak_teacher"]
    assert weak["score"] <= weak["constant"] + 0.3
    assert weak["rows"] == 10
    accepted = run(*words)
    assert accepted.code == 0, accepted.err
    assert "accept_weak" in accepted.err
    assert "fine-tuning" not in accepted.err  # it is trained already
    assert "scoring parts of the teacher: step 64 of 64" in accepted.err
    assert "answers of the teacher: step 80 of 80" in accepted.err
    place = words.index("--workers")
    again = run(*words[:place], *words[place + 2 :])  # without saying how many
    assert again.code == 0, again.err
    with find(str(tmp_path / "out")).open() as opened:
        assert last_options(opened.log).workers == 1


def test_a_head_of_another_purpose_is_told(run: Run, tmp_path: Path) -> None:
    model = bert(tmp_path, "tokens", HeadSpec("token-classification", 3))
    words = line(tmp_path, *UNTAUGHT, model=model)
    done = run(*[word for word in words if word != ACCEPT])
    assert done.code == 1
    assert "the head of tokens is replaced" in done.err
