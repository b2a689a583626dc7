from pathlib import Path

import pytest
from tests.cli.conftest import in_one_process

from formwright.api import run
from formwright.core.rng import derive
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes import RECIPES
from formwright.recipes.ofa import ofa
from formwright.recipes.recipe import Recipe
from formwright.recipes.spos import spos
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.lessons import Distil, Labels
from formwright.supernet.rules import Largest, ProgressiveShrinking, Uniform

DIGITS = TaskChoice("digits", rows=200)
QUICK = {"training.batch": 16, "training.device": "cpu"}


@pytest.mark.parametrize("recipe", [spos, ofa], ids=lambda recipe: recipe.name)
def test_recipes_are_short_pipelines_of_shared_stages(recipe: Recipe) -> None:
    pipeline = recipe(DIGITS, steps=10, trials=3, seed=4)
    assert RECIPES.get(recipe.name) is recipe
    assert pipeline.recipe == recipe.name
    assert Pipeline.from_json(pipeline.to_json()) == pipeline
    *networks, search, deliver = pipeline.stages
    assert isinstance(search, Search)
    assert isinstance(deliver, Deliver)
    assert search.evaluator.weights is networks[-1]
    assert {stage.seed for stage in (*networks, search)} == {4}
    source = Path(__file__).parents[2] / "src" / "formwright" / "recipes" / f"{recipe.name}.py"
    assert len(source.read_text(encoding="utf-8").splitlines()) < 60


def test_spos_draws_one_design_a_step_and_retrains_the_winner() -> None:
    shared, _, deliver = spos(DIGITS).stages
    assert (shared.rule, shared.lesson, deliver.weights) == (Uniform(), Labels(), "fresh")
    draw = shared.rule.bind(find_hull(load_space("autoformer-nano")), 10)
    assert len(draw(derive(0), 0)) == 1


def test_ofa_shrinks_what_its_largest_design_has_learned() -> None:
    largest, shared, _, deliver = ofa(DIGITS, steps=10).stages
    assert (largest.rule, largest.steps) == (Largest(), 5)
    assert shared.teacher is largest
    assert shared.rule == ProgressiveShrinking(largest=0.0, order=("length",), designs=2)
    assert shared.lesson == Distil(labels=0.5, temperature=1.0)
    assert (deliver.weights, deliver.steps) == ("shared", 0)
    assert ofa(DIGITS, finetune=7).stages[-1].steps == 7


CASES = {"spos": (spos, {}), "ofa": (ofa, {}), "ofa, fine-tuned": (ofa, {"finetune": 5})}


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "case", ["ofa", *(pytest.param(name, marks=pytest.mark.long) for name in CASES if name != "ofa")]
)
def test_recipes_run_from_shared_weights_to_a_model_and_resume(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_one_process(monkeypatch)
    recipe, options = CASES[case]
    made = recipe(DIGITS, limits=("params<=12000",), steps=20, trials=4, **options)
    networks = [name for name, stage in made.named.items() if isinstance(stage, TrainShared)]
    quick = {f"{name}.{option}": value for name in networks for option, value in QUICK.items()}
    quick |= {"search.training.steps": 5, "search.training.device": "cpu"}
    quick |= {"deliver.steps": 5} if recipe is spos else {}
    first, again = (run(made, tmp_path / "run", settings=quick, workers=1) for _ in range(2))
    digests = [[trial.request.card.digest for trial in result.trials] for result in (first, again)]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 4
    assert again.best.costs["params"] <= 12_000
    assert (again.best.path / "model.safetensors").is_file()
    # what is delivered as it is has no baseline, which would have to be trained
    roles = {model.facts.role for model in again.models}
    assert roles == ({"best"} if case == "ofa" else {"best", "baseline"})
