"""Runs that deliver students: the same whatever interrupts them, extended by sizes, and repaired where damaged."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.block_runs import artifacts, begun, copied, finished, here, made, pretended_times, stage, steps_of

from formwright.core.errors import IllegalInput
from formwright.cost import params
from formwright.nn.hf.load import from_hf
from formwright.pipeline.blocks_students import delivered
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.runner import run_pipeline

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
BLOCK_STEPS, STUDENT_STEPS = 2 * 3 * 4, 2 * 4


def again(run: PipelineRun) -> PipelineRun:
    with pretended_times():
        return run_pipeline(run)


def test_models_load_and_are_what_was_chosen() -> None:
    run = finished()
    models = run.artifact(stage(run, "students"))
    assert [model["name"] for model in models] == ["3k", "6k"]
    for model in models:
        imported = from_hf(Path(model["path"]))
        assert imported.head is None
        assert imported.card.digest == model["digest"]
        assert params(imported.card) == model["params"]
        assert imported.tokenizer_files
        assert model["exceeded"] == []
    assert (len(steps_of(run, "blocks")), len(steps_of(run, "students"))) == (BLOCK_STEPS, STUDENT_STEPS)
    assert not list(run.out.glob("checkpoints/*"))


class Killed(BaseException):
    """End a run as a kill would, just before a file takes its place."""


def test_a_run_that_is_killed_at_every_write_comes_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = stage(finished(), "source")
    replace, left = Path.replace, [0]

    def replaced(self: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    for writes in count(1):  # a stage that writes several files needs as many in one go
        left[0] = writes
        run = begun(tmp_path, model=source.model, text=source.text)
        try:
            again(run)
            break
        except Killed:
            pass
    assert writes > 8
    assert artifacts(run) == artifacts(finished())


# within a round, in the second block, and students; at the end of a round, and in another step of the others
@pytest.mark.parametrize("step", [1, 13, 31, *(pytest.param(step, marks=pytest.mark.long) for step in (4, 26))])
def test_a_run_that_is_stopped_comes_to_the_same(tmp_path: Path, step: int) -> None:
    source = stage(finished(), "source")
    run, shown = begun(tmp_path, model=source.model, text=source.text), count(1)

    class Stopping:
        def step(self, *_: Any) -> None:
            run.interruption.asked |= next(shown) == step

        def stage(self, _: str) -> None: ...

    run.observers = (Stopping(),)
    with pytest.raises(Interrupted, match="step"):
        again(run)
    rest = again(begun(tmp_path, model=source.model, text=source.text))
    assert len(steps_of(rest, "blocks")) + len(steps_of(rest, "students")) == BLOCK_STEPS + STUDENT_STEPS - step
    assert artifacts(rest) == artifacts(finished())


@pytest.mark.long
def test_processes_come_to_the_same(tmp_path: Path) -> None:
    source = stage(finished(), "source")
    run = made(tmp_path, workers=2, model=source.model, text=source.text)
    assert artifacts(run) == artifacts(finished())


def test_other_sizes_and_steps_train_no_block_again(tmp_path: Path) -> None:
    tables = {name: content for name, content in artifacts(finished()).items() if name.startswith("blocks")}
    later = again(copied(tmp_path, sizes="5k,3k"))
    assert (steps_of(later, "blocks"), len(steps_of(later, "students"))) == ([], 4)
    assert [model["name"] for model in later.artifact(stage(later, "students"))] == ["5k", "3k"]
    assert tables.items() <= artifacts(later).items()
    assert {model["name"] for model in delivered(here(later, "students"))} == {"3k", "5k", "6k"}
    assert json.loads((later.out / "run.json").read_bytes())["pipeline"]["stages"]["choices"]["sizes"] == ["5k", "3k"]
    longer = again(copied(tmp_path, sizes="3k", settings={"students.steps": 5}))
    assert (steps_of(longer, "blocks"), len(steps_of(longer, "students"))) == ([], 5)
    with pytest.raises(IllegalInput, match=r"source\.seed"):
        again(copied(tmp_path, seed=1))


def model_of(run: PipelineRun, file: str) -> Path:
    return run.out / "models" / "3k" / file


DAMAGED: dict[str, tuple[Callable[[PipelineRun], Path], int, int]] = {  # a file, and the steps that are done again
    "nothing": (lambda run: run.out / "report.html", 0, 0),
    "times": (lambda run: here(run, "operation-times").folder / "times.json", 0, 0),
    "bases": (lambda run: here(run, "bases").folder / "bases.safetensors", 0, 0),
    "table": (lambda run: here(run, "blocks").folder / "0" / "table.json", BLOCK_STEPS, 0),
    "weights": (lambda run: here(run, "blocks").folder / "1" / "weights.safetensors", BLOCK_STEPS, 0),
    "choices": (lambda run: here(run, "choices").folder / "choices.json", 0, 0),
    "facts": (lambda run: here(run, "students").folder / "3k.json", 0, STUDENT_STEPS),
    "model": (lambda run: model_of(run, "model.safetensors"), 0, STUDENT_STEPS // 2),
    "configuration": (lambda run: model_of(run, "config.json"), 0, STUDENT_STEPS // 2),
}


@pytest.mark.parametrize("how", ["cut", "gone"])
@pytest.mark.parametrize("what", DAMAGED)
def test_the_stage_of_a_damaged_file_runs_again_alone(tmp_path: Path, what: str, how: str) -> None:
    place, blocks, students = DAMAGED[what]
    run = copied(tmp_path)
    path = place(run)
    content = path.read_bytes()
    path.write_bytes(content[:-1]) if how == "cut" else path.unlink()
    again(run)
    assert (len(steps_of(run, "blocks")), len(steps_of(run, "students"))) == (blocks, students)
    assert path.read_bytes() == content


def test_a_block_of_an_interrupted_stage_is_trained_again_alone_where_its_file_is_damaged(tmp_path: Path) -> None:
    run = copied(tmp_path)
    folder = here(run, "blocks").folder
    (folder / "done.json").unlink()
    path = folder / "0" / "table.json"
    path.write_bytes(path.read_bytes()[:-9])
    again(run)
    assert len(steps_of(run, "blocks")) == BLOCK_STEPS // 2
    assert artifacts(run) == artifacts(finished())


def test_delivered_models_are_measured_in_turns_and_held_to_their_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(tmp_path)
    folder = here(run, "students").folder
    for path in (folder / "3k.json", folder / "6k.json"):
        facts = json.loads(path.read_bytes())
        plain = {key: value for key, value in facts.items() if key not in ("latency_ms", "exceeded")}
        name = {"3k": "3k", "6k": "6k-1ms"}[path.stem]
        path.unlink()
        (folder / f"{name}.json").write_text(json.dumps({**plain, "name": name}), encoding="utf-8")
    times = iter((1.5, 1.3, 1.4, 1.2, 1.6, 1.7))  # in turns
    monkeypatch.setattr("formwright.nn.latency.quick", lambda *_: lambda _: next(times))
    stage(run, "students")._measure(here(run, "students"))
    found = delivered(here(run, "students"))
    assert [(model["name"], model["latency_ms"], model["exceeded"]) for model in found] == [
        ("3k", 1.4, []),
        ("6k-1ms", 1.2, ["latency_ms"]),
    ]
    stage(run, "students")._measure(here(run, "students"))  # there are no further times
    assert delivered(here(run, "students")) == found


def test_models_are_named_where_they_are_and_those_that_are_slower_than_asked_for(tmp_path: Path) -> None:
    run = copied(tmp_path)
    path = here(run, "students").folder / "6k.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "latency_ms": 9.5, "exceeded": ["latency_ms"]}))
    summary = stage(run, "students").summary(here(run, "students"))
    assert [row[0] for row in summary.rows] == ["3k", "6k"]
    slow = [line for line in summary.lines if "more than was asked for" in line]
    assert len(slow) == 1
    assert "6k takes 9.50 ms" in slow[0]
    assert [model["name"] for model in summary.data["models"]] == ["3k", "6k"]
    for name, content in (("scores", "{}"), ("notes", "[]"), ("cut", "{")):
        (here(run, "students").folder / f"{name}.json").write_text(content, encoding="utf-8")
    found = delivered(here(run, "students"))
    assert [model["path"] for model in found] == [str(run.out / "models" / name) for name in ("3k", "6k")]
