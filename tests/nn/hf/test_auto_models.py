"""`import formwright` is enough for the Auto classes, and costs nothing until transformers is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.nn.hf.helpers import lively

import formwright
from formwright.nn.hf.save import save_pretrained_folder

SOURCE = Path(formwright.__file__).parents[1]
WITHOUT = "formwright.nn.hf.load, formwright.nn.hf.save, formwright.nn.hf.stock, formwright.nn.inherit"
LOAD = """
import sys
from transformers import AutoConfig, AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
assert type(model).__module__ == "formwright.nn.hf.models", type(model)
assert type(AutoConfig.from_pretrained(sys.argv[1])).__module__ == "formwright.nn.hf.config"
assert "transformers_modules" not in sys.modules
"""
ORDERS = {
    "formwright first": "import sys, formwright\nassert not {'torch', 'transformers'} & set(sys.modules)\n" + LOAD,
    "transformers first": "import transformers\nimport formwright\n" + LOAD,
    "auto classes first": "from transformers import AutoModel, Trainer\nimport formwright\n" + LOAD,
    "configuration alone": """
import sys, formwright
from transformers import AutoConfig
assert AutoConfig.from_pretrained(sys.argv[1]).model_type == "formwright"
""",
}


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", ["formwright first", *(pytest.param(name, marks=pytest.mark.long) for name in list(ORDERS)[1:])]
)
def test_auto_classes_know_our_models_whichever_is_imported_first(order: str, tmp_path: Path) -> None:
    save_pretrained_folder(lively("bert"), tmp_path / "model")
    done = run(ORDERS[order], str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
@pytest.mark.slow
def test_without_our_package_transformers_does_not_know_them(tmp_path: Path) -> None:
    save_pretrained_folder(lively("bert"), tmp_path / "model")
    done = run(LOAD, str(tmp_path / "model"))
    assert done.returncode == 1
    assert "trust_remote_code" in done.stderr


def test_importing_and_exporting_need_no_transformers() -> None:
    done = run(f"import sys, {WITHOUT}\nassert 'torch' in sys.modules\nassert 'transformers' not in sys.modules")
    assert done.returncode == 0, done.stderr
