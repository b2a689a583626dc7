"""What evaluators load: nothing that leads to the test rows, and never transformers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import formwright
from formwright import evaluate

SOURCE = Path(formwright.__file__).parents[1]
ROOT = Path(__file__).parents[2]
FOLDER = Path(evaluate.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in FOLDER.rglob("*.py")
)
TRAINED = """
import tempfile
from pathlib import Path
from tests.evaluate.toy import card, history, finished, trainer
from formwright.core.records import Budget, Request
from formwright.evaluate.context import Context
from formwright.evaluate.training import Trainer
from formwright.evaluate.inherited import Inherited
from formwright.evaluate.training import Staged
from formwright.pipeline.evaluators import UntrainedScores
with tempfile.TemporaryDirectory() as name:
    context = Context(0, Path(name))
    found = trainer(steps=1).evaluate(Request(card(8)), context)
    Staged(trainer(steps=2)).evaluate(Request(card(8), Budget(1)), context)
    after = Context(1, Path(name), history(finished(0, card(8), found)))
    assert Inherited(trainer(steps=1)).evaluate(Request(card(8)), after).artifacts["relative"] == "0"
    UntrainedScores(("params", "synflow")).evaluate(Request(card(8)), context)
"""
FINALLY = """
import tempfile
from pathlib import Path
from tests.evaluate.toy import card, trainer
from formwright.core.records import Request
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final
with tempfile.TemporaryDirectory() as name:
    Final(trainer(steps=1)).evaluate(Request(card(8)), Context(0, Path(name)))
"""


def loaded_by(code: str) -> set[str]:
    """Run code in a fresh interpreter and list the modules that it loaded."""
    report = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SOURCE), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-c", code + report], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_all_modules_are_looked_at() -> None:
    assert {"formwright.evaluate", "formwright.evaluate.final", "formwright.evaluate.proxies.synflow"} <= set(MODULES)


@pytest.mark.slow
def test_importing_evaluators_does_not_lead_to_the_test_rows() -> None:
    # the last scores a delivered model again, through the first
    doors = ("formwright.evaluate.final", "formwright.evaluate.repeat_score")
    others = [name for name in MODULES if name not in doors]
    loaded = loaded_by("\n".join(f"import {name}" for name in others))
    assert set(others) <= loaded
    assert "formwright.tasks.test_split" not in loaded
    assert "transformers" not in loaded


@pytest.mark.slow
def test_evaluating_loads_neither_the_test_rows_nor_transformers() -> None:
    loaded = loaded_by(TRAINED)
    assert "torch" in loaded
    assert not {"transformers", "formwright.tasks.test_split", "formwright.evaluate.final"} & loaded


@pytest.mark.long
@pytest.mark.slow
def test_the_final_evaluation_opens_the_test_rows_without_transformers() -> None:
    loaded = loaded_by(FINALLY)
    assert "formwright.tasks.test_split" in loaded
    assert "transformers" not in loaded
