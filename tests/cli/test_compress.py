"""A whole compression, from a folder with a pretrained model to folders with smaller ones that load."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.cli.compressing import everything, line, models, on_rows, setting, trials
from tests.cli.conftest import Run
from tests.cli.test_app import formwright_process
from tests.pipeline.compressions import (
    BERT,
    CHANNELS,
    HEADS,
    LAYERS,
    LENGTH,
    VIT,
    VOCABULARY,
    WIDTH,
    bert,
    squad,
    tokeniser,
    vit,
)
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import input_size, macs
from formwright.evaluate.final import openings
from formwright.nn.hf.save import load_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline import chosen_designs, model_times
from formwright.pipeline.delivered import delivered
from formwright.pipeline.model_times import ModelTimes
from formwright.pipeline.study_place import find
from formwright.tasks import load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.train.judge import judge
from formwright.train.prepare import prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.usefixtures("one_process")]
PLAN = ("teacher", "scores", "super-network", "search", "deliver", "in all")
ELSEWHERE = """
import json, sys
sys.path.append(sys.argv[1])  # without the files there that bring formwright in
import importlib.util
assert importlib.util.find_spec("formwright") is None
import torch, transformers
model = transformers.AutoModelForSequenceClassification.from_pretrained(sys.argv[2], trust_remote_code=True)
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2], trust_remote_code=True)
assert type(model).__module__.startswith("transformers_modules."), type(model)
with torch.no_grad():
    logits = model(**tokenizer(["0 1 a b c", "2 3 a a"], padding=True, return_tensors="pt")).logits
print(json.dumps([logits.tolist(), model.config.id2label]))
"""


def card_in(path: str) -> Card:
    model = load_folder(path)
    assert isinstance(model, TaskModel)
    return model.transformer.card


def check(facts: dict[str, Any], folder: Path, kind: str = "macs", length: int = LENGTH) -> None:
    """See that models load, are as small as was asked for, and score what is said."""
    first, *smaller = facts["models"]
    assert (first["name"], first["role"]) == ("teacher", "teacher")
    assert smaller
    for model in facts["models"]:
        card = card_in(model["path"])
        assert card.digest == model["digest"]
        assert {"macs", "latency_ms"} <= model["costs"].keys()
        readme = (Path(model["path"]) / "README.md").read_text(encoding="utf-8")
        assert str(folder) not in readme
        if model["role"] == "front":
            row = f"one row at {input_size(card, length)} in torch, one thread"
            assert f"| milliseconds of {row} | {model['costs']['latency_ms']:.2f} |" in readme
            assert f"| target | {kind} at most " in readme  # the target it was made for
            assert f"| multiply-accumulates at {input_size(card, length)} | {model['costs']['macs']:,.0f} |" in readme
            assert length == 128 or "at 128 tokens" not in readme
    for model in smaller:
        assert model["role"] == "front"
        name, share = model["name"].removesuffix("pct").rsplit("-", 1)
        assert name == kind
        if kind == "macs":
            assert model["costs"]["macs"] <= float(share) / 100 * first["costs"]["macs"]
    assert Path(facts["report"]).is_file()


def test_a_model_becomes_smaller_ones_and_nothing_is_done_twice(run: Run, tmp_path: Path) -> None:
    done = run(*line(tmp_path)).printed()
    told = [row.split()[0] for row in done.err.splitlines() if row.startswith("  ")]
    assert told == [word.split()[0] for word in PLAN]  # the plan, before anything else
    assert done.err.index("in all") < done.err.index("fine-tuning: step 30 of 30")
    for words in ("teacher", "macs-75pct", "test accuracy", "100%", "the page:"):
        assert words in done.out
    assert re.search(r"^drawn up at macs \S+ \([+-]\d+\.\d %\), \S+ \(", done.err, re.MULTILINE)
    before = everything(tmp_path / "out")
    again = run(*line(tmp_path))
    assert (again.code, again.out) == (0, done.out)
    assert "step" not in again.err
    assert everything(tmp_path / "out") == before
    facts = run(*line(tmp_path, "--json")).data
    check(facts, tmp_path)
    assert len(trials(tmp_path / "out")) == 5

    run(*line(tmp_path, "--batch", 8)).refused("holds another run: teacher.training.batch (16 there, 8 now)")
    assert everything(tmp_path / "out") == before
    assert run(*line(tmp_path, "--trials", 6)).code == 0  # only how far it goes
    assert len(trials(tmp_path / "out")) == 6


def test_the_scores_are_those_of_the_folders(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, "--json")).data
    task = load_task(str(tmp_path / "mine.csv"), text=("words",), label="b")
    for entry in facts["models"]:
        model = load_folder(entry["path"])
        assert isinstance(model, TaskModel)
        prepared = prepare(task, model.transformer.card, LENGTH, read_tokeniser(entry["path"]))
        assert judge(model, prepared, prepared.validation) == pytest.approx(entry["validation"])
        config = json.loads((Path(entry["path"]) / "config.json").read_text(encoding="utf-8"))
        assert list(config["id2label"].values()) == ["no", "yes"]
    judged = {trial["card"]: trial["metrics"] for trial in trials(tmp_path / "out")}
    best = facts["models"][1]
    mine = json.dumps(card_in(best["path"]).to_json(), sort_keys=True)
    assert judged[mine]["accuracy"] == best["validation"]["accuracy"]  # no training since


@pytest.mark.long
@pytest.mark.parametrize("order", ["l1", "none", "movement"])
def test_parts_may_be_put_in_another_order(order: str, run: Run, tmp_path: Path) -> None:
    check(run(*line(tmp_path, *setting(order=order), "--json")).data, tmp_path)


@pytest.mark.long
def test_the_hidden_size_may_shrink(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, *setting(hidden=[12, 8, 8]), "--trials", 20, "--json")).data
    check(facts, tmp_path)
    sizes = {Card.from_json(json.loads(trial["card"])).output_width for trial in trials(tmp_path / "out")}
    assert sizes == {8, 12, 16}


@pytest.mark.long
def test_the_largest_may_be_smaller_than_the_model(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, *setting(space__whole=False), "--trials", 10, "--json")).data
    check(facts, tmp_path)
    costs = [trial["metrics"]["macs"] for trial in trials(tmp_path / "out")]
    assert max(costs) < 0.9 * macs(BERT, LENGTH)


def test_milliseconds_may_be_a_target(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without noise, that takes a millisecond for ten thousand operations."""
    monkeypatch.setattr("formwright.nn.latency.quick", lambda length: lambda card: macs(card, length) / 1e4)
    targets = ("--target", "latency_ms=6", "--target", "macs=80%", "--target", "latency_ms=99")
    options = (*targets, *setting(hidden=[8]), "--json")
    done = run(*line(tmp_path, *options))
    assert "measuring the parts of the model on this machine" in done.err
    names = [model["name"] for model in done.data["models"]]
    assert names[:2] == ["teacher", "latency_ms-6"]
    assert "the target latency_ms 99 lies above the model's own" in done.err
    wanted = {"latency_ms-6", "macs-80pct", "latency_ms-99"}
    assert {remark.split()[0] for remark in done.data["remarks"]} == wanted - {*names}  # whose model has another name
    judged = {trial["card"]: trial["metrics"] for trial in trials(tmp_path / "out")}
    mine = json.dumps(card_in(done.data["models"][1]["path"]).to_json(), sort_keys=True)
    assert judged[mine]["latency_ms"] <= 6
    assert judged[mine]["latency_ms"] == pytest.approx(judged[mine]["macs"] / 1e4, rel=0.1)
    again = run(*line(tmp_path, *options))
    assert again.data == done.data
    assert "measuring" not in again.err


@pytest.mark.long
def test_delivered_models_may_be_trained_alone_in_the_end(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, *setting(deliver__epochs=1), "--json")).data
    check(facts, tmp_path)
    assert [model["steps"] for model in facts["models"][1:]] == [5] * len(facts["models"][1:])
    before = everything(tmp_path / "out")
    assert run(*line(tmp_path, *setting(deliver__epochs=1), "--json")).data == facts
    assert everything(tmp_path / "out") == before


def test_a_regression_is_compressed(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, "--json", task=on_rows(tmp_path, scored=True))).data
    check(facts, tmp_path)
    assert facts["models"][0]["validation"].keys() == {"pearson", "spearman"}


@pytest.mark.long
def test_questions_about_texts_are_compressed(run: Run, tmp_path: Path) -> None:
    task = ("--task", "squad", "--data", squad(tmp_path))
    facts = run(*line(tmp_path, *setting(teacher__epochs=1, super_network__epochs=0.5), "--json", task=task)).data
    check(facts, tmp_path)
    assert facts["models"][0]["validation"].keys() == {"exact", "span-f1"}


def test_a_model_that_sees_is_compressed(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, "--rows", 64, "--json", model=vit(tmp_path), task=("--task", "digits"))).data
    check(facts, tmp_path)
    assert facts["models"][0]["digest"] == VIT.digest


def test_rows_longer_than_the_model_reads_are_cut(run: Run, tmp_path: Path) -> None:
    facts = run(*line(tmp_path, "--length", 64, "--json")).data
    check(facts, tmp_path, length=32)
    assert facts["models"][0]["costs"]["macs"] == macs(BERT, 32)


@pytest.mark.long
def test_a_delivered_model_is_its_own_teacher_when_it_is_compressed_again(run: Run, tmp_path: Path) -> None:
    first = run(*line(tmp_path, "--json")).data["models"][0]
    again = run(*line(tmp_path, "--json", model=Path(first["path"]), out="again"))
    assert "fine-tuning" not in again.err
    assert "answers the task already" in again.err
    assert "scored on 64 batches" in again.err
    assert again.data["models"][0]["validation"] == first["validation"]


@pytest.mark.long
def test_force_begins_anew_and_keeps_the_record_of_test_openings(run: Run, tmp_path: Path) -> None:
    assert run(*line(tmp_path)).code == 0
    (tmp_path / "out" / "stray").touch()
    facts = run(*line(tmp_path, "--trials", 4, "--seed", 1, "--force", "--json")).data
    check(facts, tmp_path)
    assert len(trials(tmp_path / "out")) == 4
    assert not (tmp_path / "out" / "stray").exists()
    assert len(openings(tmp_path / "out" / "final" / "teacher")) == 2


@pytest.mark.long
def test_hours_are_planned_and_the_plan_is_kept(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = ModelTimes(step=0.1, answer=0.1, alone=0.1, asked=0.1, judging=0.1, slowed=0.1)
    monkeypatch.setattr(model_times, "measured_times", lambda *_: times)
    done = run(*line(tmp_path, "--hours", 0.015, "--json"))
    check(done.data, tmp_path)
    kept = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))
    first = [one["steps"] for one in kept["revisions"] if one["since"] == 0]
    assert f"{first[0]:,} steps of fine-tuning" in done.err
    assert kept["stage"] == "deliver"
    monkeypatch.setattr(model_times, "measured_times", lambda *_: pytest.fail("planned again"))
    assert run(*line(tmp_path, "--hours", 0.015, "--json")).data == done.data


def test_targets_without_a_model_are_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_designs, "_best_within", lambda *_: {})
    done = run(*line(tmp_path))
    assert done.code == 1
    for name in ("macs-75pct", "macs-50pct"):
        assert f"nothing is delivered for {name}: no design that was judged has macs<=" in done.err
    assert "teacher" in done.out


@pytest.mark.long
def test_seeds_decide(run: Run, tmp_path: Path) -> None:
    found = [
        run(*line(tmp_path, "--seed", seed, "--json", out=out)).data for seed, out in ((0, "a"), (1, "b"), (0, "c"))
    ]
    assert models(found[0]) == models(found[2])
    assert trials(tmp_path / "a") == trials(tmp_path / "c")
    assert trials(tmp_path / "a") != trials(tmp_path / "b")


@pytest.mark.long
def test_with_workers_and_every_runtime_and_elsewhere_without_this_package(tmp_path: Path) -> None:
    """As a user does it: in processes of their own, and then loaded where only transformers is."""
    bert(tmp_path)
    done = formwright_process(*line(tmp_path, "--workers", 2, "--json"))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    check(facts, tmp_path)
    for model in facts["models"]:
        assert model["costs"].keys() == {"macs", "latency_ms", "onnx_ms", "int8_ms"}
    with find(str(tmp_path / "out")).open() as opened:
        assert [model.name for model in delivered(opened).values()] == [model["name"] for model in facts["models"]]
    again = formwright_process(*line(tmp_path, "--workers", 1, "--json"))
    assert json.loads(again.stdout) == facts

    folder = facts["models"][1]["path"]
    there = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-S", "-I", "-c", ELSEWHERE, sysconfig.get_path("purelib"), folder]
    loaded = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    logits, labels = json.loads(loaded.stdout.splitlines()[-1])
    assert labels == {"0": "no", "1": "yes"}, loaded.stdout
    model, words = load_folder(folder), read_tokeniser(folder)
    ids = [[words.special.begin, *found, words.special.separator] for found in words.encode(["0 1 a b c", "2 3 a a"])]
    with torch.no_grad():
        wanted = [model(torch.tensor([row])) for row in ids]
    assert torch.tensor(logits) == pytest.approx(torch.cat(wanted), abs=1e-5)


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def family(name: str, folder: Path) -> Path:
    """Write a model with random weights and the tokeniser that its family has."""
    import transformers

    sizes = {"vocab_size": VOCABULARY, "max_position_embeddings": 34}
    usual = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS}
    usual |= {"num_attention_heads": HEADS, "intermediate_size": CHANNELS}
    made = {
        "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**sizes, **usual)),
        "distilbert": lambda: transformers.DistilBertModel(
            transformers.DistilBertConfig(**sizes, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=CHANNELS)
        ),
        "electra": lambda: transformers.ElectraModel(transformers.ElectraConfig(**sizes, **usual, embedding_size=8)),
    }
    transformers.set_seed(0)
    made[name]().save_pretrained(folder / name)
    words = _robertas() if name == "roberta" else tokeniser().tokenizer
    words.save(str(folder / name / "tokenizer.json"))
    return folder / name


def _robertas() -> Tokenizer:
    """Number special tokens as RoBERTa does, whose places are counted from behind the number of the padding."""
    known = ["<s>", "<pad>", "</s>", "<unk>", *_LETTERS]
    words = Tokenizer(WordLevel({word: number for number, word in enumerate(known)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return words


def pairs(folder: Path) -> tuple[object, ...]:
    """Write pairs of letters that are alike or not, and give the options that name them."""
    rng, lines = derive(0, "pairs"), ["first,second,alike"]
    for _ in range(100):
        first, second = ("abcdef"[index] for index in rng.integers(6, size=2))
        lines.append(f"{first} a {first},{second} b,{'yes' if first == second else 'no'}")
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ("--task", path, "--text", "first,second", "--label", "alike")


@pytest.mark.parametrize(
    "name", ["roberta", *(pytest.param(name, marks=pytest.mark.long) for name in ("distilbert", "electra"))]
)
def test_other_families_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    check(run(*line(tmp_path, "--json", model=family(name, tmp_path))).data, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bert", "roberta"])  # which tell two texts apart by types, or by separators alone
def test_pairs_of_texts_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    model = None if name == "bert" else family(name, tmp_path)
    check(run(*line(tmp_path, "--json", model=model, task=pairs(tmp_path))).data, tmp_path)
