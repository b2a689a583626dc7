import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.evaluate.toy import TASK

from formwright.evaluate.benchmark import load_flexibench
from formwright.pipeline.task_choice import TrainingChoice

pytestmark = pytest.mark.slow  # it imports torch and lists 9,312 designs
TINY = {"length": 64, "steps": 2, "batch": 4}


@pytest.fixture
def flexibench(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give the script with a small task for any name."""
    monkeypatch.setattr(script, "load_task", lambda name: TASK)
    return script


def counted(calls: list[tuple[int, int]]) -> Any:
    def execute(plan: Any, pair: tuple[int, int]) -> dict[str, Any]:
        calls.append(pair)
        index, seed = pair
        scores = {"accuracy": [0.5, 0.5 + index / 1e5]}
        costs = {"params": 10, "macs": 20, "seconds": 1.0}
        digest = f"{index:064x}"[::-1]
        row = {"index": index, "digest": digest, "seed": seed, **costs, "settings": plan.settings}
        return {**row, "failure": "diverged"} if index % 2 else {**row, "validation": scores, "test": scores}

    return execute


def a_plan(flexibench: ModuleType, **training: Any) -> Any:
    return flexibench.Plan("toy", TrainingChoice(**{**TINY, **training}), (0.5, 1.0))


def test_the_order_is_fixed_and_has_every_design_once(flexibench: ModuleType) -> None:
    order = flexibench.order()
    assert order == flexibench.order()
    assert sorted(order) == list(range(9312))
    assert order[:2] == [1098, 3069]  # what was run before stays a part of it


def test_further_seeds_come_last(flexibench: ModuleType) -> None:
    pairs = flexibench.pairs(5, 2)
    first = flexibench.order()[:5]
    assert pairs[:5] == [(index, 0) for index in first]
    assert pairs[5:] == [(index, seed) for index in first[:2] for seed in (1, 2, 3, 4)]


def test_marks_are_steps(flexibench: ModuleType) -> None:
    plan = flexibench.Plan("toy", TrainingChoice(steps=100))
    assert plan.steps == [50, 100]
    assert flexibench.Plan("toy", TrainingChoice(steps=100), (0.25, 0.5, 1.0)).steps == [25, 50, 100]
    assert flexibench.Plan("toy", TrainingChoice(steps=1)).steps == [1]


def test_what_is_stored_is_not_run_again(
    flexibench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls, plan = tmp_path / "runs.jsonl", [], a_plan(flexibench)
    monkeypatch.setattr(flexibench, "execute", counted(calls))
    flexibench.complete(plan, flexibench.pairs(3, 0), path, 1)
    path.write_text(path.read_text() + '{"index": 7, "cut sh')
    flexibench.complete(plan, flexibench.pairs(5, 1), path, 1)
    assert calls == flexibench.pairs(5, 1)
    assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [index for index, _ in calls]


def test_other_settings_begin_anew_in_the_same_file(
    flexibench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = tmp_path / "runs.jsonl", []
    monkeypatch.setattr(flexibench, "execute", counted(calls))
    for steps in (2, 4):
        plan = a_plan(flexibench, steps=steps)
        flexibench.complete(plan, flexibench.pairs(2, 0), path, 1)
        assert len(flexibench.stored(path, plan)) == 2
    assert len(calls) == 4


def test_packed_runs_are_a_benchmark(flexibench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, plan = tmp_path / "runs.jsonl", a_plan(flexibench)
    monkeypatch.setattr(flexibench, "execute", counted([]))
    monkeypatch.setattr(flexibench, "quick", lambda length: lambda card: 1.0)
    flexibench.complete(plan, flexibench.pairs(6, 2), path, 1)
    flexibench.pack(plan, tmp_path / "table.npz", flexibench.stored(path, plan))
    benchmark = load_flexibench(tmp_path / "table.npz")
    chosen = flexibench.order()
    assert benchmark.table.index.tolist() == sorted(chosen[:6])
    assert [int(benchmark.table.index[row]) for row in benchmark.table.noise_rows] == sorted(chosen[:2])
    assert benchmark.table.noise_test.shape == (2, 4, 2)
    for index, score in zip(benchmark.table.index, benchmark.scores(), strict=True):
        expected = float("nan") if index % 2 else 0.5 + index / 1e5
        assert score == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert benchmark.table.facts["settings"] == plan.settings


def test_a_table_is_gone_on_with(flexibench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls, plan = tmp_path / "runs.jsonl", list[tuple[int, int]](), a_plan(flexibench)
    monkeypatch.setattr(flexibench, "execute", counted(calls))
    monkeypatch.setattr(flexibench, "quick", lambda length: lambda card: 1.0)
    flexibench.complete(plan, flexibench.pairs(6, 2), path, 1)
    flexibench.pack(plan, tmp_path / "part.npz", flexibench.known(plan, path))
    monkeypatch.setattr(flexibench, "load_flexibench", lambda: load_flexibench(tmp_path / "part.npz"))
    further, expected = tmp_path / "further.jsonl", tmp_path / "whole.npz"
    flexibench.complete(plan, flexibench.pairs(8, 3), further, 1)
    assert sorted(calls) == sorted(flexibench.pairs(8, 3))
    flexibench.pack(plan, tmp_path / "gone on.npz", flexibench.known(plan, further))
    flexibench.pack(plan, expected, [*flexibench.stored(path, plan), *flexibench.stored(further, plan)])
    assert (tmp_path / "gone on.npz").read_bytes() == expected.read_bytes()
    other = a_plan(flexibench, steps=4)
    monkeypatch.setattr(flexibench, "load_flexibench", lambda: load_flexibench(expected))
    assert flexibench.known(other, further) == []


def test_a_run_trains_and_judges(flexibench: ModuleType) -> None:
    plan = flexibench.Plan("toy", TrainingChoice(**TINY), (1.0,))
    index = flexibench.order()[0]
    row = flexibench.execute(plan, (index, 0))
    assert row["digest"] == flexibench.cards()[index].digest
    assert 0 < row["validation"]["accuracy"][0] < 1
    assert len(row["test"]["accuracy"]) == 1
    assert json.loads(json.dumps(row)) == row
    diverged = flexibench.Plan("toy", TrainingChoice(steps=3, batch=4, learning_rate=1e30, length=16), (1.0,))
    failed = flexibench.execute(diverged, (index, 0))
    assert "validation" not in failed
    assert failed["failure"]


def test_latencies_are_put_together_from_stacks(flexibench: ModuleType) -> None:
    from flexibench_kit.latency import latencies

    from formwright.space.zoo import load_space

    space = load_space("flexibert-nano")

    def milliseconds(card: Any) -> float:
        layers = card.encoder.layers
        widths = [layer.width for layer in layers]
        changes = sum(first != second for first, second in pairwise(widths))
        return (
            0.3 + 0.001 * card.encoder.embedding.width + sum(map(sum, (one.feed_forward for one in layers))) + changes
        )

    found = latencies(space, milliseconds)
    expected = [milliseconds(space.card(design)) for design in space.enumerate()]
    assert found.milliseconds == pytest.approx(expected)
    assert found.deviation == pytest.approx(0, abs=1e-9)
