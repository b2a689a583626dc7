import json
from dataclasses import replace
from pathlib import Path

import pytest
from numpy.random import default_rng

from formwright.core.errors import IllegalInput
from formwright.pipeline.draw_menu import DrawMenu, _chain, fastest, operations_of
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.space import Choice, Record, Repeat
from formwright.space.zoo import load_space
from formwright.space.zoo.fast_bert import PARTS

TASK = TaskChoice("mini-glue/rte", rows=50)
TIMES = {"attention-1": 3.0, "attention-2": 4.0, "separable-3": 1.0, "separable-5": 2.0, "feed-forward-64": 5.0}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (0.0, {"attention-1", "separable-3", "feed-forward-64"}),
        (0.4, {"attention-1", "separable-3", "separable-5", "feed-forward-64"}),
        (0.7, set(TIMES)),  # four of five, and the only one of its kind
        (1.0, set(TIMES)),
    ],
)
def test_the_fastest_are_kept_and_one_of_each_kind(keep: float, kept: set[str]) -> None:
    found = fastest(TIMES, keep)
    assert set(found) == kept
    assert found == [name for name in TIMES if name in kept]


def test_only_chains_have_a_menu() -> None:
    assert operations_of(load_space("fast-bert-nano")) == PARTS
    with pytest.raises(IllegalInput, match="autotinybert-nano"):
        operations_of(load_space("autotinybert-nano"))
    chains = load_space("fast-bert-nano")
    wider = replace(chains, root=Record.of(width=Choice((64, 96)), layers=dict(chains.root.fields)["layers"]))
    with pytest.raises(IllegalInput, match="fast-bert-nano"):
        operations_of(wider)


def test_the_space_that_is_left_has_the_fastest_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_convolutions(card: object) -> float:
        return 9.0 if "separable" in str(card.to_json()) else 1.0

    monkeypatch.setattr("formwright.nn.latency.quick", lambda *_: slow_convolutions)
    menu = DrawMenu("fast-bert-nano", TASK, keep=0.7)
    run = PipelineRun(Pipeline(menu), tmp_path / "run", RunOptions(workers=1))
    run_pipeline(run)
    space, whole = run.artifact(run.pipeline.stages[0]), load_space("fast-bert-nano")
    assert set(operations_of(space)) == {name for name in PARTS if "separable" not in name} | {"separable-3"}
    design = space.sample(default_rng(0))
    assert whole.contains(design)
    assert whole.card(design) == space.card(design)


def test_the_least_of_several_measurements_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5.0] * len(PARTS) + [1.0] * len(PARTS) + [7.0] * len(PARTS))
    monkeypatch.setattr("formwright.nn.latency.quick", lambda *_: lambda _: next(times))
    run_pipeline(PipelineRun(Pipeline(DrawMenu("fast-bert-nano", TASK)), tmp_path, RunOptions(workers=1)))
    (menu,) = tmp_path.rglob("menu.json")
    assert json.loads(menu.read_text())["milliseconds"] == dict.fromkeys(PARTS, 1.0)


def test_an_operation_is_measured_in_the_longest_chain() -> None:
    whole = load_space("fast-bert-nano")
    several = replace(whole, root=Record.of(layers=Repeat(Choice(PARTS), (2, 6, 4))))
    assert len(_chain(several, PARTS[0]).encoder.layers) == 6
