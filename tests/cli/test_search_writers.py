"""Searches for designs that translate: slices of training that go on from one another, and models that write."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.tasks.test_corpora import pairs

from formwright.pipeline.evaluators import TrainInStages
from formwright.pipeline.run_folder import find

SPACE = "evolved-transformer-nano"
SMALL = ("--steps", 9, "--batch", 4, "--length", 16, "--final-steps", 2)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("one_process")
def test_hurdles_train_translators_slice_by_slice_and_deliver_one_that_writes(run: Run, tmp_path: Path) -> None:
    out, options = tmp_path / "study", ("population=2", "batch=2", "tournament=1")
    done = run(
        *("search", SPACE, "--task", "multi30k", "--data", pairs(tmp_path / "multi30k", 8), "--searcher", "hurdles"),
        *(*SMALL, "--trials", 12, "--out", out, "--json", *(part for name in options for part in ("--option", name))),
    )
    assert done.code == 0, done.err
    with find(str(out)).open() as opened:
        assert opened.search.evaluator == TrainInStages()
        trials = opened.history().trials
    spent, budgets = defaultdict(int), defaultdict(int)
    for trial in trials:
        assert trial.observation is not None, trial.reason
        assert set(trial.observation.metrics) >= {"perplexity", "params"}
        assert "bleu" not in trial.observation.metrics
        assert trial.request.budget.steps in (1, 3, 9)
        spent[trial.request.card.digest] += trial.observation.spent.steps
        budgets[trial.request.card.digest] = max(budgets[trial.request.card.digest], trial.request.budget.steps)
    assert spent == budgets  # nothing was trained twice
    assert max(budgets.values()) > 1
    models = {model.name: model for model in (out / "models").iterdir()}
    assert "baseline" in models
    (best,) = [model for name, model in models.items() if name != "baseline"]
    assert json.loads((best / "generation_config.json").read_text())["decoder_start_token_id"] == 2
    assert "multi30k test bleu" in (best / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("space", "task"), [(SPACE, "mini-glue/rte"), ("flexibert-nano", "translation")])
def test_a_space_whose_designs_cannot_do_the_task_is_refused(run: Run, tmp_path: Path, space: str, task: str) -> None:
    done = run("search", space, "--task", task, "--out", tmp_path / "study")
    assert done.code == 2
    assert "needs a design of family" in done.err
    assert not (tmp_path / "study").exists()
