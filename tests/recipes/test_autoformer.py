import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import in_one_process
from tests.pipeline.shared_runs import Lines
from tests.tasks.test_idx import write_idx

from formwright.api import run
from formwright.arch.embeddings import PatchEmbedding
from formwright.compose import compose_search
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.pipeline.files import read_pipeline_file
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import RunRecord
from formwright.pipeline.runner import plan_run
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes import RECIPES
from formwright.recipes.autoformer import autoformer
from formwright.recipes.subnetworks import _loss
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform

DIGITS = TaskChoice("digits", rows=200)
OF_PICTURES = ("autoformer", "spos", "ofa", "linas")


def test_one_design_a_step_learns_in_entangled_weights_and_is_delivered_as_it_is() -> None:
    shared, search, deliver = autoformer(DIGITS, limits=("params<=20000",), steps=7, trials=5, seed=3).stages
    assert (shared.rule, shared.lesson, shared.steps, shared.teacher) == (Uniform(), Labels(), 7, None)
    assert (search.limits, search.searcher.NAME, search.stop.trials) == (("params<=20000",), "nsga2", 5)
    assert search.evaluator.weights is shared
    assert (deliver.weights, deliver.steps) == ("shared", 0)
    assert autoformer(DIGITS, finetune=9).stages[-1].steps == 9


def spaces(made: Pipeline) -> set[str]:
    """Give the spaces that the stages of a pipeline name."""
    return {stage.space for stage in (*made.of_kind(TrainShared), *made.of_kind(Search))}


def arrays(folder: Path, side: int, rows: int = 30) -> TaskChoice:
    """Write grey squares into IDX files."""
    pixels = derive(side, "arrays").integers(256, size=(rows, side, side), dtype=np.uint8)
    write_idx(folder / "train-images-idx3-ubyte", pixels)
    write_idx(folder / "train-labels-idx1-ubyte", np.arange(rows, dtype=np.uint8) % 2)
    return TaskChoice(str(folder))


def files(folder: Path, side: int, mode: str = "RGB", rows: int = 20) -> TaskChoice:
    """Write pictures of one size into a folder for each label."""
    for row in range(rows):
        path = folder / "pictures" / ("cat", "dog")[row % 2] / f"{row:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = derive(row, "files").integers(256, size=(side, side + row % 3, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(path)
    return TaskChoice(str(folder / "pictures"))


PICTURES: dict[str, tuple[Callable[[Path], TaskChoice], str]] = {
    "digits": (lambda _: DIGITS, "autoformer-nano"),
    "arrays of 28": (lambda folder: arrays(folder, 28), "autoformer-nano-28"),
    "colours of 32": (lambda folder: files(folder, 32), "autoformer-nano-32"),
    "colours of 8": (lambda folder: files(folder, 8), "autoformer-nano-32"),
    "colours of 100": (lambda folder: files(folder, 100), "autoformer-nano-32"),
    "grey of 8": (lambda folder: files(folder, 8, "L"), "autoformer-nano"),
    "grey of 28": (lambda folder: files(folder, 28, "L"), "autoformer-nano-28"),
    "grey of 100": (lambda folder: files(folder, 100, "L"), "autoformer-nano-32"),
    "arrays of 20": (lambda folder: arrays(folder, 20), "autoformer-nano"),
}


@pytest.mark.parametrize("pictures", PICTURES)
def test_the_space_is_the_nano_space_that_loses_least_of_the_pictures(pictures: str, tmp_path: Path) -> None:
    write, expected = PICTURES[pictures]
    task = write(tmp_path)
    for name in OF_PICTURES if pictures in ("digits", "arrays of 28") else ("autoformer",):
        assert spaces(RECIPES.get(name)(task)) == {expected}, name


@pytest.mark.parametrize("name", OF_PICTURES)
def test_a_space_that_the_user_names_is_kept_and_the_task_is_not_read(name: str, tmp_path: Path) -> None:
    absent = TaskChoice("fashion-mnist", data=str(tmp_path / "absent"))
    assert spaces(RECIPES.get(name)(absent, space="autoformer-tiny")) == {"autoformer-tiny"}
    assert spaces(compose_search("autoformer-tiny", absent, recipe=name)) == {"autoformer-tiny"}
    with pytest.raises(IllegalInput, match="absent"):
        RECIPES.get(name)(absent)


def test_pictures_of_a_size_that_no_small_space_reads_are_refused_with_it(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="20"):
        plan_run(PipelineRun(autoformer(arrays(tmp_path, 20)), tmp_path / "out"))


def test_a_task_without_pictures_needs_a_space() -> None:
    with pytest.raises(IllegalInput, match=r"(?s)mini-glue/rte.*list spaces"):
        autoformer(TaskChoice("mini-glue/rte"))
    assert spaces(autoformer(TaskChoice("mini-glue/rte"), space="flexibert-nano")) == {"flexibert-nano"}


def test_plans_and_files_name_the_space_and_pictures_that_it_shrinks_are_reported(tmp_path: Path) -> None:
    task, display = files(tmp_path, 100), Lines()
    made = compose_search("", task, recipe="autoformer")
    file = tmp_path / "run.yaml"
    file.write_text(json.dumps({"recipe": "autoformer", "task": task.name}))
    assert read_pipeline_file(file) == made
    plan = plan_run(PipelineRun(made, tmp_path / "out", display=display))
    stages = plan.pipeline["stages"]
    assert {stages[name]["space"] for name in ("super-network", "search")} == {"autoformer-nano-32"}
    assert "100 pixels" in "\n".join(display.lines)
    assert autoformer(task, space="autoformer-nano").keys({}) != made.keys({}) == autoformer(task).keys({})


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_run_on_arrays_of_28_pixels_resumes_with_its_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_process(monkeypatch)
    made = autoformer(arrays(tmp_path, 28), steps=2, trials=2)
    quick = {"super-network.training.batch": 8, "super-network.training.device": "cpu", "search.training.device": "cpu"}
    first, again = (run(made, tmp_path / "run", settings=quick, workers=1) for _ in range(2))
    assert [trial.request.card.digest for trial in again.trials] == [one.request.card.digest for one in first.trials]
    assert spaces(Pipeline.from_json(RunRecord.read(tmp_path / "run").pipeline)) == {"autoformer-nano-28"}


def test_lost_colours_are_worse_than_lost_pixels_and_these_worse_than_large_designs() -> None:
    pictures = SimpleNamespace(usual_size=(40, 3))
    designs = [PatchEmbedding(side, 4, 8, channels) for side, channels in ((40, 3), (48, 3), (8, 3), (40, 1), (8, 1))]
    losses = [_loss(pictures, one) for one in designs]
    assert losses == sorted(losses)
