"""`formwright export` as a user sees it."""

import json
from pathlib import Path

import pytest
import torch
from tests.cli.conftest import Run

from formwright.nn.hf.imported import load_folder
from formwright.nn.task_model import TaskModel
from formwright.space.zoo import load_card

SEQUENCE = ("--task", "sequence-classification")
NO_LABELS = ("-1", "2.5", "", "a,,b", "9" * 7, "9" * 5000)  # neither a number of labels nor their names
IDS = torch.tensor([[101, 2023, 2003, 102]])


def test_a_card_becomes_a_folder_and_the_fresh_weights_are_named(run: Run, tmp_path: Path) -> None:
    done = run(
        "export", "bert-tiny", "--to", "hf", "--out", tmp_path / "model", *SEQUENCE, "--labels", "no,yes,perhaps"
    )
    assert (done.code, done.err) == (0, "")
    assert "freshly initialised" in done.out
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert list(config["id2label"].values()) == ["no", "yes", "perhaps"]
    model = load_folder(tmp_path / "model")
    assert isinstance(model, TaskModel)
    assert model.transformer.card == load_card("bert-tiny")
    assert "fresh" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_a_folder_goes_to_stock_and_back_unchanged(run: Run, tmp_path: Path) -> None:
    ours, stock, again = (tmp_path / name for name in ("ours", "stock", "again"))
    assert run("export", "bert-tiny", "--to", "hf", "--out", ours, *SEQUENCE, "--labels", "3", "--seed", "5").code == 0
    done = run("export", ours, "--to", "stock", "--out", stock, "--json")
    assert done.data == {"folder": str(stock), "to": "stock", "parameters": 4_386_307, "fresh": None}
    assert run("export", stock, "--to", "hf", "--out", again).code == 0
    with torch.no_grad():
        assert torch.equal(load_folder(ours)(IDS), load_folder(again)(IDS))


def test_seeds_decide_fresh_weights(run: Run, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run("export", "bert-tiny", "--to", "hf", "--out", tmp_path / name, "--seed", seed).code == 0
    one, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert one == same != other


def test_a_head_can_be_added_to_a_model_without_one(run: Run, tmp_path: Path) -> None:
    bare, headed = tmp_path / "bare", tmp_path / "headed"
    assert run("export", "bert-tiny", "--to", "hf", "--out", bare).code == 0
    done = run("export", bare, "--to", "hf", "--out", headed, "--task", "token-classification", "--labels", "4")
    assert "the head's weights are freshly initialised" in done.out
    model = load_folder(headed)
    assert isinstance(model, TaskModel)
    with torch.no_grad():
        assert torch.equal(model.transformer(IDS).hidden, load_folder(bare)(IDS).hidden)
        assert model(IDS).shape == (1, 4, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("flexibert-mini", "--to", "stock"), "no BERT class can express this model:\n  positions are relative"),
        (("flexibert", "--to", "hf"), "is a search space"),
        (("bert-tinny", "--to", "hf"), "Nearest: 'bert-tiny'"),
        (("bert-tiny", "--to", "hf", "--int8"), "--int8 goes with --to onnx and --to openvino"),
        (("bert-tiny", "--to", "hf", "--task", "poetry"), "no task is called 'poetry'; tasks are sequence-class"),
        (("bert-tiny", "--to", "hf", "--task", "causal-lm"), "causal-lm needs a design of family decoder"),
        (("bert-tiny", "--to", "hf", "--labels", "no,yes"), "--task"),
        *((("bert-tiny", "--to", "hf", *SEQUENCE, "--labels", labels), "label") for labels in NO_LABELS),
        (("bert-tiny", "--to", "hf", *SEQUENCE, "--labels", "0"), "at least one label"),
        (("bert-tiny", "--to", "hf", "--seed", 2**63), "--seed"),
        (("x" * 500, "--to", "hf"), "no space, card or file is called"),
        (("bert-tiny", "--to", "hf", *SEQUENCE, "--labels", "a,a"), "different names"),
    ],
)
def test_a_users_error_is_one_message_and_leaves_nothing(
    arguments: tuple[object, ...], message: str, run: Run, tmp_path: Path
) -> None:
    run("export", *arguments, "--out", tmp_path / "model").refused(message)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_unasked(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert run("export", "bert-tiny", "--to", "hf", "--out", out).code == 0
    before = (out / "model.safetensors").read_bytes()
    run("export", "bert-tiny", "--to", "hf", "--out", out, "--seed", "1").refused("--force")
    assert (out / "model.safetensors").read_bytes() == before
    assert run("export", "bert-tiny", "--to", "hf", "--out", out, "--seed", "1", "--force").code == 0
    assert (out / "model.safetensors").read_bytes() != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep", encoding="utf-8")
    assert run("export", "bert-tiny", "--to", "hf", "--out", tmp_path / "mine", "--force").code == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_folder_with_another_head_is_not_given_a_second(run: Run, tmp_path: Path) -> None:
    assert run("export", "bert-tiny", "--to", "hf", "--out", tmp_path / "model", *SEQUENCE).code == 0
    run("export", tmp_path / "model", "--to", "hf", "--out", tmp_path / "again", "--task", "masked-lm").refused(
        "has a head for sequence-classification with 2 labels already"
    )


def test_a_folder_of_pickles_is_refused(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    folder.mkdir()
    config = {"model_type": "bert", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 1, "intermediate_size": 8}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "pytorch_model.bin").write_bytes(b"")
    run("export", folder, "--to", "hf", "--out", tmp_path / "out").refused("pickles can run code and are not read")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "file"), [("onnx", "model.onnx"), pytest.param("openvino", "model.xml", marks=pytest.mark.long)]
)
def test_a_runtime_gets_a_checked_file(form: str, file: str, run: Run, tmp_path: Path) -> None:
    labels = ("--labels", "no,yes")
    done = run("export", "bert-tiny", "--to", form, "--out", tmp_path / "model", *SEQUENCE, *labels, "--json").printed()
    assert 0 < done.data["largest_difference"] < 1e-3
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "no", "1": "yes"}
    assert config["label2id"] == {"no": 0, "yes": 1}
    assert {file, "card.json"} <= {path.name for path in (tmp_path / "model").iterdir()}
    assert run("export", "bert-tiny", "--to", form, "--out", tmp_path / "model").code == 2
