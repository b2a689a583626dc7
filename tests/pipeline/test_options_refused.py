"""Options out of range, names that clash and keys given twice are refused before anything is written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formwright.compose import with_settings
from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.designs import find_space
from formwright.pipeline.files import read_pipeline_file
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import prepare
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.recipes import RECIPES
from formwright.search.searchers import SEARCHERS

SEARCH = Search("flexibert-nano", TaskChoice("mini-glue/sst2", rows=50))


def test_numbers_out_of_range_text_and_goals_given_twice_are_refused_by_path(tmp_path: Path) -> None:
    bad = replace(SEARCH, task=TaskChoice("digits", rows=0), training=TrainingChoice(batch=0, dropout=7.0), seed=-1)
    run = PipelineRun(Pipeline(bad, Deliver(bad, keep=0, temperature=float("nan"))), tmp_path / "run")
    with pytest.raises(IllegalDesign) as refused:
        prepare(run)
    named = ("search.task.rows", "search.training.batch", "search.training.dropout", "search.seed")
    assert [fault.where for fault in refused.value.faults] == [*named, "deliver.keep", "deliver.temperature"]
    assert not run.out.exists()
    bad = replace(SEARCH, training=TrainingChoice(steps="many"))  # type: ignore[arg-type]
    with pytest.raises(IllegalDesign, match=r"search.training.steps.*many"):
        prepare(PipelineRun(Pipeline(bad), tmp_path / "run"))
    search = replace(SEARCH, objectives=("accuracy:max", "accuracy:min"))
    with pytest.raises(IllegalInput, match=r"accuracy.*twice"):
        prepare(PipelineRun(Pipeline(search), tmp_path / "run"))
    with pytest.raises(IllegalDesign) as refused:
        Pipeline(SEARCH).with_options([(["training", "steps"], "many")])
    assert [fault.where for fault in refused.value.faults] == ["search.training.steps"]


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"workers": -1}, {"save_every": -1}, {"hours": 0}, {"hours": float("nan")}]
)
def test_a_run_needs_workers_and_time(options: dict[str, Any]) -> None:
    with pytest.raises(IllegalInput, match=next(iter(options))):
        RunOptions(**options)


def test_unknown_parts_and_recipes_without_a_task_are_refused() -> None:
    with pytest.raises(IllegalInput, match="space"):
        find_space(5)
    with pytest.raises(UnknownName) as refused:
        SEARCHERS.get(5)  # type: ignore[arg-type]
    assert "5" in str(refused.value)
    with pytest.raises(IllegalInput, match=r"spos.*task"):
        RECIPES.get("spos")()


STAGE = "{stage: search, space: flexibert-nano}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"stages:\n  search: {STAGE}\n  search: {STAGE}\n", "'search' is given twice"),
        (f"stages:\n  search: {STAGE}\nstagse: 5\n", "stagse"),
        *(
            (f"stages:\n  {name}: {STAGE}\n", name)
            for name in ("answers", "checkpoints", "models", "Models", "run.json", "runs")
        ),
    ],
)
def test_a_file_with_a_key_twice_an_unknown_key_or_a_taken_name_is_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(IllegalInput if "twice" in told else IllegalDesign) as refused:
        read_pipeline_file(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)


def test_wrong_settings_of_a_searcher_are_reported_with_all_others() -> None:
    settings = [(["training", "stepz"], 3), (["searcher", "populatio"], 2), (["seed"], "x")]
    with pytest.raises(IllegalDesign) as refused:
        with_settings(Pipeline(SEARCH), settings)
    found = {fault.where for fault in refused.value.faults}
    assert found == {"search.training.stepz", "search.searcher.populatio", "search.seed"}
