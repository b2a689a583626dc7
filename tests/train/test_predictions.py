"""What is predicted for rows without answers: by which text, with how many beams, and with which probability."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.cases import DECODER, few

from formwright.arch.heads import HeadSpec
from formwright.nn.build import build
from formwright.tasks.rows import PlainText
from formwright.train import predictions
from formwright.train.prepare import PreparedRows, prepare

LANGUAGE = "pydoc/causal"
MODEL = build(DECODER, head=HeadSpec("causal-lm"))


def test_the_end_of_a_long_text_is_continued_and_half_of_the_length_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(few(LANGUAGE), DECODER, 12)
    seen: list[tuple[list[int], Any]] = []

    def generate(_: Any, ids: torch.Tensor, __: Any, settings: Any) -> torch.Tensor:
        seen.append((ids[0].tolist(), settings))
        return ids

    monkeypatch.setattr(predictions, "generate", generate)
    text = " ".join(prepared.validation.rows.all_texts)[:200]
    (ids,) = prepared.text_tokeniser.encode(PlainText((text,)).texts)
    assert len(ids) > 12
    predictions.continuations(MODEL, prepared, PreparedRows(PlainText((text,)), None), {})  # type: ignore[arg-type]
    assert [read for read, _ in seen] == [list(ids[-6:])]


def test_texts_are_written_with_the_beams_that_the_model_was_judged_with(monkeypatch: pytest.MonkeyPatch) -> None:
    beams: list[int] = []
    monkeypatch.setattr(predictions, "generated_texts", lambda _, prepared, __: beams.append(prepared.beams) or ["a"])
    prepared = replace(prepare(few(LANGUAGE), DECODER, 12), beams=7)
    for recorded in ({"beams": 4}, {}):
        assert predictions.translations(MODEL, prepared, prepared.validation, recorded) == [("a", None)]
    assert beams == [4, 1]


def test_probabilities_of_a_row_add_up_to_one() -> None:
    shares = predictions.softmax(np.array([[0.0, 1000.0, 1000.0], [-1000.0, 0.0, np.log(3)]]))
    assert shares == pytest.approx(np.array([[0, 0.5, 0.5], [0, 0.25, 0.75]]))
