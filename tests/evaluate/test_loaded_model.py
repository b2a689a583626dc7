"""Answers of every kind of model that reads text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.pipeline.compressions import BERT, tokeniser

from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.evaluate.loaded_model import load_model, predict
from formwright.nn.build import build
from formwright.nn.hf.model_folder import SUMS
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock
from formwright.tasks.rows import SpanRows
from formwright.tasks.span_windows import answers_with_probability, encode_spans

CONTEXT = "my house is red and my car is blue today"


def folder_of(path: Path, task: str, labels: int = 2, names: tuple[str, ...] = ()) -> Path:
    model = build(BERT, head=HeadSpec(task, labels), seed=1)
    return save_pretrained_folder(model, path / "model", tokenizer=tokeniser().tokenizer, labels=names)


def test_a_classifier_names_its_labels_with_their_probability(tmp_path: Path) -> None:
    loaded = load_model(folder_of(tmp_path, "sequence-classification", 3, ("red", "green", "blue")))
    found = predict(loaded, [("a b c",), ("d",)])
    assert {one.value for one in found} <= {"red", "green", "blue"}
    assert all(one.probability is not None and 1 / 3 <= one.probability <= 1 for one in found)


def test_each_row_gets_its_own_answer_whatever_its_length(tmp_path: Path) -> None:
    loaded = load_model(folder_of(tmp_path, "sequence-classification", 3, ("red", "green", "blue")))
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():  # fresh weights answer all rows about alike
        for parameter in loaded.model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
    texts = [(CONTEXT,), ("red",), ("my car is blue",), ("and my",), ("house today",)]
    alone = [predict(loaded, [row])[0] for row in texts]
    found = predict(loaded, texts)
    assert [one.value for one in found] == [one.value for one in alone]
    assert [one.probability for one in found] == pytest.approx([one.probability for one in alone], abs=1e-4)
    assert len({(one.value, round(float(one.probability), 2)) for one in alone}) > 2
    assert {one.value for one in alone} > {alone[0].value}
    assert all(1 / 3 <= float(one.probability) <= 1 for one in alone)  # that of the label which is named


@pytest.mark.parametrize("write", [save_pretrained_folder, export_stock])
def test_rows_are_read_with_the_length_that_the_model_was_judged_with(tmp_path: Path, write: Any) -> None:
    model = build(BERT, head=HeadSpec("sequence-classification", 2), seed=1)
    judged = {"task": {}, "data": {}, "scores": {}, "length": 7}
    write(model, tmp_path / "model", tokenizer=tokeniser().tokenizer, evaluation=judged)
    config, tokenizer = (
        json.loads((tmp_path / "model" / name).read_text()) for name in ("config.json", "tokenizer_config.json")
    )
    assert (config["input_length"], tokenizer["model_max_length"]) == (7, 7)
    assert load_model(tmp_path / "model").length == 7


@pytest.mark.parametrize(
    ("config", "tokenizer", "length"), [(7, 9, 7), (9, 7, 9), (None, 9, 9), (99, 9, 32), (None, 10**30, 32)]
)
def test_the_length_of_the_model_counts_before_that_of_its_tokenizer(
    config: int | None, tokenizer: int, length: int, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, "sequence-classification")
    (folder / SUMS).unlink()
    for name, key, number in (("config", "input_length", config), ("tokenizer_config", "model_max_length", tokenizer)):
        path = folder / f"{name}.json"
        facts = {key: value for key, value in json.loads(path.read_text()).items() if key != "input_length"}
        path.write_text(json.dumps(facts | ({} if number is None else {key: number})))
    assert load_model(folder).length == length


def test_a_regression_answers_with_numbers(tmp_path: Path) -> None:
    found = predict(load_model(folder_of(tmp_path, "sequence-classification", 1)), [("a b", "c d")])
    assert isinstance(found[0].value, float)
    assert found[0].probability is None


def test_a_question_is_answered_with_a_part_of_its_text(tmp_path: Path) -> None:
    loaded = load_model(folder_of(tmp_path, "span-extraction"))
    (found,) = predict(loaded, [("which colour has the house", CONTEXT)])
    assert isinstance(found.value, str)
    assert found.value in CONTEXT
    assert found.probability is not None
    assert 0 < found.probability < 1
    with pytest.raises(IllegalInput, match="two columns"):
        predict(loaded, [(CONTEXT,)])


def test_probabilities_of_all_spans_add_up_to_one() -> None:
    rows = SpanRows(("which",), ("red blue",), ((),))
    windows = encode_spans(rows, tokeniser(), 16)
    tokens = len(windows.starts[0])
    flat = [np.zeros(tokens, np.float32)]
    inside = int((windows.starts[0] >= 0).sum())
    ((_, share),) = answers_with_probability(flat, flat, windows, rows)
    assert share == pytest.approx(1 / (inside * (inside + 1) / 2))  # all spans are alike
    ((_, less),) = answers_with_probability(flat, flat, windows, rows, unanswerable=True)
    assert less == pytest.approx(1 / (inside * (inside + 1) / 2 + 1))
    first = np.where(np.arange(tokens) == 0, 2.0, 0.0)  # the token that means: no answer
    ((text, share),) = answers_with_probability([first], [first], windows, rows, unanswerable=True)
    assert (text, share) == ("", pytest.approx(np.exp(4) / (inside * (inside + 1) / 2 + np.exp(4))))


def test_a_text_of_several_windows_has_the_spans_of_all() -> None:
    rows = SpanRows(("which",), (f"{CONTEXT} and {CONTEXT}",), ((),))
    windows = encode_spans(rows, tokeniser(), 16)
    flat = [np.zeros(len(starts), np.float32) for starts in windows.starts]
    assert len(flat) > 1
    inside = [int((starts >= 0).sum()) for starts in windows.starts]
    ((_, share),) = answers_with_probability(flat, flat, windows, rows)
    assert share == pytest.approx(1 / sum(number * (number + 1) / 2 for number in inside))


def test_a_model_that_fills_in_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="masked-lm"):
        predict(load_model(folder_of(tmp_path, "masked-lm")), [("a",)])


@pytest.mark.parametrize(("file", "fact"), [("run.json", "formwright resume"), ("notes.txt", "config.json")])
def test_a_folder_without_a_model_is_refused(tmp_path: Path, file: str, fact: str) -> None:
    (tmp_path / file).write_text("{}")
    with pytest.raises(IllegalInput, match=fact):
        load_model(tmp_path)
