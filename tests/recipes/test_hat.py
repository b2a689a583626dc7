from pathlib import Path

import pytest
from tests.cli.conftest import in_one_process

from formwright.api import run
from formwright.core.rng import derive
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes import RECIPES
from formwright.recipes.hat import hat
from formwright.search.evolution import Nsga2
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform

TRANSLATION = TaskChoice("translation", rows=60)
QUICK = {"training.batch": 8, "training.device": "cpu"}


def test_one_design_a_step_learns_from_the_labels_and_the_winner_starts_anew() -> None:
    shared, search, deliver = hat(TRANSLATION, limits=("writing_30x5_ms<=40",)).stages
    assert RECIPES.get("hat") is hat
    assert (shared.rule, shared.lesson, deliver.weights) == (Uniform(), Labels(), "fresh")
    assert len(shared.rule.bind(find_hull(load_space("hat-nano")), 10)(derive(0), 0)) == 1
    assert search.searcher.KIND is Nsga2
    assert search.evaluator.weights is shared
    assert hat(TRANSLATION, weights="shared", finetune=0).stages[-1].steps == 0


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(240)
def test_designs_are_judged_by_their_loss_within_a_latency_of_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_one_process(monkeypatch)
    made = hat(TRANSLATION, limits=("writing_30x5_ms<=1e6",), steps=5, trials=3, weights="shared", finetune=0)
    made = made.with_options([(("super_network", *name.split(".")), value) for name, value in QUICK.items()])
    result = run(made, tmp_path / "run")
    (model,) = result.models
    best = result.best_trial
    assert best is not None
    assert best.observation is not None
    assert {"perplexity", "writing_30x5_ms", "macs"} <= best.observation.metrics.keys()
    assert best.observation.metrics["perplexity"] == min(
        trial.observation.metrics["perplexity"] for trial in result.trials if trial.observation
    )
    assert "bleu" not in best.observation.metrics
    assert model.costs["writing_30x5_ms"] > model.costs["latency_ms"]
