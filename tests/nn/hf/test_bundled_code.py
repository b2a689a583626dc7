"""The code that travels is complete, flat, and free of this package."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import transformers
from transformers.dynamic_module_utils import get_imports, get_relative_import_files

from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.nn.hf import models
from formwright.nn.hf.bundled_code import auto_map, bundled_files, foreign_operations, write_code
from formwright.nn.hf.config_fields import AUTO_CLASSES

FILES = bundled_files()
ALLOWED = {"numpy", "torch", "transformers"} | set(sys.stdlib_module_names)
SPEAKS_TO_TRANSFORMERS = {f"formwright_nn_hf_{name}.py" for name in ("base", "config", "models")}


def test_transformers_finds_every_file_and_no_other(tmp_path: Path) -> None:
    write_code(tmp_path)
    entry = tmp_path / "formwright_nn_hf_models.py"
    found = {path.rsplit("/", 1)[-1] for path in get_relative_import_files(entry)}
    assert found | {entry.name} == set(FILES)
    imported = {name for file in tmp_path.iterdir() for name in get_imports(file)}
    assert imported <= ALLOWED


def test_the_map_names_classes_that_exist() -> None:
    for auto, place in auto_map().items():
        file, name = place.split(".")
        assert f"{file}.py" in FILES
        assert isinstance(getattr(importlib.import_module(file.replace("_", ".")), name), type)
        assert hasattr(transformers, auto)
    ours = {name for name, found in vars(models).items() if getattr(found, "__module__", "") == models.__name__}
    assert set(AUTO_CLASSES) == {name for name in ours if name.startswith("Formwright")}


def test_every_file_is_licensed_parsed_and_knows_the_state_of_the_code() -> None:
    using = {name for name, text in FILES.items() if re.search(r"^\s*(from|import) transformers", text, re.MULTILINE)}
    assert using == SPEAKS_TO_TRANSFORMERS
    for name, text in FILES.items():
        assert "Copied from Formwright" in text.splitlines()[0], name
        assert "Apache License" in text.splitlines()[0], name
        ast.parse(text)
        assert "from formwright" not in text, name
    lines = {text.splitlines()[2] for text in FILES.values()}
    assert len(lines) == 1
    assert re.fullmatch("# Digest of all files: [0-9a-f]{64}", lines.pop())


CARRIED = """
import torch
from carried.formwright_arch_card import Card
from carried.formwright_nn_build import build

mixer = {"type": "token-shift", "steps": 2}
layer = {"type": "block", "width": 8, "mixer": mixer}
embedding = {"type": "tokens", "vocabulary": 9, "width": 8}
card = Card.from_json({"schema": 1, "encoder": {"embedding": embedding, "layers": [layer]}})
model = build(card)
assert model(torch.zeros(1, 4, dtype=torch.long)).hidden.shape == (1, 4, 8)
print(type(model.encoder.layers[0].mixer).__module__)
"""


@pytest.mark.slow
def test_operations_of_other_packages_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "examples" / "plugin")
    kind = importlib.import_module("formwright_thumb.token_shift").TokenShift
    card = Card(Stack(TokenEmbedding(9, 8), (Block(8, kind(2)),)))
    assert foreign_operations(card) == (kind,)
    files = bundled_files(foreign=foreign_operations(card))
    carried = {"formwright_thumb_token_shift.py", "formwright_thumb_token_shift_module.py"}
    assert set(files) - set(FILES) == carried
    assert not any("Copied from Formwright" in files[name] for name in carried)
    assert not any("from formwright" in text for text in files.values())
    write_code(tmp_path / "carried", foreign=(kind,))
    shown = subprocess.run(
        [sys.executable, "-c", CARRIED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shown.strip() == "carried.formwright_thumb_token_shift_module"
