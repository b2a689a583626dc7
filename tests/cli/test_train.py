"""`formwright train` as a user sees it."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.cli.conftest import Outcome, Run
from tests.cli.training import BOTH, DECODER, ENCODER, QUICK, TRAINING_ROWS, VISION, card_file, on_table, table

from formwright.arch.card import Card
from formwright.cost import params
from formwright.nn.hf.imported import load_folder
from formwright.nn.task_model import TaskModel
from formwright.tasks import load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.train.judge import judge
from formwright.train.prepare import prepare

STILL = ("--steps", 1, "--learning-rate", "1e-12", "--dropout", 0)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def scores_of_folder(folder: Path, mine: Path) -> dict[str, float]:
    """Score the model of a folder on the validation rows of a user's own file."""
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    task = load_task(str(mine), text=("words",), label="b")
    prepared = prepare(task, model.transformer.card, 16, read_tokeniser(folder))
    return judge(model, prepared, prepared.validation)


def on_mine(run: Run, folder: Path, *options: object, out: str = "out") -> Outcome:
    mine = folder / "mine.csv"
    done = run(
        "train", card_file(folder), *on_table(mine if mine.exists() else table(folder)), *options, "--out", folder / out
    ).printed()
    return done


def test_json_has_the_design_the_task_and_what_training_came_to(run: Run, tmp_path: Path) -> None:
    done = on_mine(run, tmp_path, "--steps", 7, "--json")
    facts = done.data
    assert Card.from_json(facts["card"]) == ENCODER
    assert (facts["name"], facts["digest"], facts["params"]) == ("small", ENCODER.digest, params(ENCODER))
    assert (facts["task"], facts["steps"], len(facts["losses"])) == (str(tmp_path / "mine.csv"), 7, 7)
    assert facts["metrics"].keys() >= {"accuracy"}
    assert facts["test"] is None
    assert facts["recipe"]["learning_rate"] == 1e-3
    assert 0 <= facts["padding"] < 1
    assert facts["model"] == str(tmp_path / "out" / "model")
    assert done.err.splitlines()[-1].startswith("training: step 7 of 7, loss ")


def test_a_person_sees_the_scores_and_where_the_model_is(run: Run, tmp_path: Path) -> None:
    done = on_mine(run, tmp_path, "--steps", 3)
    measured = ("validation accuracy", "always answering", "95 % interval", "loss at the end", "steps", "parameters")
    for words in ("small on", *measured, "padding"):
        assert words in done.out
    assert f"the model is in {tmp_path / 'out' / 'model'}" in done.out.replace("\n", " ")


def test_the_model_folder_loads_and_scores_the_same(run: Run, tmp_path: Path) -> None:
    facts = on_mine(run, tmp_path, "--steps", 20, "--test", "--json").data
    folder = tmp_path / "out" / "model"
    assert scores_of_folder(folder, tmp_path / "mine.csv") == facts["metrics"]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"validation accuracy | {facts['metrics']['accuracy']:.4f} (" in readme
    assert f"test accuracy | {facts['test']['accuracy']:.4f} (" in readme
    assert "trained from | small" in readme
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert set(config["id2label"].values()) == {"no", "yes"}


def test_the_test_rows_are_opened_once_and_that_is_recorded(run: Run, tmp_path: Path) -> None:
    first = on_mine(run, tmp_path, "--steps", 3, "--test", "--json").data
    record = tmp_path / "out" / "final" / "test-openings.json"
    (entry,) = json.loads(record.read_text(encoding="utf-8"))
    assert (entry["metrics"], entry["rows"]) == (first["test"], 10)
    before = record.read_bytes()
    assert on_mine(run, tmp_path, "--steps", 3, "--test", "--json").data["test"] == first["test"]
    assert record.read_bytes() == before


def test_a_training_is_shown_and_resumed_by_its_folder(run: Run, tmp_path: Path) -> None:
    facts = on_mine(run, tmp_path, "--steps", 3, "--json").data
    shown = run("show", tmp_path / "out", "--json").data
    assert (shown["stages"], shown["result"]) == ([{"name": "train", "done": True}], facts)
    assert "validation accuracy" in run("show", tmp_path / "out").out
    assert run("resume", tmp_path / "out", "--json").data == facts
    (tmp_path / "out" / "train" / "done.json").unlink()
    assert f"resume {tmp_path / 'out'}" in run("show", tmp_path / "out").out


def test_an_option_is_set_by_its_path_and_a_dry_run_writes_nothing(run: Run, tmp_path: Path) -> None:
    line = ("train", card_file(tmp_path), *on_table(table(tmp_path)), "--out", tmp_path / "out", "--json")
    plan = run(*line, "--set", "training.steps=3", "--dry-run").data
    assert plan["pipeline"]["stages"]["train"]["training"]["steps"] == 3
    assert not (tmp_path / "out").exists()
    assert run(*line, "--set", "training.steps=3").data["steps"] == 3
    run(*line, "--set", "training.stepps=3").refused("steps")


def test_seeds_decide(run: Run, tmp_path: Path) -> None:
    first, same, other = (
        on_mine(run, tmp_path, "--steps", 4, "--seed", seed, "--json", out=name).data["losses"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == same != other


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (("--epochs", 2), 2 * TRAINING_ROWS // 8),
        (("--epochs", 0.5), TRAINING_ROWS // 16),
        (("--epochs", 1, "--set", "training.accumulate=2"), TRAINING_ROWS // 16),
        (("--epochs", 1, "--rows", 24), 3),
        (("--epochs", 0.001), 1),
        (("--epochs", 1, "--rows", 20), 3),  # every row is seen, in a last batch of four
        (("--epochs", 1, "--rows", 20, "--set", "training.accumulate=2"), 2),
        (("--epochs", 1.1), 11),
    ],
    ids=str,
)
def test_epochs_count_the_rows(options: tuple[object, ...], steps: int, run: Run, tmp_path: Path) -> None:
    assert on_mine(run, tmp_path, *options, "--judge-every", 0, "--json").data["steps"] == steps


def test_training_stops_when_judgements_do_not_improve(run: Run, tmp_path: Path) -> None:
    still = ("--steps", 40, "--learning-rate", "1e-12", "--judge-every", 2)
    facts = on_mine(run, tmp_path, *still, "--patience", 3, "--json").data
    assert facts["steps"] == 8  # the first judgement, and three that are no better
    assert on_mine(run, tmp_path, *still, "--patience", 1, "--json", out="other").data["steps"] == 4


def test_a_finished_run_is_not_trained_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = on_mine(run, tmp_path, "--steps", 6, "--json").data
    before = weights(tmp_path / "out")

    def training(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("formwright.train.loop._step", training)
    done = on_mine(run, tmp_path, "--steps", 6, "--json")
    assert done.data == first  # the seconds too: they are those of training, not those of this command
    assert first["seconds"] > 0
    assert done.err == ""
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(tmp_path / "out").items())


def test_force_begins_anew(run: Run, tmp_path: Path) -> None:
    on_mine(run, tmp_path, "--steps", 6)
    again = on_mine(run, tmp_path, "--steps", 4, "--force", "--json")
    assert again.data["steps"] == 4
    assert "step 4 of 4" in again.err


def test_a_run_has_a_default_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    card_file(tmp_path)
    table(tmp_path)
    done = run("train", "./small.json", *on_table(Path("mine.csv")), "--steps", 1, "--json")
    assert done.data["model"] == "trained/small-mine/model"
    assert (tmp_path / "trained" / "small-mine" / "model" / "config.json").is_file()


@pytest.mark.parametrize("scored", [False, True])
def test_a_models_folder_goes_on_from_its_weights_with_its_tokeniser(scored: bool, run: Run, tmp_path: Path) -> None:
    mine, out, other = on_table(table(tmp_path, scored=scored)), tmp_path / "out", tmp_path / "again"
    first = run("train", card_file(tmp_path), *mine, "--steps", 30, "--out", out, "--json").data
    again = run("train", out / "model", *mine, *STILL, "--out", other, "--json").data
    assert first["metrics"].keys() >= ({"pearson", "spearman"} if scored else {"accuracy"})
    assert again["metrics"] == pytest.approx(first["metrics"], abs=1e-6 if scored else 0)
    assert again["recipe"]["learning_rate"] == 1e-12
    old, new = weights(out), weights(other)
    assert all(torch.allclose(old[name], new[name], atol=1e-6) for name in old)
    assert len({(folder / "model" / "tokenizer.json").read_bytes() for folder in (out, other)}) == 1


def test_another_question_gets_a_fresh_head(run: Run, tmp_path: Path) -> None:
    on_mine(run, tmp_path, "--steps", 10)
    other = table(tmp_path, "scored.csv", scored=True)
    out = tmp_path / "again"
    done = run("train", tmp_path / "out" / "model", *on_table(other), *STILL, "--out", out, "--json")
    assert done.data["metrics"].keys() == {"pearson", "spearman"}
    old, new = weights(tmp_path / "out"), weights(out)
    kept = [name for name in old if name.startswith("transformer.")]
    assert all(torch.allclose(old[name], new[name], atol=1e-6) for name in kept)
    assert new["head.output.weight"].shape == (1, 16)


def test_a_model_exported_without_a_tokeniser_cannot_read_text(run: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    assert run("export", card_file(tmp_path), "--to", "hf", "--out", bare).code == 0
    run("train", bare, *on_table(table(tmp_path)), *STILL, "--out", tmp_path / "out").refused("token")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--pretrain", "self"),
        ("--pretrain", "pydoc"),
        ("--pretrain", "pydoc", "--set", "pretraining.next_sentence=true"),
    ],
    ids=str,
)
def test_pretraining_changes_where_training_begins(options: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    rate = ("--learning-rate", 0.0003)  # that of pretrained cards
    plain = on_mine(run, tmp_path, "--steps", 4, *rate, "--json", out="plain").data
    pretrained = on_mine(run, tmp_path, "--steps", 4, *options, "--pretrain-steps", 3, "--json")
    assert pretrained.data["steps"] == 4
    assert pretrained.data["recipe"] == plain["recipe"]
    assert pretrained.data["losses"] != plain["losses"]
    assert "pretraining: step 3 of 3" in pretrained.err
    assert "training: step 4 of 4" in pretrained.err
    assert not (tmp_path / "out" / "checkpoints" / "train").exists()  # of what is done nothing is left


@pytest.mark.slow
def test_a_builtin_task_and_the_first_rows_of_it(run: Run, tmp_path: Path) -> None:
    done = run(
        "train",
        card_file(tmp_path),
        *("--task", "mini-glue/sst2", "--rows", 64, "--epochs", 1, *QUICK, "--json", "--out", tmp_path / "out"),
    )
    assert (done.data["task"], done.data["steps"]) == ("mini-glue/sst2", 8)
    assert 0 < done.data["metrics"]["accuracy"] < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("card", "task", "metrics", "head"),
    [
        (VISION, "digits", "accuracy", "FormwrightForImageClassification"),
        (DECODER, "pydoc/causal", "perplexity", "FormwrightForCausalLM"),
        (BOTH, "translation", "perplexity same-text", "FormwrightForSeq2SeqLM"),
        (ENCODER, "pydoc/masked", "perplexity", "FormwrightForMaskedLM"),
    ],
    ids=["digits", "causal", "translation", "masked"],
)
def test_every_family_trains_and_loads(
    card: Card, task: str, metrics: str, head: str, run: Run, tmp_path: Path
) -> None:
    options = ("--task", task, *QUICK, "--json", "--out")
    first = run("train", card_file(tmp_path, card), "--steps", 5, *options, tmp_path / "out").printed()
    assert first.data["metrics"].keys() == set(metrics.split())
    folder = tmp_path / "out" / "model"
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    assert model.transformer.card == card
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"] == [head]
    again = run("train", folder, *STILL, *options, tmp_path / "again").printed()
    assert again.data["metrics"] == pytest.approx(first.data["metrics"], rel=1e-5)
