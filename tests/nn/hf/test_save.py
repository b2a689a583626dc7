"""The exported folder: what is in it, and that transformers loads the same model from it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from safetensors import SafetensorError, safe_open
from tests.nn.hf.helpers import DESIGNS, VOCABULARY, hf_outputs, lively, outputs
from tokenizers import models, pre_tokenizers, processors

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.cost import macs
from formwright.nn.build import build
from formwright.nn.hf.config_fields import AUTO_CLASSES, class_name
from formwright.nn.hf.save import save_pretrained_folder
from formwright.space.zoo import load_card


def auto_class(name: str) -> str:
    card, spec = DESIGNS[name]
    return AUTO_CLASSES[class_name(card, spec.task if spec else None)]


def word_tokenizer() -> tokenizers.Tokenizer:
    """Make a tokenizer that knows words w5, w6, ... by their numbers."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: number for number, word in enumerate([*special, *(f"w{index}" for index in range(5, VOCABULARY))])}
    result = tokenizers.Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    result.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    result.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    result.add_special_tokens(special)
    return result


@pytest.mark.parametrize("name", DESIGNS)
def test_auto_classes_load_the_same_model(name: str, tmp_path: Path) -> None:
    model = lively(name)
    save_pretrained_folder(model, tmp_path / "model")
    loaded, report = getattr(transformers, auto_class(name)).from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(report.values()), report
    assert type(loaded).__module__.startswith("formwright.nn.hf."), "code from the folder must not run unasked"
    wanted = outputs(model, name)
    assert (hf_outputs(loaded, name) - wanted).abs().max() < 1e-5
    assert wanted.std() > 0.01


@pytest.mark.parametrize("name", ["bert", "varied", "translator", "viewer"])
def test_the_configuration_is_what_transformers_would_write(name: str, tmp_path: Path) -> None:
    save_pretrained_folder(lively(name), tmp_path / "model")
    written = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    transformers.AutoConfig.from_pretrained(tmp_path / "model").save_pretrained(tmp_path / "again")
    again = json.loads((tmp_path / "again" / "config.json").read_text(encoding="utf-8"))
    again.pop("transformers_version")
    if not written["is_encoder_decoder"]:  # which is the default, and left out
        written.pop("is_encoder_decoder")
    assert again == written


def test_the_folder_holds_everything(tmp_path: Path) -> None:
    folder = save_pretrained_folder(
        lively("bert"),
        tmp_path / "model",
        labels=["no", "yes", "perhaps"],
        scores={"accuracy": 0.91},
        lineage={"parent": "bert-base"},
    )
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "card.json", "config.json", "model.safetensors", "formwright_nn_hf_models.py"} <= names
    assert Card.loads((folder / "card.json").read_bytes()) == DESIGNS["bert"][0]
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    assert all(fact in text for fact in ("| accuracy | 0.91 |", "| parent | bert-base |", "| parameters |"))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_pipelines_classify_with_label_names_and_fill_masks(tmp_path: Path) -> None:
    save_pretrained_folder(
        lively("bert"), tmp_path / "classes", tokenizer=word_tokenizer(), labels=["no", "yes", "perhaps"]
    )
    classify = transformers.pipeline("text-classification", model=str(tmp_path / "classes"), device="cpu")
    one, other = classify(["w5 w6 w7", "w8"], batch_size=2)
    assert {one["label"], other["label"]} <= {"no", "yes", "perhaps"}
    assert classify("w8")[0] == pytest.approx(other)
    save_pretrained_folder(lively("bert-masked"), tmp_path / "masked", tokenizer=word_tokenizer())
    fill = transformers.pipeline("fill-mask", model=str(tmp_path / "masked"), device="cpu")
    found = fill("w5 [MASK] w7")
    with torch.no_grad():
        scores = lively("bert-masked")(torch.tensor([[2, 5, 4, 7, 3]]))[0, 2].softmax(-1)
    assert [answer["token"] for answer in found] == scores.topk(5).indices.tolist()
    assert found[0]["score"] == pytest.approx(float(scores.max()), abs=1e-5)


def test_a_tokenizer_tells_the_padding_token(tmp_path: Path) -> None:
    save_pretrained_folder(lively("bert"), tmp_path / "model", tokenizer=word_tokenizer())
    assert transformers.AutoConfig.from_pretrained(tmp_path / "model").pad_token_id == 0
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert (again.mask_token, again.pad_token, again.model_max_length) == ("[MASK]", "[PAD]", 20)
    assert again.model_input_names == ["input_ids", "token_type_ids", "attention_mask"]  # it knows two types


@pytest.mark.parametrize(
    ("name", "labels", "message"),
    [
        ("bert", ["a", "b"], "has 3 labels"),
        ("bert", ["a", "b", "b"], "different names"),
        ("bert-masked", ["a", "b"], "masked-lm has none to name"),
        ("bert-bare", ["a", "b"], "a model without a head has none to name"),
    ],
)
def test_labels_that_do_not_fit_are_refused(name: str, labels: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=message):
        save_pretrained_folder(lively(name), tmp_path / "model", labels=labels)
    assert not list(tmp_path.iterdir())


def test_a_failed_export_leaves_nothing_and_weights_are_readable(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="no tokenizer"):
        save_pretrained_folder(lively("bert"), tmp_path / "model", tokenizer=7)
    assert not list(tmp_path.iterdir())
    folder = save_pretrained_folder(lively("bert"), tmp_path / "model")
    modes = {(folder / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1


def test_a_full_disk_is_a_users_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("formwright.nn.hf.save.save_file", fail)
    with pytest.raises(IllegalInput, match=r"cannot write model\.safetensors: No space left"):
        save_pretrained_folder(lively("bert"), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["bert", "viewer"])
def test_the_programs_of_a_model_card_load_the_model_and_what_prepares_its_inputs(name: str, tmp_path: Path) -> None:
    tokenizer = word_tokenizer() if name == "bert" else None
    folder = save_pretrained_folder(lively(name), tmp_path / "model", tokenizer=tokenizer)
    programs = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 2
    assert ["trust_remote_code" in program for program in programs] == [False, True]
    found: dict[str, Any] = {"FOLDER": str(folder)}
    exec(programs[0], found)
    assert type(found["model"]).__name__ in AUTO_CLASSES
    inputs = found["prepare"](["w5 w6"] if name == "bert" else np.zeros((8, 8, 3), np.uint8), return_tensors="pt")
    with torch.no_grad():
        assert found["model"].eval()(**inputs).logits.shape[0] == 1


def test_a_model_card_names_nothing_that_the_folder_lacks(tmp_path: Path) -> None:
    folder = save_pretrained_folder(lively("bert"), tmp_path / "model")
    assert "prepare" not in (folder / "README.md").read_text(encoding="utf-8")


def test_operations_are_counted_at_the_length_that_the_model_was_judged_with(tmp_path: Path) -> None:
    model = build(load_card("bert-tiny"))
    for name, evaluation, length in (("one", {"length": 24}, 24), ("two", None, 128)):
        save_pretrained_folder(model, tmp_path / name, evaluation=evaluation)
        readme = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        assert f"| multiply-accumulates at {length} tokens | {macs(load_card('bert-tiny'), length):,} |" in readme
