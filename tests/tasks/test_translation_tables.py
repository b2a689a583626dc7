"""Translation from a user's own tables."""

import json
import sys
from pathlib import Path

import pytest
from tests.train.cases import BOTH

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.loaded_model import input_columns, load_model, predict_table
from formwright.evaluate.repeat_score import find_task, repeat_score
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.settings import Settings
from formwright.tasks import load_task
from formwright.tasks.kind import KINDS
from formwright.tasks.task import Task, contents
from formwright.tasks.task_facts import task_facts
from formwright.tasks.test_split import open_test
from formwright.tasks.translation import translation_splits
from formwright.train.fit import Training, fit, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import prepare

PAIRS = list(zip(*(column[:200] for column in translation_splits().train.shown.values()), strict=True))


def write(path: Path, pairs: list[tuple[str, str]] = PAIRS, columns: tuple[str, str] = ("english", "german")) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(dict(zip(columns, pair, strict=True))) + "\n" for pair in pairs))
    return path


def own(path: Path, **options: bool) -> Task:
    return load_task(str(path), text=("english",), label="german", kind="translation", **options)


def test_two_columns_of_a_table_are_a_translation(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl")
    task = own(path)
    view = task.search_view()
    assert (task.kind, task.metric, task.metrics) == ("seq2seq-lm", "perplexity", ("perplexity", "bleu"))
    parts = {"train": view.train, "validation": view.validation, "test": open_test(task)}
    assert [len(part) for part in parts.values()] == [160, 20, 20]
    for name, part in parts.items():
        assert task.origins[name].source == str(path)
        assert [PAIRS[row] for row in task.origins[name].rows] == list(zip(part.sources, part.targets, strict=True))
    assert contents(own(write(tmp_path / "other.jsonl"))) == contents(task)


def test_a_folder_has_a_file_for_each_split_and_a_test_without_translations_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "data" / "train.jsonl", PAIRS[:100])
    write(tmp_path / "data" / "dev.jsonl", PAIRS[100:140])
    write(tmp_path / "data" / "test.jsonl", PAIRS[140:], columns=("english", "french"))
    task = own(tmp_path / "data")
    assert (len(task.search_view().train), len(task.search_view().validation), len(open_test(task))) == (100, 20, 20)
    whole = own(tmp_path / "data", official_dev=True)
    assert (len(whole.search_view().validation), whole.has_test) == (40, False)


def test_equal_texts_stay_in_one_split_and_shared_ones_are_counted(tmp_path: Path) -> None:
    twice = [(source, f"{target} {version}") for source, target in PAIRS[:50] for version in "ab"]
    task = own(write(tmp_path / "a.jsonl", twice))
    rows = (task.search_view().train, task.search_view().validation, open_test(task))
    assert sum(len(set(part.sources)) for part in rows) == 50
    assert task.warnings == ()  # a sentence may have several translations
    write(tmp_path / "data" / "train.jsonl", PAIRS[:100])
    write(tmp_path / "data" / "dev.jsonl", PAIRS[97:140])
    found = own(tmp_path / "data").warnings
    assert [(warning.kind, warning.count) for warning in found] == [("shared-rows", 3)]


@pytest.mark.parametrize("column", ["english", "german"])
def test_an_empty_text_is_refused_with_its_line(tmp_path: Path, column: str) -> None:
    pairs = list(PAIRS)
    pairs[6] = ("", "text") if column == "english" else ("text", "  ")
    with pytest.raises(IllegalInput, match=rf"a\.jsonl, line 7.*{column}"):
        own(write(tmp_path / "a.jsonl", pairs))


@pytest.mark.parametrize(
    ("text", "label"), [((), "german"), (("english",), ""), (("english", "german"), "german"), (("german",), "german")]
)
def test_both_columns_must_be_named(tmp_path: Path, text: tuple[str, ...], label: str) -> None:
    path = write(tmp_path / "a.jsonl")
    with pytest.raises(IllegalInput, match=r"a\.jsonl.*--text.*--label"):
        load_task(str(path), text=text, label=label, kind="translation")


def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"'germa'.*Nearest: 'german'"):
        load_task(str(write(tmp_path / "a.jsonl")), text=("english",), label="germa", kind="translation")


def test_without_sacrebleu_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtra, match="translation"):
        own(write(tmp_path / "a.jsonl"))


def test_facts_show_the_pairs(tmp_path: Path) -> None:
    facts = task_facts(own(write(tmp_path / "a.jsonl")))
    assert facts["examples"][0].keys() == {"source", "target"}
    assert facts["tokens"]["cut"] == 0
    assert (facts["train"], facts["validation"], facts["labels"], facts["scores"]) == (160, 20, [], None)


@pytest.mark.slow
def test_a_trained_model_translates_the_column_that_it_was_trained_on(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl")
    task = own(path)
    prepared = prepare(task, BOTH, 32)
    training = Training(Hyperparameters(5, 16, 3e-3, seed=0), 32, Settings(dropout=0.0), device="cpu")
    trained = fit(fresh_model(BOTH, prepared, training), prepared, training)
    folder = save_pretrained_folder(
        trained.model,
        tmp_path / "model",
        tokenizer=prepared.text_tokeniser.tokenizer,
        evaluation=evaluation_of(prepared, trained.metrics),
    )
    loaded = load_model(folder)
    assert repeat_score(loaded, find_task(loaded, str(path), {}), "validation").repeats
    assert input_columns(loaded) == ("english",)
    new = write(tmp_path / "new.jsonl", PAIRS[:3], columns=("english", "note"))
    kind = KINDS.get(loaded.kind)
    rows, names = predict_table(loaded, kind.read(new, input_columns(loaded)))
    assert names == ["english", "note", "prediction"]
    assert [(row["english"], row["note"]) for row in rows] == PAIRS[:3]
    assert all(isinstance(row["prediction"], str) for row in rows)


def test_spaces_around_a_text_do_not_belong_to_it(tmp_path: Path) -> None:
    padded = [(f" {source}", f"{target} \n") for source, target in PAIRS]
    train, known = (
        own(write(tmp_path / name, pairs)).search_view().train
        for name, pairs in (("a.jsonl", padded), ("b.jsonl", PAIRS))
    )
    assert set(zip(train.sources, train.targets, strict=True)) <= {(a.strip(), b.strip()) for a, b in PAIRS}
    assert train.shown == known.shown
