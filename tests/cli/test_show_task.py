import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from formwright.cli import show_task
from formwright.tasks import load_task

LONG = "word " * 200


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a table of twenty rows, two columns of text among them."""
    rows = [f"first {row},{LONG if row < 15 else 'second'},{('no', 'yes')[row % 4 == 0]}" for row in range(20)]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["one,two,class", *rows]), encoding="utf-8")
    return path


def test_a_task_as_json(run: Run) -> None:
    done = run("show", "task:mini-glue/mrpc", "--json")
    assert (done.code, done.err) == (0, "")
    view = load_task("mini-glue/mrpc").search_view()
    facts = done.data
    words = sorted(len(" ".join(texts).split()) for texts in view.train.texts)
    assert facts["words"] == {"median": words[len(words) // 2], "95 %": words[int(0.95 * len(words))]}
    assert [label["name"] for label in facts["labels"]] == ["different", "paraphrase"]
    assert facts["labels"][1]["train"] == view.train.labels.count(1)
    assert facts["labels"][1]["validation"] == view.validation.labels.count(1)
    assert [example["text"] for example in facts["examples"]] == [list(texts) for texts in view.train.texts[:3]]
    named = {name: facts[name] for name in ("kind", "name", "task_kind", "metric", "metrics", "chance", "test")}
    assert named == {
        "kind": "task",
        "name": "mini-glue/mrpc",
        "task_kind": "sequence-classification",
        "metric": "accuracy",
        "metrics": ["accuracy", "f1"],
        "chance": 0.5,
        "test": "kept for the final evaluation",
    }
    assert (facts["train"], facts["validation"]) == (len(view.train), len(view.validation))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mini-glue/sst2", ("accuracy (chance: 0.5)", "negative", "8,192 rows", "2,048 rows", "median")),
        ("mini-glue/stsb", ("regression", "pearson, spearman", "least 0", "largest 5")),
        pytest.param("digits", ("1 x 8 x 8 values", "1,197 rows"), marks=pytest.mark.slow),
        ("translation", ("source", "target", "perplexity")),
        ("pydoc/masked", ("masked-lm", "median")),
    ],
)
def test_every_kind_of_task_as_tables(run: Run, name: str, expected: tuple[str, ...]) -> None:
    done = run("show", f"task:{name}")
    assert (done.code, done.err) == (0, "")
    assert all(words in done.out for words in (name, "kept for the final evaluation", *expected))
    assert "\x1b" not in done.out


def test_an_own_table_is_a_task(run: Run, own: Path) -> None:
    facts = run("show", f"task:{own}", "--text", "one, two", "--label", "class", "--json").data
    assert (facts["train"], facts["validation"]) == (16, 2)
    assert facts["division"].startswith("all 20 rows, divided 80/10/10 by seed 0")
    assert {LONG} == {example["text"][1] for example in facts["examples"]}
    assert sum(label["train"] for label in facts["labels"]) == 16
    shown = run("show", f"task:{own}", "--text", "one,two", "--label", "class").out
    assert LONG not in " ".join(shown.split())
    assert "..." in shown


def test_the_guess_and_the_warnings_are_shown(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("sentence;label\n" + "".join(f"text {row};{row % 3}\n" for row in range(30)) + ";nan\ntext 1;2\n")
    facts = run("show", f"task:{path}", "--json").data
    assert facts["task_kind"] == "sequence-classification"
    assert "guessed as classification" in facts["guess"]
    kinds = {warning["kind"]: warning["count"] for warning in facts["warnings"]}
    assert kinds == {"contradictory-labels": 2, "empty-texts": 1, "rare-classes": 1, "missing-value-class": 1}
    shown = " ".join(run("show", f"task:{path}").out.split())
    for warning in facts["warnings"]:
        assert warning["message"] in shown
    assert "guessed as classification" in shown


def test_the_kind_of_task_may_be_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("sentence;label\n" + "".join(f"text {row};{row % 3}|{row % 5}\n" for row in range(30)))
    facts = run("show", f"task:{path}", "--task-kind", "multi-label", "--json").data
    assert (facts["task_kind"], facts["guess"]) == ("multi-label-classification", "")
    assert [label["name"] for label in facts["labels"]] == ["0", "1", "2", "3", "4"]
    assert all(set(example["label"]) <= set("01234") for example in facts["examples"])
    path.write_text("sentence;label\n" + "".join(f"text {row};{row % 3}\n" for row in range(30)))
    facts = run("show", f"task:{path}", "--task-kind", "regression", "--json").data
    assert (facts["task_kind"], facts["scores"]["largest"]) == ("regression", 2)
    run("show", f"task:{path}", "--task-kind", "multilabel").refused("multi-label")
    assert "--task-kind" in run("show", "task:mini-glue/rte", "--task-kind", "regression").err


def test_what_would_command_the_terminal_is_not_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    rows = [f"\x1b[31mred {row}\ta\x1b[0m{row % 2}" for row in range(20)]
    path.write_text("\n".join(["sentence\tlabel", *rows]))
    done = run("show", f"task:{path}").printed()
    assert "\x1b" not in done.out


def test_the_test_rows_stay_closed(run: Run, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formwright.tasks.test_split", None)  # the only door
    assert run("show", f"task:{own}", "--text", "one", "--label", "class").code == 0
    assert "test_split" not in Path(show_task.__file__).read_text(encoding="utf-8")


def test_a_dev_set_may_be_kept_whole(run: Run, tmp_path: Path) -> None:
    rows = "index\tsentence1\tsentence2\tlabel\n" + "".join(f"{row}\ta {row}\tb\t{row % 2}\n" for row in range(4))
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(rows)
    facts = run("show", "task:glue/wnli", "--data", tmp_path, "--official-dev", "--json").data
    assert (facts["validation"], facts["test"]) == (4, "none")
    assert run("show", "task:glue/wnli", "--data", tmp_path, "--json").data["validation"] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("task:glue/sst",), "no task called 'glue/sst'. Nearest: 'glue/sst2'"),
        (("task:nowhere.csv",), "cannot read"),
        (("task:glue/sst2", "--data", "nowhere"), "nowhere is not there"),
        (("task:digits", "--sample", "2"), "--sample: for spaces and cards only, and task:digits is a task"),
        (("task:digits", "--svg", "x.svg"), "--svg: for spaces and cards only"),
        (("bert-mini", "--data", "x", "--text", "a"), "--data, --text: for tasks only, and bert-mini is none"),
        (("bert-mini", "--official-dev", "--label", "a"), "--official-dev, --label: for tasks only"),
    ],
)
def test_errors_are_one_message(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    run("show", *arguments).refused(expected)


@pytest.mark.long
@pytest.mark.data
def test_published_tasks_are_shown(run: Run, data_dir: Path) -> None:
    facts = run("show", "task:glue/rte", "--data", data_dir / "glue", "--json").data
    assert (facts["train"], facts["validation"]) == (2490, 139)
    assert [label["name"] for label in facts["labels"]] == ["entailment", "not_entailment"]
    run("show", "task:squad", "--data", data_dir).printed("Beyonce")
