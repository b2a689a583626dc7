from pathlib import Path

import numpy as np
import pytest
import torch
from tests.train.cases import ENCODER, LENGTH, VISION, few, with_types
from torch import Tensor

from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.tasks.rows import ImageRows, PlainText, TextRows
from formwright.tasks.tokeniser import WordPiece, train_wordpiece
from formwright.train.fit import Run, Training, fresh_model, with_weights
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import Saving, scores_of, train
from formwright.train.losses import loss_of
from formwright.train.prepare import encode_for, prepare
from formwright.train.pretrain import WithNextSentence, plain_text, pretrain, sentence_pairs, words_and_order
from formwright.train.streams import Batch, Masked, Masking, Shuffled

TEXTS = tuple(" ".join(f"Text {text} has line {line}." for line in range(12)) for text in range(60))


def place(sentence: str) -> tuple[int, int]:
    """Read the numbers of the text and of the line off a sentence."""
    words = sentence.rstrip(".").split()
    return int(words[1]), int(words[4])


def test_pairs_follow_each_other_or_come_from_two_texts() -> None:
    firsts = [place(first) for first, _ in sentence_pairs(PlainText(TEXTS)).texts]
    assert firsts == [(text, line) for text in range(60) for line in range(11)]
    texts = PlainText(TEXTS)
    assert sentence_pairs(texts, 3) == sentence_pairs(texts, 3)
    assert sentence_pairs(texts, 3) != sentence_pairs(texts, 4)
    rows = sentence_pairs(PlainText(TEXTS))
    assert len(rows) == 60 * 11
    for (first, second), follows in zip(rows.texts, rows.labels, strict=True):
        (text, line), (other, behind) = place(first), place(second)
        if follows:
            assert (other, behind) == (text, line + 1)
        else:
            assert other != text
    spread = (len(rows) / 4) ** 0.5
    assert abs(sum(rows.labels) - len(rows) / 2) < 4 * spread


@pytest.mark.parametrize("texts", [(), ("One. Two.",), ("One. Two.", "Just one"), ("No end", "at all")])
def test_too_little_text_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(IllegalInput, match="at least two texts of two sentences"):
        sentence_pairs(PlainText(texts))


def learner(seed: int = 0) -> WithNextSentence:
    model = build(ENCODER, head=HeadSpec("masked-lm"), seed=seed, spread="width")
    return WithNextSentence(model, seed, "width")


def stream(size: int = 16) -> Masked:
    text = few("pydoc/masked", 128).search_view().train
    rows = sentence_pairs(text)
    tokeniser = train_wordpiece(text, 320)
    encoded = encode_for(ENCODER, rows, tokeniser, LENGTH)
    return Masked(encoded, Shuffled(encoded.tokens.lengths, size, 0), Masking.of(tokeniser))


@torch.no_grad()
def test_the_loss_is_the_sum_of_both() -> None:
    model, batch = learner().eval(), stream().batch(0)
    words, order = scores_of(model, batch)
    assert order.shape == (len(batch.follows), 2)
    expected = loss_of("masked-lm")(words, batch) + loss_of("sequence-classification")(order, _labelled(batch))
    assert float(words_and_order((words, order), batch)) == pytest.approx(float(expected), rel=1e-6)


def _labelled(batch: Batch) -> Batch:
    return Batch(batch.inputs, batch.follows)


def test_a_model_learns_both() -> None:
    parts: list[tuple[float, float]] = []

    def noted(scores: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        words = loss_of("masked-lm")(scores[0], batch)
        order = loss_of("sequence-classification")(scores[1], _labelled(batch))
        parts.append((float(words.detach()), float(order.detach())))
        return words_and_order(scores, batch)

    few_pairs = stream(8)
    fixed = [few_pairs.batch(step) for step in range(3)]

    class Repeated:
        def batch(self, step: int) -> Batch:
            return fixed[step % len(fixed)]

    train(learner(), Repeated(), noted, Hyperparameters(steps=90, learning_rate=1e-2))
    for side in (0, 1):
        before, after = (sum(part[side] for part in some) for some in (parts[:12], parts[-12:]))
        assert after < 0.7 * before


SHORT = Training(Hyperparameters(steps=6, batch=8), length=LENGTH)


def text() -> PlainText:
    return few("pydoc/masked", 64).search_view().train


def tokeniser(size: int = 320) -> WordPiece:
    return train_wordpiece(text(), size)


def test_hidden_words_are_learnt() -> None:
    training = Training(Hyperparameters(steps=100, batch=16, learning_rate=5e-3), length=LENGTH)
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
    own = with_weights(fresh_model(card, prepared, SHORT), weights).transformer.state_dict()
    assert own.keys() == weights.keys()
    assert all(torch.equal(own[name], weights[name]) for name in own)


def test_a_model_that_is_given_is_trained_on_in_place() -> None:
    model = build(ENCODER, SHORT.settings, HeadSpec("masked-lm"), seed=3)
    still = Training(Hyperparameters(steps=1, batch=8, learning_rate=1e-12, weight_decay=0.0), length=LENGTH)
    before = {name: tensor.clone() for name, tensor in model.transformer.state_dict().items()}
    weights, _ = pretrain(ENCODER, text(), tokeniser(), still, model=model)
    assert all(weights[name].allclose(before[name], atol=1e-6) for name in before)
    weights, _ = pretrain(ENCODER, text(), tokeniser(), SHORT, model=model)
    own = model.transformer.state_dict()
    assert all(weights[name].equal(own[name]) for name in own)
    assert not all(own[name].equal(before[name]) for name in own)


def test_an_interrupted_pretraining_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole, expected = pretrain(ENCODER, text(), tokeniser(), SHORT, next_sentence=True)
    saving = Saving(tmp_path)
    pretrain(ENCODER, text(), tokeniser(), SHORT, Run(saving, until=4), next_sentence=True)
    weights, losses = pretrain(ENCODER, text(), tokeniser(), SHORT, Run(saving), next_sentence=True)
    assert losses == expected
    assert all(torch.equal(whole[name], weights[name]) for name in whole)


def test_texts_are_taken_once_and_cut_to_the_card() -> None:
    assert plain_text(TextRows((("a b", "c"), ("c", "d")), (0, 1))) == PlainText(("a b", "c", "d"))
    assert plain_text(text()) is text()
    with pytest.raises(IllegalInput, match="no text"):
        plain_text(ImageRows(np.zeros((1, 1, 8, 8), np.float32), np.zeros(1, np.int64)))
    long = PlainText((" ".join(text().texts),))
    _, losses = pretrain(ENCODER, long, tokeniser(), Training(Hyperparameters(steps=2, batch=4), length=500))
    assert len(losses) == 2
    with pytest.raises(IllegalInput, match=r"tokeniser has .* tokens, but the card's table has room for 320"):
        pretrain(ENCODER, text(), tokeniser(600), SHORT)
    with pytest.raises(IllegalInput, match="masked-lm needs a design of family encoder"):
        pretrain(VISION, text(), tokeniser(), SHORT)
