"""Runs that are refused: one message, exit code 2, and nothing half-written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.training import BOTH, DECODER, DEEPER, ENCODER, QUICK, VISION, card_file, on_table, table

from formwright.arch.card import Card
from formwright.compose import default_folder
from formwright.evaluate.final import openings
from formwright.study.folder_lock import alone_in

_RTE = "index\tsentence1\tsentence2\tlabel"


def line(folder: Path, *options: object) -> tuple[object, ...]:
    """Give the arguments of a training on a table; `folder` gets the design and the table."""
    return ("train", card_file(folder), *on_table(table(folder)), "--out", folder / "out", *options)


@pytest.mark.parametrize(
    ("source", "task", "folder"),
    [
        ("bert-tiny", "mini-glue/sst2", "trained/bert-tiny-mini-glue-sst2"),
        ("cards/small.json", "digits", "trained/small-digits"),
        ("./small.json", "../rows.csv", "trained/small-rows"),
        ("models/mine/", "pydoc/masked", "trained/mine-pydoc-masked"),
        ("bert-tiny", "rows.csv.gz", "trained/bert-tiny-rows.csv"),
        ("bert-tiny", ".", "trained/bert-tiny"),
        ("bert-tiny", "/", "trained/bert-tiny"),
        ("bert-tiny", "", "trained/bert-tiny"),
    ],
)
def test_the_usual_folder_is_named_after_the_design_and_the_task(source: str, task: str, folder: str) -> None:
    assert default_folder("trained", Path(source).stem, task) == Path(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "mini-glue/sst3"), "no task called 'mini-glue/sst3'. Nearest: 'mini-glue/sst2'"),
        (("--task", "digits"), "has images, but this card reads"),
        (("--task", "pydoc/causal"), "causal-lm needs a design of family decoder; this card is of family encoder"),
        (("--task", "digits", "--steps", 3, "--epochs", 1), "steps or epochs"),
        (("--task", "digits", "--device", "abacus"), "no device is called 'abacus'; devices are auto, cuda, mps, cpu"),
        (("--task", "digits", "--data", "anywhere"), "the task 'digits' takes no --data"),
        (("--task", "glue/sst2", "--data", "absent"), "absent"),
        (("--task", "squad", "--data", "absent"), "absent"),
        (("--task", "absent.csv"), "cannot read"),
        (("--task", "pydoc/masked", "--set", "training.decay=square"), "decay is linear, cosine or none, not 'square'"),
        (("--task", "pydoc/masked", "--epochs", 0), "epochs must be"),
        (("--task", "pydoc/masked", "--epochs", "nan"), "--epochs"),
        (("--task", "pydoc/masked", "--epochs", "inf"), "epochs must be"),
        (("--task", "pydoc/masked", "--epochs", 1e308), "at most 1e+09"),
        (("--task", "pydoc/masked", "--steps", 10**13), "steps must be at most 1,000,000,000,000"),
        (("--task", "pydoc/masked", "--set", "training.threads=1000000"), "training.threads"),
        (("--task", "pydoc/masked", "--learning-rate", "inf"), "must be above 0 and finite"),
        (("--task", "pydoc/masked", "--learning-rate", 0), "learning rate must be above 0"),
        (("--task", "pydoc/masked", "--learning-rate", "nan"), "learning rate must be above 0"),
        (("--task", "pydoc/masked", "--dropout", "nan"), "dropout"),
        (("--task", "pydoc/masked", "--pretrain-steps", 9), "pretrain"),
        (("--task", "pydoc/masked", "--patience", 2, "--judge-every", 0), "--judge-every"),
        (("--task", "pydoc/masked", "--patience", 2, "--steps", 2, "--batch", 1), "--judge-every"),
        (("--task", "pydoc/masked", "--pretrain", "poems"), "no task called 'poems'"),
        (("--task", "pydoc/masked", "--batch", 0), "--batch"),
        (("--task", "pydoc/masked", "--seed", -1), "--seed"),
        ((), "--task"),
    ],
    ids=str,
)
def test_a_users_error_is_one_message_and_leaves_nothing(
    options: tuple[object, ...], message: str, run: Run, tmp_path: Path
) -> None:
    run("train", card_file(tmp_path), *options, "--out", tmp_path / "out").refused(message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("flexibert-nano", "flexibert-nano is a search space"),
        ("bert-tinny", "Nearest: 'bert-tiny'"),
        ("absent.json", "absent.json"),
        ("x" * 500, "no space, card or file is called"),
    ],
)
def test_what_is_no_design_is_refused(source: str, message: str, run: Run, tmp_path: Path) -> None:
    run("train", source, *on_table(table(tmp_path)), "--out", tmp_path / "out").refused(message)
    assert not (tmp_path / "out").exists()


_ENCODERS_ONLY = "masked-lm needs a design of family encoder"


@pytest.mark.parametrize(
    ("card", "options", "message"),
    [
        (DECODER, ("pydoc/causal", "--pretrain", "self"), _ENCODERS_ONLY),
        (VISION, ("digits", "--pretrain", "pydoc"), _ENCODERS_ONLY),
        (BOTH, ("mini-glue/rte",), "sequence-classification needs a design of family encoder or vision"),
        (ENCODER, ("translation",), "seq2seq-lm needs a design of family encoder-decoder; this card is of family enc"),
        (DECODER, ("translation",), "seq2seq-lm needs a design of family encoder-decoder; this card is of family dec"),
        (BOTH, ("pydoc/causal",), "causal-lm needs a design of family decoder; this card is of family encoder-decoder"),
        (DECODER, ("pydoc/causal", "--beams", 2, *QUICK), "--beams"),
        (BOTH, ("multi30k",), "--data DIR"),
    ],
    ids=lambda value: None if isinstance(value, Card) else str(value),
)
def test_what_a_design_cannot_do_is_refused(card: Card, options: Any, message: str, run: Run, tmp_path: Path) -> None:
    run("train", card_file(tmp_path, card), "--task", *options, "--out", tmp_path / "out").refused(message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(("--pretrain", "digits"), "no text to pretrain on", marks=pytest.mark.slow),
        (("--pretrain", "self", "--set", "pretraining.next_sentence=true"), "at least two texts of two sentences"),
    ],
)
def test_text_that_cannot_pretrain_is_refused(options: Any, message: str, run: Run, tmp_path: Path) -> None:
    run(*line(tmp_path, *options)).refused(message)
    assert not (tmp_path / "out").exists()


def test_a_trained_model_is_not_pretrained_again_and_the_folder_of_a_run_is_no_model(run: Run, tmp_path: Path) -> None:
    mine = on_table(table(tmp_path))
    assert run("train", card_file(tmp_path), *mine, "--steps", 1, "--out", tmp_path / "out").code == 0
    run("train", tmp_path / "out" / "model", *mine, "--pretrain", "self", "--out", tmp_path / "again").refused(
        "pretraining is for cards"
    )
    for option in (("train", tmp_path / "out"), ("train", "bert-tiny", "--distil-from", tmp_path / "out")):
        run(*option, *mine, "--out", tmp_path / "again").refused(f"its model is {tmp_path / 'out' / 'model'}")
    assert not (tmp_path / "again").exists()


def test_a_length_that_the_design_cannot_read_is_told(run: Run, tmp_path: Path) -> None:
    longer, fits = (run(*line(tmp_path, "--steps", 1, "--length", length, "--force")) for length in (40, 32))
    assert "rows have at most 32 tokens, not 40: the design reads no more" in longer.err
    assert (fits.code, "rows have at most" in fits.err) == (0, False)


def test_the_text_of_pretraining_is_looked_for_where_the_rows_are(run: Run, tmp_path: Path) -> None:
    for folder, header, words in (("SST-2", "sentence\tlabel", ("good film",)), ("RTE", _RTE, ("a b", "c d"))):
        (tmp_path / folder).mkdir()
        rows = [f"{row}\t" * (folder == "RTE") + "\t".join(f"{text} {row}" for text in words) for row in range(8)]
        labels = ("entailment", "not_entailment") if folder == "RTE" else ("0", "1")
        lines = [header, *(f"{row}\t{labels[place % 2]}" for place, row in enumerate(rows))]
        for name in ("train.tsv", "dev.tsv"):
            (tmp_path / folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--task", "glue/rte", "--data", tmp_path, "--pretrain", "glue/sst2", "--pretrain-steps", 1)
    done = run("train", card_file(tmp_path), *options, *QUICK, "--steps", 1, "--out", tmp_path / "out").printed()
    assert "pretraining: step 1 of 1" in done.err


def test_test_rows_that_are_not_there_are_missed_before_training(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    table(folder, "train.csv")
    table(folder, "dev.csv")
    run("train", card_file(tmp_path), *on_table(folder), "--official-dev", "--test", "--out", tmp_path / "out").refused(
        "has no test rows"
    )
    assert not (tmp_path / "out").exists()


def everything(folder: Path) -> list[tuple[Path, bytes]]:
    return sorted((path, path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def test_other_options_do_not_go_on_with_a_run(run: Run, tmp_path: Path) -> None:
    command = line(tmp_path)
    assert run(*command, "--steps", 2).code == 0
    before = everything(tmp_path / "out")
    run(*command, "--steps", 3, "--seed", 5).refused("train.training.steps (2 there, 3 now)", "train.seed", "--force")
    assert everything(tmp_path / "out") == before


def replaced(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: card_file(folder, DEEPER), ["the card"]),
        (
            lambda folder: replaced(folder / "mine.csv", " a ", " zebra "),
            ["the training rows (80 before and now", "the validation rows", "the test rows", "the tokeniser"],
        ),
        (lambda folder: replaced(folder / "mine.csv", ",yes", ",yea"), ["the labels"]),
        (lambda folder: replaced(folder / "other.csv", " a ", " zebra "), ["the text of pretraining"]),
    ],
    ids=["card", "rows", "labels", "text"],
)
def test_changed_inputs_are_refused(
    change: Callable[[Path], object], told: list[str], run: Run, tmp_path: Path
) -> None:
    pretrain = ("--pretrain", table(tmp_path, "other.csv"), "--pretrain-steps", 1)
    options = ("--steps", 2, *pretrain, "--out", tmp_path / "out")
    command = ("train", card_file(tmp_path), *on_table(table(tmp_path)), *options)
    assert run(*command).code == 0
    before = everything(tmp_path / "out")
    change(tmp_path)
    run(*command).refused(*told, "--force")
    assert everything(tmp_path / "out") == before
    assert run(*command, "--force").code == 0


def test_a_model_trained_on_meanwhile_does_not_go_on_with_a_run(run: Run, tmp_path: Path) -> None:
    mine, source = on_table(table(tmp_path)), tmp_path / "source"
    first = ("train", card_file(tmp_path), *mine, "--out", source)
    again = ("train", source / "model", *mine, "--steps", 1, "--out", tmp_path / "out")
    assert run(*first, "--steps", 1).code == 0
    assert run(*again).code == 0
    assert run(*first, "--steps", 2, "--force").code == 0
    assert "the weights" in run(*again).err


def test_force_keeps_the_record_of_test_openings_and_nothing_else(run: Run, tmp_path: Path) -> None:
    mine, out = on_table(table(tmp_path)), tmp_path / "out"
    command = ("train", card_file(tmp_path), *mine, "--test", "--json", "--force", "--out", out)
    for seed in (1, 2, 1):
        assert run(*command, "--steps", 3, "--seed", seed).code == 0
        (out / "old").touch()
    entries = openings(out / "final")
    assert [entry["name"].startswith("small-") for entry in entries] == [True, True]
    assert len({entry["name"] for entry in entries}) == 2  # the third run is the first one again
    (out / "link").symlink_to(tmp_path / "mine.csv")
    assert run(*command, "--steps", 3).code == 0
    assert not {"old", "link"} & {path.name for path in out.iterdir()}
    assert (tmp_path / "mine.csv").exists()


def test_how_often_a_run_is_saved_does_not_make_it_another(run: Run, tmp_path: Path) -> None:
    assert run(*line(tmp_path, "--steps", 2)).code == 0
    assert run(*line(tmp_path, "--steps", 2, "--save-every", 1, "--test", "--json")).code == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", "{"])
def test_a_record_that_cannot_be_read_is_no_run(content: str, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text(content, encoding="utf-8")
    command = ("train", card_file(tmp_path), *on_table(table(tmp_path)), "--steps", 1, "--out", out)
    run(*command).refused("run.json", "--force")
    assert run(*command, "--force").code == 0


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["plain", "force"])
@pytest.mark.parametrize("place", ["file", "files", "below a file"])
def test_a_place_that_is_taken_is_left_alone(place: str, force: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    if place == "files":
        taken.mkdir()
        (taken / "notes.txt").write_text("keep", encoding="utf-8")
    else:
        taken.write_text("keep", encoding="utf-8")
    out = taken / "out" if place == "below a file" else taken
    run("train", card_file(tmp_path), *on_table(table(tmp_path)), "--steps", 1, "--out", out, *force).refused(str(out))
    kept = taken / "notes.txt" if place == "files" else taken
    assert kept.read_text(encoding="utf-8") == "keep"
    assert len(list(tmp_path.rglob("*"))) == (4 if place == "files" else 3)


def test_an_empty_folder_may_be_used(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    run(*line(tmp_path, "--steps", 1)).printed()


def test_a_read_only_folder_is_one_message(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("formwright.pipeline.run_folder.RunRecord.write", refused)
    run(*line(tmp_path)).refused(f"cannot write {tmp_path / 'out'}: Permission denied")


@pytest.mark.parametrize(
    "options",
    [("--steps", 40, "--set", "training.warmup=0"), ("--steps", 1, "--set", "training.weight_decay=1e+38")],
    ids=["loss", "weights after the last step"],
)
def test_a_divergence_is_one_message(options: tuple[object, ...], run: Run, tmp_path: Path) -> None:
    run(*line(tmp_path, *options, "--learning-rate", "1e30")).refused("lower the learning rate")
    assert not (tmp_path / "out" / "model").exists()


def test_a_folder_in_which_another_process_works_is_refused(run: Run, tmp_path: Path) -> None:
    command = line(tmp_path, "--steps", 3)
    with alone_in(tmp_path / "out"):
        run(*command).refused("another process")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    assert run(*command).code == 0


@pytest.mark.parametrize("option", ["--task", "--out"])
def test_a_name_that_is_no_text_is_refused_before_any_work(option: str, run: Run, tmp_path: Path) -> None:
    names = {"--task": table(tmp_path), "--out": tmp_path / "out"}
    names[option] = tmp_path / "half\udcff.csv"  # as the system gives a name that is not UTF-8
    options = (*on_table(names["--task"]), "--steps", 1, "--out", names["--out"])
    run("train", card_file(tmp_path), *options).refused(r"half\udcff.csv")
    assert not names["--out"].exists()


def test_the_record_says_what_the_run_is(run: Run, tmp_path: Path) -> None:
    run(*line(tmp_path, "--steps", 1))
    record = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    stage = record["pipeline"]["stages"]["train"]
    assert (stage["training"]["steps"], stage["task"]["text"]) == (1, ["words"])
    assert record["contents"]["train"]["card"] == ENCODER.digest
