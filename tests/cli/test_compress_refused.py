"""What cannot be compressed: exit 2, a message that says what to do, and nothing half-written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.blocks import line as blocks_line
from tests.cli.compressing import everything, line, setting
from tests.cli.conftest import Run
from tests.cli.training import table
from tests.pipeline.compressions import bert
from tests.pipeline.test_start_model import change

from formwright.cost import macs
from formwright.pipeline import model_times
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.model_times import ModelTimes
from formwright.study.folder_lock import LOCK, alone_in

Make = Callable[[Path], list[str]]


def on_file(path: Path, label: str = "b") -> tuple[object, ...]:
    return ("--task", path, "--text", "words", "--label", label)


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


def one_class(folder: Path) -> list[str]:
    rows = "\n".join(f"word {number},yes" for number in range(40))
    (folder / "dull.csv").write_text(f"words,b\n{rows}\n", encoding="utf-8")
    return line(folder, task=on_file(folder / "dull.csv"))


def other_tokeniser(folder: Path) -> list[str]:
    path = bert(folder) / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["vocab"]["zebra"] = 200
    path.write_text(json.dumps(content), encoding="utf-8")
    return line(folder)


def first_of_one_class(folder: Path) -> list[str]:
    rows = [f"word {number},{'yes' if number < 40 else 'no'}" for number in range(200)]
    (folder / "sorted.csv").write_text("\n".join(["words,b", *rows]) + "\n", encoding="utf-8")
    return line(folder, "--rows", 1, task=on_file(folder / "sorted.csv"))


def no_numbers(folder: Path) -> list[str]:
    path = bert(folder) / "model.safetensors"
    weights = load_file(path)
    weights["embeddings.LayerNorm.weight"][3] = torch.nan
    save_file(weights, path)
    return line(folder)


def other_type(folder: Path) -> list[str]:
    change(bert(folder), model_type="gpt2")
    return line(folder)


def with_options(*options: object) -> Make:
    return lambda folder: line(folder, *options)


FAULTS: dict[str, tuple[Make, str]] = {
    "wrong label column": (
        lambda folder: line(folder, task=on_file(table(folder), "c")),
        "no column called 'c'. The columns are: words, b",
    ),
    "one class": (one_class, "class"),
    "rows of one class": (first_of_one_class, "that are trained on are all of one class"),
    "other tokeniser": (other_tokeniser, "does not fit the model: it has 201 tokens, and the model knows 80"),
    "no numbers": (no_numbers, "contain NaN or infinity: 1 tensors"),
    "other type": (other_type, "gpt2"),
    "no model": (
        lambda folder: line(folder, model=folder / "absent"),
        "absent is not a folder; name the folder that holds config.json and model.safetensors",
    ),
    "no task": (lambda folder: line(folder, task=("--task", "mini-glue/sst3")), "no task called 'mini-glue/sst3'"),
    "too small": (with_options("--target", "macs=10%"), "sub-networks of this model reach from 2.893e+04 (25.2%)"),
    "no target": (with_options("--target", "speed=3"), "speed"),
    "no searcher": (with_options(*setting(search__searcher="linus")), "'linas'"),
    "no order": (with_options(*setting(scores__order="l2")), "first-order, movement, l1, none"),
    "no size": (with_options(*setting(space__hidden=[8, "wide"])), "wide"),
    "no such size": (with_options(*setting(hidden=[8, 99])), "16"),
    "no rate": (with_options(*setting(super_network__learning_rate=-1.0)), "learning rate"),
    "no device": (with_options("--device", "abacus"), "abacus"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_before_anything_is_written(name: str, run: Run, tmp_path: Path) -> None:
    make, told = FAULTS[name]
    arguments = make(tmp_path)
    before = everything(tmp_path)
    run(*arguments).refused(told, "formwright: ")
    assert everything(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_a_latency_out_of_reach_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formwright.nn.latency.quick", lambda length: lambda card: macs(card, length) / 1e4)
    run(*line(tmp_path, "--target", "latency_ms=0.5")).refused(
        "the target latency_ms 0.5 (4.3% of the model's) cannot be met: sub-networks of this model reach "
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_folder_with_foreign_files_is_left_alone(force: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("dear diary", encoding="utf-8")
    (tmp_path / "out" / "plan.json").write_text("mine", encoding="utf-8")
    arguments = line(tmp_path, *force)
    before = everything(tmp_path)
    run(*arguments).refused(f"{tmp_path / 'out'} holds files that are no run", "--out")
    assert everything(tmp_path) == before


def begun(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a compression that is stopped before its first step."""
    with monkeypatch.context() as patch:
        patch.setattr(FineTune, "make", stop)
        assert run(*line(folder)).code == 130
    assert {"run.json", "plan.json"} <= everything(folder / "out").keys()


@pytest.mark.parametrize("force", [(), ("--force",), ("--seed", 1, "--force")])
def test_a_folder_in_use_is_left_alone(
    force: tuple[object, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(run, tmp_path, monkeypatch)
    before = everything(tmp_path)
    with alone_in(tmp_path / "out"):
        run(*line(tmp_path, *force)).refused(f"another process works in {tmp_path / 'out'}; wait for it, or name")
    assert everything(tmp_path) == before


def test_a_folder_in_which_another_process_has_just_begun_is_left_alone(run: Run, tmp_path: Path) -> None:
    with alone_in(tmp_path / "out"):
        run(*line(tmp_path)).refused("another process works in")
    assert everything(tmp_path / "out").keys() == {LOCK}


def test_what_has_changed_since_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(run, tmp_path, monkeypatch)
    weights = load_file(tmp_path / "bert" / "model.safetensors")
    weights["embeddings.LayerNorm.weight"] += 1
    save_file(weights, tmp_path / "bert" / "model.safetensors")
    run(*line(tmp_path, *setting(order="l1"))).refused("scores.order", "the weights")


@pytest.mark.parametrize("slowed", [1.0, 10.0])
def test_too_few_hours_are_not_refused(
    slowed: float, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minimum is planned, and the message tells how long it takes."""
    times = ModelTimes(step=3.0, answer=1.0, alone=1.0, asked=1.0, judging=2.0, slowed=slowed)
    monkeypatch.setattr(model_times, "measured_times", lambda *_: times)
    monkeypatch.setattr(FineTune, "make", stop)
    done = run(*line(tmp_path, "--hours", 0.05))
    assert done.code == 130
    plan = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))["plan"]
    assert (plan["super-network"]["steps"], plan["search"]["trials"]) == (60, 30)
    assert "0.05 hours are too few at this speed" in done.err
    assert ("the machine is busy" in done.err) == (slowed > 1)


def test_help_names_the_options(run: Run) -> None:
    run("compress", "--help").printed("--target", "--hours", "--trials", "--sizes", "--set")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--task", "mini-glue/sst2"), "leave out the task"),
        (("--target", "macs=50%", "--trials", "9"), "no option targets, trials"),
        (("--sizes", "5Q"), "'5Q'"),
        (("--sizes", "1M"), "sizes reach from"),
        (("--text", "nowhere.txt"), "cannot read nowhere.txt"),
        (("--text", "wikitext"), "name their folder with --data"),
        (("--recipe", "nasbert"), "Nearest: 'nas-bert'"),
        (("--set", "blocks.round=2"), "rounds"),
    ],
)
def test_block_wise_faults_are_refused(run: Run, tmp_path: Path, options: tuple[str, ...], why: str) -> None:
    run(*blocks_line(tmp_path, *options)).refused(why)
    assert not (tmp_path / "out").exists()


def test_a_dry_run_lists_the_stages_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    run(*blocks_line(tmp_path, "--dry-run")).printed(
        "source", "operation-times", "bases", "blocks", "choices", "students"
    )
    assert not (tmp_path / "out").exists()


def test_the_other_recipe_has_no_sizes_and_needs_a_task(run: Run, tmp_path: Path) -> None:
    run("compress", tmp_path / "bert", "--task", "mini-glue/sst2", "--sizes", "5M").refused(
        "the recipe eftnas has no option sizes"
    )
    run("compress", tmp_path / "bert").refused("eftnas needs a task")
