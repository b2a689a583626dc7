import pytest
import torch
from tests.train.cases import BOTH, ENCODER, LENGTH, few

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.generate import write
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import TranslationRows
from formwright.train import judge as judge_module
from formwright.train.judge import judge
from formwright.train.prepare import Prepared, prepare
from formwright.train.written import with_beams, writing_of, written


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(few("translation", 160), BOTH, LENGTH)


@pytest.fixture(scope="module")
def model() -> TaskModel:
    found = build(BOTH, head=HeadSpec("seq2seq-lm"), seed=3, spread="width")
    assert isinstance(found, TaskModel)
    return found.eval()


def test_every_row_has_its_own_translation_in_its_own_place(prepared: Prepared, model: TaskModel) -> None:
    tokeniser, encoded = prepared.text_tokeniser, prepared.validation.examples
    found = written(model, prepared, prepared.validation)
    assert len(found) == len(prepared.validation.rows)
    for row in (0, 7, len(found) - 1):
        tokens = torch.from_numpy(encoded.tokens[row].astype("int64"))[None]  # type: ignore[union-attr]
        (alone,) = write(model, tokens, None, writing_of(tokeniser, prepared.length))
        assert found[row] == tokeniser.decode(alone)
    assert len(set(found)) > 1


def test_texts_are_written_with_as_many_beams_as_wished(prepared: Prepared, model: TaskModel) -> None:
    plain, tokeniser = written(model, prepared, prepared.validation), prepared.text_tokeniser
    wished = with_beams(prepared, 4)
    found = written(model, wished, wished.validation)
    assert found != plain
    for row in (0, 7):
        tokens = torch.from_numpy(prepared.validation.examples.tokens[row].astype("int64"))[None]  # type: ignore[union-attr]
        (alone,) = write(model, tokens, None, writing_of(tokeniser, prepared.length, 4))
        assert found[row] == tokeniser.decode(alone)
    assert wished.part(prepared.validation.rows).examples.tokens.lengths.tolist() == (  # type: ignore[union-attr]
        prepared.validation.examples.tokens.lengths.tolist()  # type: ignore[union-attr]
    )
    assert with_beams(prepared, 1) is prepared


def test_beams_are_refused_where_nothing_is_written() -> None:
    found = prepare(few("mini-glue/sst2", 40), ENCODER, LENGTH)
    with pytest.raises(IllegalInput, match=r"judged by accuracy, for which nothing is written; leave --beams out"):
        with_beams(found, 2)


def test_texts_are_judged_where_the_task_asks_for_it(
    prepared: Prepared, model: TaskModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = prepared.validation.rows
    assert isinstance(rows, TranslationRows)
    half = [text if row % 2 else "" for row, text in enumerate(rows.targets)]
    monkeypatch.setattr(judge_module, "written", lambda *_: half)
    found = judge(model, prepared, prepared.validation)
    assert list(found) == ["perplexity", "same-text"]
    assert found["same-text"] == 0.5
    assert found["perplexity"] > 1


def test_texts_come_back_from_their_tokens(prepared: Prepared) -> None:
    rows, encoded = prepared.validation.rows, prepared.validation.examples
    assert isinstance(rows, TranslationRows)
    targets = encoded.targets  # type: ignore[union-attr]
    assert [prepared.text_tokeniser.decode(targets[row].tolist()) for row in range(20)] == list(rows.targets[:20])
