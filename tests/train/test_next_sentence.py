import pytest
import torch
from tests.train.cases import ENCODER, LENGTH, few
from torch import Tensor

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.batch import Batch
from formwright.train.loop import scores_of, train
from formwright.train.losses import loss_of
from formwright.train.masking import Masked, Masking
from formwright.train.next_sentence import WithNextSentence, sentence_pairs, words_and_order
from formwright.train.prepare import encode_for
from formwright.train.recipe import Recipe
from formwright.train.streams import Shuffled

TEXTS = tuple(" ".join(f"Text {text} has line {line}." for line in range(12)) for text in range(60))


def place(sentence: str) -> tuple[int, int]:
    """Read the numbers of the text and of the line off a sentence."""
    words = sentence.rstrip(".").split()
    return int(words[1]), int(words[4])


def test_pairs_follow_each_other_or_come_from_two_texts() -> None:
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


def test_every_sentence_but_the_last_begins_a_pair() -> None:
    firsts = [place(first) for first, _ in sentence_pairs(PlainText(TEXTS)).texts]
    assert firsts == [(text, line) for text in range(60) for line in range(11)]


def test_the_seed_decides() -> None:
    texts = PlainText(TEXTS)
    assert sentence_pairs(texts, 3) == sentence_pairs(texts, 3)
    assert sentence_pairs(texts, 3) != sentence_pairs(texts, 4)


@pytest.mark.parametrize("texts", [(), ("One. Two.",), ("One. Two.", "Just one"), ("No end", "at all")])
def test_too_little_text_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(IllegalInput, match="at least two texts of two sentences"):
        sentence_pairs(PlainText(texts))


def learner(seed: int = 0) -> WithNextSentence:
    model = build(ENCODER, head=HeadSpec("masked-lm"), seed=seed, spread="width")
    assert isinstance(model, TaskModel)
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
    assert batch.follows is not None
    assert order.shape == (len(batch.follows), 2)
    expected = loss_of("masked-lm")(words, batch) + loss_of("sequence-classification")(order, _labelled(batch))
    assert float(words_and_order((words, order), batch)) == pytest.approx(float(expected), rel=1e-6)


def _labelled(batch: Batch) -> Batch:
    assert batch.follows is not None
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

    train(learner(), Repeated(), noted, Recipe(steps=90, learning_rate=1e-2))
    for side in (0, 1):
        before, after = (sum(part[side] for part in some) for some in (parts[:12], parts[-12:]))
        assert after < 0.7 * before
