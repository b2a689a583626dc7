"""Exported folders load in an environment of their own that has transformers and not this package."""

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.nn.hf.helpers import DESIGNS, lively, outputs

from formwright.nn.generate import GenerationSettings, generate
from formwright.nn.hf.config_fields import AUTO_CLASSES, class_name
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock

STOCK = ("bert", "bert-tokens", "bert-spans", "bert-masked", "bert-bare")
OURS = ("formwright", "__editable__")

# Everything this needs is written out here, for our tests cannot be imported there either.
LOADER = """
import importlib.util, json, sys
import torch, transformers
from safetensors.torch import load_file, save_file

assert importlib.util.find_spec("formwright") is None, "formwright must not be installed here"
inputs = load_file("inputs.safetensors")
ids, mask, pixels = inputs["ids"], inputs["mask"], inputs["pixels"]
results = {}
for job in json.load(open("jobs.json")):
    trust = {} if job["stock"] else {"trust_remote_code": True}
    model, report = getattr(transformers, job["auto"]).from_pretrained(
        job["folder"], output_loading_info=True, **trust
    )
    assert not any(report.values()), (job, report)
    place = type(model).__module__
    assert place.startswith("transformers.models.bert." if job["stock"] else "transformers_modules."), place
    with torch.no_grad():
        if job["family"] == "vision":
            found = model(pixel_values=pixels).logits
        elif job["family"] == "encoder-decoder":
            found = model(ids, attention_mask=mask, decoder_input_ids=ids.flip(1)).logits
            options = {"decoder_start_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "max_new_tokens": 6}
            results[job["key"] + "-text"] = model.generate(ids, attention_mask=mask, **options)[:, 1:].contiguous()
        else:
            given = model(ids, attention_mask=mask)
            if "start_logits" in given:
                found = torch.stack((given.start_logits, given.end_logits), -1)
            else:
                found = given.logits if "logits" in given else given.last_hidden_state
            found = found[mask.bool()] if found.dim() == 3 else found
    results[job["key"]] = found.contiguous()
save_file(results, "results.safetensors")
assert not [name for name in sys.modules if name.split(".")[0] == "formwright"]
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a virtual environment with every package of this one but ours, by links."""
    home = tmp_path_factory.mktemp("elsewhere") / "venv"
    venv.create(home, symlinks=True)
    (there,) = home.glob("lib/python*/site-packages")
    for here in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(here).iterdir():
            if not entry.name.startswith(OURS) and not (there / entry.name).exists():
                (there / entry.name).symlink_to(entry)
    return home / "bin" / "python"


def run(python: Path, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # -I: neither PYTHONPATH nor the current folder may bring the package back
    environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [str(python), "-I", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_our_package_is_not_there(python: Path, tmp_path: Path) -> None:
    done = run(python, "import transformers, torch, safetensors; import formwright", tmp_path)
    assert "ModuleNotFoundError: No module named 'formwright'" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_travelling_code_and_stock_classes_give_the_same_outputs(python: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file
    from tests.nn.hf.helpers import images, tokens

    ids, mask = tokens(1)
    save_file({"ids": ids, "mask": mask, "pixels": images(1)}, tmp_path / "inputs.safetensors")
    jobs, wanted, texts = [], {}, {}
    for name, (card, spec) in DESIGNS.items():
        auto = AUTO_CLASSES[class_name(card, spec.task if spec else None)]
        for stock in (False, True) if name in STOCK else (False,):
            key, model = f"{name}-{'stock' if stock else 'travel'}", lively(name)
            (export_stock if stock else save_pretrained_folder)(model, tmp_path / key)
            jobs.append({"key": key, "folder": key, "auto": auto, "family": card.family, "stock": stock})
            wanted[key] = outputs(model, name)
            if card.family == "encoder-decoder":
                texts[f"{key}-text"] = generate(model, ids, mask, GenerationSettings(begin=1, end=2, length=6))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    done = run(python, LOADER, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    found = load_file(tmp_path / "results.safetensors")
    for key, lines in texts.items():
        assert [row[: row.index(2)] if 2 in row else row for row in found.pop(key).tolist()] == lines, key
    assert texts
    assert set(found) == set(wanted)
    for key, expected in wanted.items():
        assert (found[key] - expected).abs().max() < 1e-5, key
        assert expected.std() > 0.01, key
    assert not torch.allclose(found["bert-travel"], outputs(lively("bert", seed=1), "bert"), atol=1e-3)
