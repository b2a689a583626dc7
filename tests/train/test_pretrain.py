from pathlib import Path

import numpy as np
import pytest
import torch
from tests.train.cases import ENCODER, LENGTH, VISION, few, with_types

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import ImageRows, PlainText, TextRows
from formwright.tasks.tokeniser import WordPiece, train_wordpiece
from formwright.train.fit import Run, Training, fresh_model, with_weights
from formwright.train.loop import Saving
from formwright.train.prepare import prepare
from formwright.train.pretrain import plain_text, pretrain
from formwright.train.recipe import Recipe

SHORT = Training(Recipe(steps=6, batch=8), length=LENGTH)


def text() -> PlainText:
    rows = few("pydoc/masked", 64).search_view().train
    assert isinstance(rows, PlainText)
    return rows


def tokeniser(size: int = 320) -> WordPiece:
    return train_wordpiece(text(), size)


def test_the_text_of_labelled_rows_is_taken_once() -> None:
    rows = TextRows((("a b", "c"), ("c", "d")), (0, 1))
    assert plain_text(rows) == PlainText(("a b", "c", "d"))
    assert plain_text(text()) is text()
    with pytest.raises(IllegalInput, match="no text"):
        plain_text(ImageRows(np.zeros((1, 1, 8, 8), np.float32), np.zeros(1, np.int64)))


def test_hidden_words_are_learnt() -> None:
    training = Training(Recipe(steps=100, batch=16, learning_rate=5e-3), length=LENGTH)
    _, losses = pretrain(ENCODER, text(), tokeniser(), training)
    assert len(losses) == 100
    assert sum(losses[-20:]) < 0.93 * sum(losses[:20])


@pytest.mark.parametrize("types", [0, 1, 2])
@pytest.mark.parametrize("next_sentence", [False, True])
def test_every_card_can_be_pretrained_and_the_weights_serve_a_task(types: int, next_sentence: bool) -> None:
    card = with_types(types)
    weights, losses = pretrain(card, text(), tokeniser(), SHORT, next_sentence=next_sentence)
    again, same = pretrain(card, text(), tokeniser(), SHORT, next_sentence=next_sentence)
    assert losses == same
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    prepared = prepare(few("mini-glue/rte"), card, LENGTH, train_wordpiece(text(), 320))
    model = with_weights(fresh_model(card, prepared, SHORT), weights)
    own = model.transformer.state_dict()
    assert own.keys() == weights.keys()
    assert all(torch.equal(own[name], weights[name]) for name in own)


def test_a_model_that_is_given_is_trained_on_in_place() -> None:
    model = build(ENCODER, SHORT.settings, HeadSpec("masked-lm"), seed=3)
    assert isinstance(model, TaskModel)
    still = Training(Recipe(steps=1, batch=8, learning_rate=1e-12, weight_decay=0.0), length=LENGTH)
    before = {name: tensor.clone() for name, tensor in model.transformer.state_dict().items()}
    weights, _ = pretrain(ENCODER, text(), tokeniser(), still, model=model)
    assert all(weights[name].allclose(before[name], atol=1e-6) for name in before)
    weights, _ = pretrain(ENCODER, text(), tokeniser(), SHORT, model=model)
    own = model.transformer.state_dict()
    assert all(weights[name].equal(own[name]) for name in own)
    assert not all(own[name].equal(before[name]) for name in own)


def test_rows_are_never_longer_than_the_card_can_read() -> None:
    long = PlainText((" ".join(text().texts),))
    _, losses = pretrain(ENCODER, long, tokeniser(), Training(Recipe(steps=2, batch=4), length=500))
    assert len(losses) == 2


def test_an_interrupted_pretraining_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole, expected = pretrain(ENCODER, text(), tokeniser(), SHORT, next_sentence=True)
    saving = Saving(tmp_path)
    pretrain(ENCODER, text(), tokeniser(), SHORT, Run(saving, until=4), next_sentence=True)
    weights, losses = pretrain(ENCODER, text(), tokeniser(), SHORT, Run(saving), next_sentence=True)
    assert losses == expected
    assert all(torch.equal(whole[name], weights[name]) for name in whole)


def test_what_a_card_cannot_read_is_refused() -> None:
    with pytest.raises(IllegalInput, match=r"tokeniser has .* tokens, but the card's table has room for 320"):
        pretrain(ENCODER, text(), tokeniser(600), SHORT)
    with pytest.raises(IllegalInput, match="masked-lm needs a design of family encoder"):
        pretrain(VISION, text(), tokeniser(), SHORT)
