"""What block-wise stages share, and what is refused before anything is written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch
from tests.pipeline.block_runs import begun, blockwise, finished, here, made, settled, stage, steps_of
from tests.pipeline.compressions import vit

from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json
from formwright.pipeline import model_times
from formwright.pipeline.blocks_source import TIMES, MeasureOperations, Source, read_times
from formwright.pipeline.blocks_train import BASES, read_tensors
from formwright.pipeline.pacing import begin_pacing
from formwright.search.chain_costs import untimed
from formwright.space.zoo.chains import REAL


def source_of(folder: Path, **changes: Any) -> Source:
    run = begun(folder, **changes)
    found: Source = run.artifact(run.pipeline.named["source"])
    return found


def test_sizes_and_the_steps_of_students_are_extents(tmp_path: Path) -> None:
    made = blockwise(tmp_path)
    other = blockwise(tmp_path, sizes="4k", settings={"students.steps": 7})
    assert other.to_json(extents=False) == made.to_json(extents=False)
    assert blockwise(tmp_path, settings={"blocks.steps": 7}).to_json(extents=False) != made.to_json(extents=False)


def test_the_teacher_is_divided_and_other_text_is_another_beginning(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    assert source.ends == (0, 1, 2)
    assert source.menu.widths == (4, 6, 8, 12, 16)
    assert source.name == "bert"
    again = cloudpickle.loads(cloudpickle.dumps(source))
    assert again.digests == source.digests
    assert again.held_batches(2)[0].inputs.equal(source.held_batches(2)[0].inputs)
    first, fewer = source_of(tmp_path).digests, source_of(tmp_path, rows=30).digests
    assert first.keys() == fewer.keys() == {"card", "weights", "text", "held text", "tokeniser"}
    assert {name for name in first if first[name] != fewer[name]} == {"text"}


def test_held_out_batches_are_spread_over_the_lengths(tmp_path: Path) -> None:
    source = source_of(tmp_path, text="", length=16, rows=40)
    found = source.held_batches(4)
    lengths = [batch.inputs.shape[1] for batch in found]
    assert len(found) == 4
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    every = [batch.inputs.shape[1] for batch in source.held_batches(10**6)]
    assert len(every) > 8
    assert lengths == [every[int((place + 0.5) * len(every) / 4)] for place in range(4)]
    assert lengths[0] > every[0]  # not the headings of a few words


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ("100", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("1M", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("3k,9000000", r"sizes reach from 0\.\d+k to 8\.68k"),
        ("0.001ms", "sizes reach from"),
        ("1000ms", "sizes reach from"),
        ("3k,3000", "twice"),
        ("", "--sizes"),
    ],
)
def test_sizes_out_of_reach_are_refused_with_the_range(tmp_path: Path, sizes: str, told: str) -> None:
    run = begun(tmp_path, sizes=sizes)
    with pytest.raises(IllegalInput, match=told):
        settled(run)
    assert not run.out.exists()


def test_limits_that_only_exclude_each_other_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, sizes="0.5k@1ms")
    times = untimed(run.artifact(run.pipeline.named["source"]).menu).times
    slow = {(name, width): 5.0 if width < 16 else 0.1 for name in REAL for width in (4, 6, 8, 12, 16)}
    monkeypatch.setattr(MeasureOperations, "measured", lambda *_: replace(times, operations=slow))
    with pytest.raises(IllegalInput, match=r"params <= 500 \(.*\) and latency_ms <= 1|params <= 500.*latency_ms <= 1"):
        settled(run)


def test_models_that_cannot_teach_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="encoder of text"):
        source_of(tmp_path, model=str(vit(tmp_path)))
    with pytest.raises(IllegalInput, match="device"):
        source_of(tmp_path, device="tpu")


def test_operations_are_measured_once_for_a_check_and_the_stage(tmp_path: Path) -> None:
    run = settled(begun(tmp_path, sizes="6k@0.1ms"))
    times = run.artifact(run.pipeline.named["operation-times"])
    assert stage(run, "operation-times").measured(here(run, "operation-times")) is times
    assert not run.out.exists()


@pytest.mark.slow
def test_what_was_fitted_is_read_again_and_everything_takes_some_time() -> None:
    run = finished()
    fitted, source = run.artifact(stage(run, "bases")), run.artifact(stage(run, "source"))
    assert set(fitted.losses) == set(source.menu.embeddings)
    assert fitted.losses[16] == 0.0
    tensors = read_tensors(here(run, "bases").folder / BASES)
    assert any(torch.equal(fitted.bases[1].mean, tensor) for tensor in tensors.values())
    assert read_times(here(run, "operation-times").folder / TIMES, source.menu) == run.artifact(
        stage(run, "operation-times")
    )
    source = run.artifact(stage(run, "source"))
    before = {name: tensor.clone() for name, tensor in source.teacher.state_dict().items()}
    for name in ("bases", "blocks", "students"):
        found = stage(run, name).speeds(here(run, name))
        assert all(0 <= value < 600 for value in found.values())
        assert sum(found.values()) > 0
    after = source.teacher.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())


@pytest.mark.slow
def test_a_damaged_file_is_refused_where_it_is_only_read(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"damaged")
    for name in ("damaged", "absent"):
        with pytest.raises(IllegalInput, match="its stage runs again"):
            read_tensors(tmp_path / name)


@pytest.mark.parametrize("kind", ["embeddings", "operations", "joints"])
@pytest.mark.slow
def test_times_that_lack_an_operation_are_refused(tmp_path: Path, kind: str) -> None:
    run = finished()
    times = read_json(here(run, "operation-times").folder / TIMES)
    write_json(tmp_path / TIMES, {**times, kind: times[kind][1:]})
    with pytest.raises(IllegalInput, match=f"lacks times of {kind}"):
        read_times(tmp_path / TIMES, run.artifact(stage(run, "source")).menu)


BLOCK, JUDGING, STUDENT, FIT = 0.1, 5.0, 0.2, 30.0


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let work take given times; the only item slows it down."""
    slower = [1.0]
    monkeypatch.setattr(model_times, "fitting_seconds", lambda _: slower[0] * FIT)
    monkeypatch.setattr(model_times, "block_seconds", lambda *_: (slower[0] * BLOCK, slower[0] * JUDGING))
    monkeypatch.setattr(model_times, "student_seconds", lambda _: slower[0] * STUDENT)
    return slower


@pytest.mark.parametrize("hours", [None, 0.1, 1.0, 1000.0])
def test_a_plan_keeps_its_budget(tmp_path: Path, speeds: list[float], hours: float | None) -> None:
    run = settled(begun(tmp_path, hours=hours, settings={"blocks.steps": 300, "students.steps": 1000}))
    pacing = begin_pacing(run)
    assert pacing is not None
    rounds, students = pacing.plan["blocks"]["steps"], pacing.plan["students"]["steps"]
    seconds = pacing.budget.estimate(pacing.plan, pacing.schedule.speeds)
    assert seconds == {
        "bases": FIT,
        "blocks": pytest.approx(2 * (3 * rounds * BLOCK + JUDGING)),  # two blocks, one after the other
        "students": pytest.approx(2 * students * STUDENT),
    }
    if hours is None:
        assert (rounds, students) == (300, 1000)
    else:
        assert sum(seconds.values()) <= 3600 * hours * 0.9
        assert sum(seconds.values()) > 3600 * hours * 0.85 or rounds == 50 * 300


def test_too_few_hours_plan_the_least(tmp_path: Path, speeds: list[float]) -> None:
    pacing = begin_pacing(settled(begun(tmp_path, hours=0.001)))
    assert pacing is not None
    assert [pacing.plan[name]["steps"] for name in ("blocks", "students")] == [10, 10]


@pytest.mark.slow
@pytest.mark.long
def test_students_have_the_time_that_blocks_left(tmp_path: Path, speeds: list[float]) -> None:
    """The machine was ten times slower when the plan was made; a run that is called again keeps the revised plan."""
    speeds[0] = 10.0
    measured = iter((10.0, 1.0))
    original = model_times.fitting_seconds

    def next_speed(source: object) -> float:
        speeds[0] = next(measured)
        return original(source)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_times, "fitting_seconds", next_speed)
        run = made(tmp_path, hours=0.15)
    kept = json.loads((run.out / "plan.json").read_bytes())["plan"]
    assert kept["students"]["steps"] > kept["blocks"]["steps"]
    assert len(steps_of(run, "students")) == 2 * kept["students"]["steps"]
    again = made(tmp_path, hours=0.15)
    assert steps_of(again, "blocks") == steps_of(again, "students") == []
