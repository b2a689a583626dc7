import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from tests.train.cases import BOTH, DECODER, ENCODER, EVERY_KIND, LENGTH, SPANS, VISION, VOCABULARY, Stub, few, task_of
from torch import Tensor

from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.generate import generate
from formwright.nn.task_model import TaskModel
from formwright.tasks import text_kinds
from formwright.tasks.rows import ImageRows, PlainText, SpanRows, TextRows, TranslationRows
from formwright.tasks.span_windows import Windows
from formwright.tasks.tokeniser import Special, Tokeniser, WordPiece, train_wordpiece
from formwright.train import judge as module
from formwright.train.fit import Training, fresh_model
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.judge import (
    answers,
    batch_of,
    compared,
    generated_texts,
    generation_settings,
    judge,
    truths,
    with_beams,
)
from formwright.train.loop import Diverged, OutOfMemory
from formwright.train.prepare import Prepared, PreparedRows, prepare
from formwright.train.streams import Batch, sentences

SCORES = torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(0))
TEXT = PlainText(tuple("one two three four five six seven"[: 3 + 5 * (n % 7)] for n in range(90)))


def by_word(tokens: Tensor) -> Tensor:
    """Score all tokens by the one that is read, and by nothing else."""
    return SCORES[tokens]


def test_scores_are_those_of_single_precision_whatever_training_computes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    half = torch.autocast("cpu", torch.bfloat16)
    monkeypatch.setattr("formwright.train.device.precision", lambda _: half)
    monkeypatch.setattr(module, "precision", lambda _: half, raising=False)
    rows = TextRows((("good",), ("bad",)), (1, 0))
    prepared = prepare(task_of("sequence-classification", "accuracy", rows, labels=2), ENCODER, LENGTH)
    seen = []

    def answer(tokens: Tensor) -> Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return torch.zeros(len(tokens), 2)

    judge(Stub(answer), prepared, prepared.validation)
    assert seen == [False]


def test_labels_are_given_where_their_sigmoid_is_above_a_half() -> None:
    texts = ("good", "good bad", "bad", "other")
    rows = TextRows(tuple((text,) for text in texts), ((1, 0), (1, 1), (1, 1), (0, 0)))
    metrics = ("micro-f1", "macro-f1", "subset-accuracy")
    task = replace(task_of("multi-label-classification", "micro-f1", rows, labels=2), metrics=metrics)
    prepared = prepare(task, ENCODER, LENGTH)
    good, bad = (prepared.text_tokeniser.encode([word])[0][0] for word in ("good", "bad"))
    stub = Stub(lambda tokens: torch.stack([(tokens == word).any(1) * 0.02 - 0.01 for word in (good, bad)], -1))
    # found 10 11 01 00, wanted 10 11 11 00: 4 of 5 labels, and no other
    assert judge(stub, prepared, prepared.validation) == {
        "micro-f1": pytest.approx(8 / 9),
        "macro-f1": pytest.approx((0.8 + 1) / 2),
        "subset-accuracy": 0.75,
    }
    assert truths(prepared.validation).shape == (4, 2)


def test_classes_and_images_are_judged_by_hand() -> None:
    rows = TextRows(tuple((text,) for text in ("good", "bad bad", "bad", "good good good", "bad")), (1, 0, 0, 0, 1))
    task = replace(task_of("sequence-classification", "accuracy", rows, labels=2), metrics=("accuracy", "f1"))
    prepared = prepare(task, ENCODER, LENGTH)
    good = prepared.text_tokeniser.encode(["good"])[0][0]
    stub = Stub(lambda tokens: torch.stack((torch.full((len(tokens),), 0.5), (tokens == good).any(1).float()), -1))
    # found 1 0 0 1 0, wanted 1 0 0 0 1
    assert judge(stub, prepared, prepared.validation) == {"accuracy": 3 / 5, "f1": 0.5}
    pixels = np.zeros((3, 1, 8, 8), np.float32)
    pixels[1] = 1.0
    prepared = prepare(
        task_of("image-classification", "accuracy", ImageRows(pixels, np.array([0, 1, 1])), labels=2), VISION, 0
    )
    stub = Stub(lambda images: torch.stack((0.5 - images.mean((1, 2, 3)), images.mean((1, 2, 3)) - 0.5), -1))
    assert judge(stub, prepared, prepared.validation) == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize("labels", [(3, 1, 2, 5), (0.5, 1.5, 0.25, 4.0)])
def test_numbers_are_judged_by_hand(labels: tuple[float, ...]) -> None:
    texts = ("a a a", "a", "a a", "a a a a a")
    rows = TextRows(tuple((text,) for text in texts), labels)
    task = replace(task_of("regression", "pearson", rows), metrics=("pearson", "spearman"))
    prepared = prepare(task, ENCODER, LENGTH)
    word = prepared.text_tokeniser.encode(["a"])[0][0]
    found = judge(Stub(lambda tokens: (tokens == word).sum(1, keepdim=True).float()), prepared, prepared.validation)
    expected = np.corrcoef([3, 1, 2, 5], labels)[0, 1]
    ranks = np.corrcoef([2, 0, 1, 3], np.argsort(np.argsort(labels)))[0, 1]
    assert found == {"pearson": pytest.approx(expected), "spearman": pytest.approx(ranks)}


def pointing(prepared: Prepared, part: PreparedRows) -> Stub:
    """Point at the answers of all windows, and in the padding at nonsense with even more certainty."""
    windows = part.examples
    gold = {tuple(windows.tokens[n].tolist()): windows.labels[n] for n in range(len(windows))}
    pad = prepared.text_tokeniser.special.pad

    def answer(tokens: Tensor) -> Tensor:
        scores = torch.zeros(*tokens.shape, 2)
        for place, row in enumerate(tokens.tolist()):
            start, end = gold[tuple(token for token in row if token != pad)]
            scores[place, start, 0] = scores[place, end, 1] = 5.0
            scores[place, [token == pad for token in row]] = 99.0
        return scores

    return Stub(answer)


def test_spans_that_are_right_are_wholly_right() -> None:
    prepared = prepare(SPANS, ENCODER, LENGTH)
    stub = pointing(prepared, prepared.validation)
    assert judge(stub, prepared, prepared.validation) == {"exact": 1.0, "span-f1": 1.0}


def test_spans_of_long_texts_and_without_answers() -> None:
    words = " ".join(f"word{number}" for number in range(30))
    context = f"{words} the colour is deep red {words}"
    start = context.index("deep red")
    rows = SpanRows(("what colour",) * 3, (context, words, "it is blue"), ((("deep red", start),), (), (("blue", 6),)))
    task = replace(task_of("span-extraction", "span-f1", rows), metrics=("exact", "span-f1"))
    prepared = prepare(task, ENCODER, LENGTH)
    part = prepared.validation
    assert len(part.examples) > len(rows)
    assert judge(pointing(prepared, part), prepared, part) == {"exact": 1.0, "span-f1": 1.0}
    assert judge(Stub(lambda tokens: torch.zeros(*tokens.shape, 2)), prepared, part)["exact"] < 1.0


def by_hand(sequences: list[list[int]]) -> float:
    """Compute the perplexity of every next token of some sequences, one by one."""
    logs = log_softmax(SCORES.numpy().astype(np.float64), axis=-1)
    losses = [-logs[read, wanted] for row in sequences for read, wanted in pairwise(row)]
    return math.exp(sum(losses) / len(losses))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_perplexity_is_that_of_all_tokens_whatever_the_batches(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(module, "_SIZE", size)
    stub = Stub(by_word)
    prepared = prepare(task_of("causal-lm", "perplexity", TEXT), DECODER, LENGTH)
    tokens = prepared.validation.examples.tokens  # type: ignore[union-attr]
    expected = by_hand([tokens[n].tolist() for n in range(len(tokens))])
    assert judge(stub, prepared, prepared.validation) == {"perplexity": pytest.approx(expected, rel=1e-5)}
    turned = prepared.part(PlainText(TEXT.texts[::-1]))
    assert judge(stub, prepared, turned) == {"perplexity": pytest.approx(expected, rel=1e-5)}

    pairs = TranslationRows(TEXT.texts, TEXT.texts[::-1])
    prepared = prepare(task_of("seq2seq-lm", "perplexity", pairs), BOTH, LENGTH)
    targets = prepared.validation.examples.targets  # type: ignore[union-attr]
    expected = by_hand([targets[n].tolist() for n in range(len(targets))])
    assert judge(stub, prepared, prepared.validation) == {"perplexity": pytest.approx(expected, rel=1e-5)}


def test_perplexity_of_hidden_words_by_hand() -> None:
    prepared = prepare(task_of("masked-lm", "perplexity", TEXT), ENCODER, LENGTH)
    found = judge(Stub(lambda tokens: torch.zeros(*tokens.shape, VOCABULARY)), prepared, prepared.validation)
    assert found == {"perplexity": pytest.approx(VOCABULARY, rel=1e-5)}
    rows = PlainText(("word", "word word word", "word word") * 40)  # whichever is hidden, it is the same word
    prepared = prepare(task_of("masked-lm", "perplexity", rows), ENCODER, LENGTH)
    ((word,),) = prepared.text_tokeniser.encode(["word"])
    found = judge(Stub(lambda tokens: SCORES[0].expand(*tokens.shape, -1)), prepared, prepared.validation)
    assert found == {"perplexity": pytest.approx(math.exp(-log_softmax(SCORES[0].double().numpy())[word]), rel=1e-5)}


def test_a_causal_model_needs_no_mask_token() -> None:
    class Maskless(WordPiece):
        special = Special(2, 3, 0, 1)

    tokeniser: Tokeniser = Maskless(train_wordpiece(TEXT, VOCABULARY).vocabulary)
    prepared = prepare(task_of("causal-lm", "perplexity", TEXT), DECODER, LENGTH, tokeniser)
    assert judge(Stub(by_word), prepared, prepared.validation)["perplexity"] > 1
    other = replace(prepared, task=task_of("masked-lm", "perplexity", TEXT))
    with pytest.raises(IllegalInput, match="no mask token"):
        judge(Stub(by_word), other, other.validation)


@pytest.mark.parametrize("kind", sorted(EVERY_KIND.keys() - {"image-classification"}))
def test_judging_twice_gives_the_same_and_changes_nothing(kind: str) -> None:
    card, task = EVERY_KIND[kind]
    prepared = prepare(task(), card, LENGTH)
    model = fresh_model(card, prepared, Training(Hyperparameters(steps=1))).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = judge(model, prepared, prepared.validation)
    assert not model.training
    assert judge(model, prepared, prepared.validation) == first
    assert first.keys() == set(prepared.task.metrics)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_lack_of_memory_is_a_failure_that_says_so() -> None:
    def greedy(_: Tensor) -> Tensor:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    prepared = prepare(SPANS, ENCODER, LENGTH)
    with pytest.raises(OutOfMemory, match="memory was used up while the model was judged, 64 rows at once"):
        judge(Stub(greedy), prepared, prepared.validation)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_answers_that_are_no_numbers_are_no_answers(number: float) -> None:
    rows = TextRows((("good",), ("bad",)), (1, 0))
    prepared = prepare(task_of("sequence-classification", "accuracy", rows, labels=2), ENCODER, LENGTH)
    with pytest.raises(Diverged, match=r"NaN or infinity.*lower the learning rate"):
        judge(Stub(lambda tokens: torch.full((len(tokens), 2), number)), prepared, prepared.validation)


def plain(texts: list[str]) -> tuple[Prepared, Stub]:
    """Give rows whose answer is whether they are of two words or more, and a model that knows it."""
    rows = TextRows(tuple((text,) for text in texts), tuple(int(" " in text) for text in texts))
    prepared = prepare(task_of("sequence-classification", "accuracy", rows, labels=2), ENCODER, LENGTH)
    special = prepared.text_tokeniser.special
    edges = torch.tensor([special.pad, special.begin, special.separator])
    count = Stub(lambda tokens: torch.isin(tokens, edges, invert=True).sum(1, keepdim=True) * torch.tensor([0.0, 1.0]))
    return prepared, Stub(lambda tokens: count.answer(tokens) - torch.tensor([0.0, 1.5]))


@pytest.mark.parametrize("size", [1, 3, 64])
def test_answers_stand_in_the_order_of_the_rows_that_were_asked_for(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(module, "_SIZE", size)
    prepared, model = plain(["a", "a a a", "a", "a a", "a", "a a a a"])
    for rows in ([0, 1, 2, 3, 4, 5], [5, 0, 3], [2], [4, 1]):
        (found,) = answers([model], prepared, prepared.validation, np.array(rows))
        assert found.tolist() == [[0, 1, 0, 1, 0, 1][row] for row in rows]
    assert truths(prepared.validation).tolist() == [0, 1, 0, 1, 0, 1]
    assert len(answers([model], prepared, prepared.validation, np.arange(0))[0]) == 0


def test_judging_is_comparing_all_answers_with_what_is_right() -> None:
    card, task = EVERY_KIND["regression"]
    prepared = prepare(task(), card, LENGTH)
    model = fresh_model(card, prepared, Training(Hyperparameters(steps=1)))
    (found,) = answers([model], prepared, prepared.validation, np.arange(len(prepared.validation.examples)))
    assert found.dtype == np.float32
    assert compared(prepared, found, truths(prepared.validation)) == judge(model, prepared, prepared.validation)
    assert compared(prepared, truths(prepared.validation), truths(prepared.validation)) == dict.fromkeys(
        prepared.task.metrics, pytest.approx(1.0)
    )


@pytest.mark.parametrize("kind", ["sequence-classification", "span-extraction"])
def test_a_batch_of_some_rows_has_these_rows(kind: str) -> None:
    card, task = EVERY_KIND[kind]
    prepared = prepare(task(), card, LENGTH)
    part, rows = prepared.validation, np.array([3, 0])
    batch = batch_of(prepared, part, rows)
    tokens = part.examples.tokens  # type: ignore[union-attr]
    for place, row in enumerate(rows):
        assert batch.inputs[place, : len(tokens[int(row)])].tolist() == tokens[int(row)].tolist()


def test_a_batch_of_images_has_these_images() -> None:
    pixels = np.random.default_rng(0).random((5, 1, 8, 8), np.float32)
    task = task_of("image-classification", "accuracy", ImageRows(pixels, np.arange(5) % 2), labels=2)
    prepared = prepare(task, VISION, 0)
    assert torch.equal(
        batch_of(prepared, prepared.validation, np.array([4, 2])).inputs, torch.from_numpy(pixels[[4, 2]])
    )


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(few("translation", 160), BOTH, LENGTH)


@pytest.fixture(scope="module")
def model() -> TaskModel:
    found = build(BOTH, head=HeadSpec("seq2seq-lm"), seed=3, spread="width")
    return found.eval()


def test_every_row_has_its_own_translation_in_its_own_place(prepared: Prepared, model: TaskModel) -> None:
    tokeniser, encoded = prepared.text_tokeniser, prepared.validation.examples
    found = generated_texts(model, prepared, prepared.validation)
    assert len(found) == len(prepared.validation.rows)
    for row in (0, 7, len(found) - 1):
        tokens = torch.from_numpy(encoded.tokens[row].astype("int64"))[None]  # type: ignore[union-attr]
        (alone,) = generate(model, tokens, None, generation_settings(tokeniser, prepared.length))
        assert found[row] == tokeniser.decode(alone)
    assert len(set(found)) > 1


def test_texts_are_written_with_as_many_beams_as_wished(prepared: Prepared, model: TaskModel) -> None:
    plain, tokeniser = generated_texts(model, prepared, prepared.validation), prepared.text_tokeniser
    wished = with_beams(prepared, 4)
    found = generated_texts(model, wished, wished.validation)
    assert found != plain
    for row in (0, 7):
        tokens = torch.from_numpy(prepared.validation.examples.tokens[row].astype("int64"))[None]  # type: ignore[union-attr]
        (alone,) = generate(model, tokens, None, generation_settings(tokeniser, prepared.length, 4))
        assert found[row] == tokeniser.decode(alone)
    assert wished.part(prepared.validation.rows).examples.tokens.lengths.tolist() == (  # type: ignore[union-attr]
        prepared.validation.examples.tokens.lengths.tolist()  # type: ignore[union-attr]
    )
    assert with_beams(prepared, 1) is prepared


def test_texts_are_judged_where_the_task_asks_for_it(prepared, model, monkeypatch) -> None:
    rows = prepared.validation.rows
    half = [text if row % 2 else "" for row, text in enumerate(rows.targets)]
    monkeypatch.setattr(module, "generated_texts", lambda *_: half)
    found = judge(model, prepared, prepared.validation)
    assert (list(found), found["same-text"]) == (["perplexity", "same-text"], 0.5)
    assert found["perplexity"] > 1


def test_texts_come_back_and_beams_are_refused_where_nothing_is_written(prepared: Prepared) -> None:
    found = prepare(few("mini-glue/sst2", 40), ENCODER, LENGTH)
    with pytest.raises(IllegalInput, match=r"generated text.*--beams"):
        with_beams(found, 2)
    rows, encoded = prepared.validation.rows, prepared.validation.examples
    targets = encoded.targets  # type: ignore[union-attr]
    assert [prepared.text_tokeniser.decode(targets[row].tolist()) for row in range(20)] == list(rows.targets[:20])


def test_questions_are_answered_in_the_batches_of_their_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def batch(examples: Windows, rows: NDArray[np.int64]) -> Batch:
        made.append(len(rows))
        return sentences(examples, rows)

    monkeypatch.setattr(text_kinds, "SPAN_EXTRACTION", replace(text_kinds.SPAN_EXTRACTION, batch=batch))
    prepared = prepare(SPANS, ENCODER, LENGTH)
    judge(Stub(lambda tokens: torch.zeros(*tokens.shape, 2)), prepared, prepared.validation)
    assert sum(made) == len(prepared.validation.examples)
