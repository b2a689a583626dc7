"""What may become of a compression later: called again, moved, extended, or with models that fail."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.compressing import everything, line, models, setting, trials
from tests.cli.conftest import Run
from tests.cli.test_compress import check
from tests.nn.test_latency import ONE
from tests.pipeline.compressions import LENGTH, bert

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import EvaluationFailed
from formwright.cost import macs
from formwright.evaluate.final import openings
from formwright.nn import latency
from formwright.nn.measurement import Latency
from formwright.pipeline import delivery, measure_models, model_times
from formwright.pipeline.delivered import last_session
from formwright.pipeline.model_times import ModelTimes
from formwright.pipeline.run_events import last_options
from formwright.pipeline.study_place import find
from formwright.pipeline.train_shared import TrainShared
from formwright.study.folder_lock import alone_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.usefixtures("one_process")]


def stopped(run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Stop a compression before its super-network is trained; give what it printed."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrainShared, "make", stop)
        done = run(*words)
    assert done.code == 130
    return done.err


def without(words: list[str], option: str) -> list[str]:
    place = words.index(option)
    return words[:place] + words[place + 2 :]


def measure_in_theory(monkeypatch: pytest.MonkeyPatch, found: float, single: Callable[..., Latency]) -> None:
    """Predict a millisecond for ten thousand operations; measure as `single` does, and `found` in turns."""
    monkeypatch.setattr(latency, "quick", lambda length: lambda card: macs(card, length) / 1e4)
    monkeypatch.setattr(latency, "measured_latency", single)
    one = replace(ONE, median_ms=found)
    monkeypatch.setattr(measure_models, "measure_in_turns", lambda models, _: [one for _ in models])


@pytest.mark.long
def test_a_moved_folder_is_resumed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(run, line(tmp_path), monkeypatch)
    run("worker", tmp_path / "out").refused("formwright resume")  # there is no study yet
    (tmp_path / "out").rename(tmp_path / "moved")
    facts = run(*line(tmp_path, "--json", out="moved")).data
    check(facts, tmp_path)
    assert not (tmp_path / "out").exists()

    (tmp_path / "moved").rename(tmp_path / "again")
    before = everything(tmp_path / "again")
    again = run(*line(tmp_path, "--json", out="again"))
    assert models(again.data) == models(facts)
    assert "writing" not in again.err  # all is there
    assert everything(tmp_path / "again") == before
    with alone_in(tmp_path / "again"):
        refused = run("resume", tmp_path / "again", "--trials", 7)
    assert refused.code == 2
    assert f"another process works in {tmp_path / 'again'}; wait for it" in refused.err
    assert run("resume", tmp_path / "again", "--trials", 7, "--workers", 1).code == 0
    assert len(trials(tmp_path / "again")) == 7


def test_a_machine_with_other_processors_goes_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = without(line(tmp_path, "--json"), "--threads")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    stopped(run, words, monkeypatch)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    check(run(*words).data, tmp_path)
    run(*words, "--threads", 3).refused("teacher.training.threads")


def test_one_is_delivered_where_all_exceed_a_target(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_in_theory(monkeypatch, 1234.5, lambda *_, **__: replace(ONE, median_ms=1234.5))
    done = run(*line(tmp_path, "--target", "latency_ms=6"))
    told = r"latency_ms-6 is missed: latency_ms-6.* was measured at latency_ms 1234, above the 6 that"
    assert re.search(told, done.out)
    assert "was measured, and 1234 is beyond latency_ms<=6.0; another design is tried" in done.err
    assert len(openings(tmp_path / "out" / "final" / "latency_ms-6")) == 1  # the others were not tested
    folder = tmp_path / "out" / "models" / "latency_ms-6"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"latency_ms at most 6 at {LENGTH} tokens; exceeded" in readme
    with find(str(tmp_path / "out")).open() as opened:
        session = last_session(opened.log.read())
    assert session is not None
    assert {name: found["latency_ms"] for name, found in session.costs.items()} == dict.fromkeys(
        ("teacher", "latency_ms-6"), 1234.5
    )


def test_a_design_beyond_its_target_gives_way(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def times(card: Card, **_: object) -> Latency:
        seen.append(card.digest)
        return replace(ONE, median_ms=6.5 if seen[-1] == seen[0] else 5.0)

    measure_in_theory(monkeypatch, 5.0, times)
    words = line(tmp_path, "--target", "latency_ms=6", "--trials", 12, "--json")
    done = run(*words)
    teacher, found = done.data["models"]
    assert seen[0] == seen[1] == seen[2]  # again, before it is put aside
    assert found["digest"] == seen[3]
    assert (teacher["role"], found["name"], found["costs"]["latency_ms"]) == ("teacher", "latency_ms-6", 5.0)
    assert done.data["remarks"] == ["latency_ms-6 is kept by latency_ms-6: 1 other design was measured beyond it"]
    readme = (tmp_path / "out" / "models" / "latency_ms-6" / "README.md").read_text(encoding="utf-8")
    assert re.search(f"latency_ms at most 6 at {LENGTH} tokens; kept .* 1 ", readme)
    assert run(*words).data == done.data
    assert len(seen) == 4


def failing(number: int, failed: list[str]) -> Callable[..., float]:
    """Prove nothing of the first models, and everything of the others."""
    prove = delivery.refuse_another

    def refuse(folder: Path, network: Any, card: Any) -> float:
        if len(failed) < number:
            failed.append(card.digest)
            raise EvaluationFailed("it differs")
        return prove(folder, network, card)

    return refuse


@pytest.mark.long
def test_a_model_that_fails_gives_way_to_the_next(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    monkeypatch.setattr(delivery, "refuse_another", failing(1, failed))
    done = run(*line(tmp_path, "--trials", 12, "--json"))
    check(done.data, tmp_path)
    assert "macs-75pct cannot be delivered: it differs" in done.err
    names = [model["name"] for model in done.data["models"]]
    assert names == sorted(names, reverse=True)  # the teacher, and then the larger target first
    assert failed[0] not in [model["digest"] for model in done.data["models"]]
    best = max(
        trial["metrics"]["accuracy"]
        for trial in trials(tmp_path / "out")
        if trial["metrics"]["macs"] <= 0.75 * done.data["models"][0]["costs"]["macs"]
    )
    assert done.data["models"][1]["validation"]["accuracy"] <= best
    again = run(*line(tmp_path, "--trials", 12, "--json"))
    assert again.data == done.data
    assert "writing" not in again.err


def test_targets_whose_models_all_fail_are_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    monkeypatch.setattr(delivery, "refuse_another", failing(99, failed))
    done = run(*line(tmp_path, "--json"))
    assert done.code == 1
    assert done.data["no_model"]["failures"][0][1] == "it differs"
    assert [model["name"] for model in done.data["models"]] == ["teacher"]
    assert len(failed) == len(set(failed)) > 2  # each was tried once
    for name in ("macs-75pct", "macs-50pct"):
        assert f"nothing is delivered for {name}: all designs within macs<=" in done.err
    assert [path.name for path in (tmp_path / "out" / "models").iterdir()] == ["teacher"]


@pytest.mark.long
def test_a_stopped_run_keeps_its_revised_plan(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan was made in a busy moment: the teacher has many more steps than that, before and after the stop."""
    slow = ModelTimes(step=9.0, answer=0.1, alone=1.0, asked=0.1, judging=1.0, slowed=9.0)
    monkeypatch.setattr(model_times, "measured_times", lambda *_: slow)
    words = line(tmp_path, *setting(teacher__epochs=12), "--hours", 0.05, "--json")
    told = stopped(run, words, monkeypatch)
    assert "40 steps of fine-tuning" in told
    assert "plan revised from measured speed: teacher steps 40 -> 60" in told
    before, weights = plan_of(tmp_path / "out"), everything(tmp_path / "out")["teacher/model/model.safetensors"]
    assert [(one["since"], one["steps"]) for one in before["revisions"]] == [(0, 40), (10, 60)]
    check(run(*words).data, tmp_path)
    after = plan_of(tmp_path / "out")
    assert after["revisions"][:2] == before["revisions"]
    assert after["plan"]["teacher"]["steps"] == 60
    assert everything(tmp_path / "out")["teacher/model/model.safetensors"] == weights


def plan_of(out: Path) -> Any:
    return json.loads((out / "plan.json").read_text(encoding="utf-8"))


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
    accepted = run(*words).printed()
    assert "accept_weak" in accepted.err
    assert "fine-tuning" not in accepted.err  # it is trained already
    assert "scoring parts of the teacher: step 64 of 64" in accepted.err
    assert "answers of the teacher: step 80 of 80" in accepted.err
    run(*without(words, "--workers")).printed()
    with find(str(tmp_path / "out")).open() as opened:
        assert last_options(opened.log).workers == 1


def test_a_head_of_another_purpose_is_told(run: Run, tmp_path: Path) -> None:
    model = bert(tmp_path, "tokens", HeadSpec("token-classification", 3))
    words = line(tmp_path, *UNTAUGHT, model=model)
    done = run(*[word for word in words if word != ACCEPT])
    assert done.code == 1
    assert "the head of tokens is replaced" in done.err
