import string
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle
from tests.train.cases import BOTH, few

from formwright.arch.heads import HeadSpec
from formwright.core.errors import IllegalInput, MissingExtra, UnknownName
from formwright.nn.build import build
from formwright.tasks.metrics import METRICS, Metric, best_constant, check_bleu, metric, without_writing
from formwright.train.judge import generated_texts, judge, with_beams
from formwright.train.prepare import prepare


def score(name: str, predictions: object, truth: object) -> float:
    return metric(name).compute(predictions, truth)


def rows(element: st.SearchStrategy) -> st.SearchStrategy:
    return st.integers(2, 40).flatmap(
        lambda size: st.tuples(
            st.lists(element, min_size=size, max_size=size), st.lists(element, min_size=size, max_size=size)
        )
    )


BINARY, LABELS = rows(st.integers(0, 1)), rows(st.integers(0, 3))
SCORES = rows(st.integers(-20, 20).map(lambda value: value / 4))


@given(LABELS, BINARY)
def test_accuracy_and_f1(labels, binary) -> None:
    assert score("accuracy", *labels) == pytest.approx(oracle.accuracy_score(*labels))
    assert score("f1", *binary) == pytest.approx(oracle.f1_score(binary[1], binary[0], zero_division=0.0))


@given(LABELS)
def test_matthews_of_any_number_of_labels(pair) -> None:
    if len(set(pair[0]) | set(pair[1])) == 1:  # the oracle warns, and then gives 0
        assert score("matthews", *pair) == 0.0
    else:
        assert score("matthews", *pair) == pytest.approx(oracle.matthews_corrcoef(pair[1], pair[0]), abs=1e-12)


@given(SCORES)
def test_pearson_and_spearman_with_ties(pair) -> None:
    if len(set(pair[0])) == 1 or len(set(pair[1])) == 1:
        assert score("pearson", *pair) == score("spearman", *pair) == 0.0
    else:
        assert score("pearson", *pair) == pytest.approx(stats.pearsonr(*pair).statistic, abs=1e-9)
        assert score("spearman", *pair) == pytest.approx(stats.spearmanr(*pair).statistic, abs=1e-9)


def test_correlation_and_perplexity_by_hand() -> None:
    assert score("pearson", [1e-9, 2e-9, 3e-9], [1, 2, 3]) == pytest.approx(1.0)
    assert score("pearson", [0.1] * 7, range(7)) == 0.0
    probabilities = np.array([0.5, 0.25, 0.125, 0.1])
    losses = -np.log(probabilities)
    assert score("perplexity", [losses[:3].mean(), losses[3]], [3, 1]) == pytest.approx(
        np.prod(probabilities) ** (-1 / 4)
    )
    assert [name for name in METRICS.names() if metric(name).direction == "min"] == ["perplexity"]


@pytest.mark.parametrize(("predictions", "truth"), [([], []), ([1, 2], [1]), ([[1]], [[1]])])
def test_values_that_do_not_pair_are_refused(predictions, truth) -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        score("accuracy", predictions, truth)


def test_metrics_are_found_by_name() -> None:
    assert score("exact", ["the cat", "dog"], [("Cat!",), ("a dog house",)]) == 0.5
    assert score("span-f1", ["the cat", "dog"], [("Cat!",), ("a dog house",)]) == pytest.approx((1 + 2 / 3) / 2)
    with pytest.raises(UnknownName, match="Nearest: 'matthews'"):
        metric("mathews")
    names = ("perplexity", "bleu", "same-text")
    assert without_writing(names, ()) == ("perplexity",)
    assert without_writing(names, ("bleu", "params")) == ("perplexity", "bleu")


RNG = np.random.default_rng(0)
TRUE, GUESSED = RNG.random((40, 6)) < 0.3, RNG.random((40, 6)) < 0.4
TRUE[:, 5] = GUESSED[:, 5] = False  # a label that never occurs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("micro-f1", oracle.f1_score(TRUE, GUESSED, average="micro")),
        ("macro-f1", oracle.f1_score(TRUE, GUESSED, average="macro", zero_division=0)),
        ("subset-accuracy", oracle.accuracy_score(TRUE, GUESSED)),
    ],
)
def test_metrics_are_those_of_scikit_learn(name: str, expected: float) -> None:
    assert score(name, GUESSED, TRUE.astype(np.float32)) == pytest.approx(expected)
    assert score(name, TRUE, TRUE) == (5 / 6 if name == "macro-f1" else 1.0)
    assert metric(name).direction == "max"


def test_several_labels_by_hand() -> None:
    assert score("micro-f1", [[0, 0]], [[0, 0]]) == 0.0
    assert score("subset-accuracy", [[1, 0], [1, 1], [0, 0]], [[1, 0], [1, 0], [0, 0]]) == 2 / 3
    best = score("micro-f1", [best_constant(TRUE)] * len(TRUE), TRUE)
    answers = [[(number >> place) & 1 for place in range(6)] for number in range(64)]
    assert best == max(score("micro-f1", [answer] * len(TRUE), TRUE) for answer in answers)
    assert best_constant([[1, 0, 1], [1, 0, 0], [1, 0, 0]]) == (1, 0, 0)


@pytest.mark.parametrize("pair", [([[1]], [[1, 0]]), ([1, 0], [1, 0]), ([], [])])
def test_tables_must_be_equal(pair: tuple[object, object]) -> None:
    with pytest.raises(IllegalInput, match="equal tables"):
        score("micro-f1", *pair)


WORDS = st.sampled_from(
    ["the", "a", "An", "Cat", "cat", "dog.", "U.S.", "--", "10%", "naïve", "anthem", "a-b", "\t", ""]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
ROWS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3)), min_size=1, max_size=5)


def normalised(text: str) -> list[str]:
    """Follow the definition letter by letter: lower case, no punctuation, no articles, words between blanks."""
    letters = [letter for letter in text.lower() if letter not in string.punctuation]
    words, word = [], ""
    for letter in [*letters, " "]:
        # an article is bounded by anything but letters, digits and underscores
        if letter.isalnum():
            word += letter
            continue
        words.append("" if word in ("a", "an", "the") else word)
        words.append(letter)
        word = ""
    return "".join(words).split()


def reference(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    golden = [answer for answer in answers if normalised(answer)] or [""]
    exact = [float(normalised(prediction) == normalised(answer)) for answer in golden]
    return max(exact), max(similarity(normalised(prediction), normalised(answer)) for answer in golden)


def similarity(predicted: list[str], golden: list[str]) -> float:
    if not predicted or not golden:
        return float(predicted == golden)
    left, hits = list(golden), 0
    for word in predicted:
        if word in left:
            left.remove(word)
            hits += 1
    if not hits:
        return 0.0
    precision, recall = hits / len(predicted), hits / len(golden)
    return 2 * precision * recall / (precision + recall)


@given(ROWS)
def test_both_follow_the_definition(rows) -> None:
    predictions, answers = [row[0] for row in rows], [row[1] for row in rows]
    expected = [reference(*row) for row in rows]
    assert score("exact", predictions, answers) == pytest.approx(sum(exact for exact, _ in expected) / len(rows))
    assert score("span-f1", predictions, answers) == pytest.approx(sum(score for _, score in expected) / len(rows))


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "overlap"),
    [
        ("The Eiffel-Tower!", ("eiffeltower",), 1, 1),
        ("Eiffel Tower", ("eiffel tower in Paris",), 0, 2 * 2 / 6),
        ("in 1066", ("1066", "in the year 1066"), 0, 2 * 2 / 5),
        ("the the cat cat", ("cat",), 0, 2 / 3),
        ("anthem", ("them",), 0, 0),
        ("", (), 1, 1),
        ("the", (), 1, 1),
        ("cat", (), 0, 0),
        ("", ("cat",), 0, 0),
        ("", ("the", "cat"), 0, 0),  # an answer that is only an article does not count beside another
        ("", ("the",), 1, 1),
    ],
)
def test_cases_by_hand(prediction: str, answers: tuple[str, ...], exact: float, overlap: float) -> None:
    assert score("exact", [prediction], [answers]) == exact
    assert score("span-f1", [prediction], [answers]) == pytest.approx(overlap)


@pytest.mark.parametrize("name", ["exact", "span-f1"])
@pytest.mark.parametrize(("predictions", "answers"), [([], []), (["a"], []), (["a"], [("a",), ("b",)])])
def test_rows_that_do_not_pair_are_refused(name, predictions, answers) -> None:
    with pytest.raises(IllegalInput, match="equally many"):
        score(name, predictions, answers)


BLEU_WORDS = ("Ein", "ein", "Hund", "läuft", ".", ",", "T-Shirt", "120")
BLEU_TEXTS = st.lists(st.sampled_from(BLEU_WORDS), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(BLEU_TEXTS, BLEU_TEXTS), min_size=1, max_size=6))
def test_it_is_sacrebleus_own_score(rows: list[tuple[str, str]]) -> None:
    from sacrebleu.metrics import BLEU

    found, wanted = [one for one, _ in rows], [other for _, other in rows]
    assert score("bleu", found, wanted) == BLEU().corpus_score(found, [wanted]).score


def test_bleu_and_equal_texts_by_hand() -> None:
    texts = ["Ein Hund läuft durch das Gras.", "Zwei Frauen stehen am Ufer."]
    assert score("bleu", texts, texts) == pytest.approx(100)
    assert score("bleu", ["x y z", "q"], texts) < 5
    assert score("bleu", [text.lower() for text in texts], texts) < 99
    # of 6, 5, 4 and 3 pieces 5, 3, 2 and 1 are right, and the lengths are the same
    precision = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert score("bleu", ["the cat sat on a mat"], ["the cat sat on the mat"]) == pytest.approx(100 * precision)
    assert score("same-text", ["a b", "c"], ["a b", "C"]) == 0.5


@pytest.mark.parametrize("name", ["bleu", "same-text"])
def test_lists_that_do_not_belong_together_are_refused(name: str) -> None:
    for found, wanted in (([], []), (["a"], ["a", "b"])):
        with pytest.raises(IllegalInput, match="as many translations as references"):
            score(name, found, wanted)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtra, match=r"formwright\[translation\]"):
        check_bleu()


def test_rows_without_any_relation_score_nothing() -> None:
    assert score("relation-f1", ["Other", "Other"], ["Other", "Other"]) == 0.0


# --- resampled rows --------------------------------------------------------------------------------------------------


ANSWERS = ("a cat", "the cat sat here", "cat", "a dog sat on the mat", "")


@st.composite
def answered(draw: st.DrawFn) -> tuple[str, list, list]:
    """Draw a metric, and answers and truth of the kind that it judges."""
    name = draw(st.sampled_from(METRICS.names()))
    size = draw(st.integers(2, 30))

    def some(element: st.SearchStrategy) -> list:
        return draw(st.lists(element, min_size=size, max_size=size))

    if name in ("exact", "span-f1"):
        return name, some(st.sampled_from(ANSWERS)), some(st.lists(st.sampled_from(ANSWERS), max_size=2))
    if name in ("bleu", "same-text"):
        return name, some(st.sampled_from(ANSWERS)), some(st.sampled_from(ANSWERS[:-1]))
    if name in ("micro-f1", "macro-f1", "subset-accuracy"):
        flags = st.lists(st.integers(0, 1), min_size=3, max_size=3)
        return name, some(flags), some(flags)
    if name in ("entity-f1", "tag-accuracy"):
        tags = st.lists(st.sampled_from(("O", "B-a", "I-a", "B-b")), min_size=4, max_size=4)
        return name, some(tags), some(tags)
    if name == "relation-f1":
        relation = st.sampled_from(("a(e1,e2)", "a(e2,e1)", "Other"))
        return name, some(relation), some(relation)
    if name == "perplexity":
        return name, some(st.floats(0, 5)), some(st.integers(1, 9))
    element = st.integers(-20, 20) if name in ("pearson", "spearman") else st.integers(0, 3)
    return name, some(element), some(element)


@given(answered())
def test_every_row_once_is_the_metric_itself(given) -> None:
    name, predictions, truth = given
    rows = metric(name)
    found = rows.scores(rows.table(predictions, truth), np.ones((1, len(truth))))
    assert found == pytest.approx([metric(name).compute(predictions, truth)], abs=1e-9)


@given(answered(), st.integers(0, 2**32))
def test_a_draw_is_the_metric_of_the_rows_that_were_drawn(given, seed: int) -> None:
    name, predictions, truth = given
    drawn = np.random.default_rng(seed).integers(len(truth), size=(3, len(truth)))
    counts = np.stack([np.bincount(rows, minlength=len(truth)) for rows in drawn]).astype(float)
    by_row = metric(name)
    wanted = [metric(name).compute([predictions[i] for i in rows], [truth[i] for i in rows]) for rows in drawn]
    assert by_row.scores(by_row.table(predictions, truth), counts) == pytest.approx(wanted, abs=1e-9)


LENGTHS = Metric(
    "acme-lengths",
    lambda said, true: np.array([[abs(len(one) - len(other))] for one, other in zip(said, true, strict=True)], float),
    lambda table, counts: counts @ table[:, 0] / counts.sum(1),
    direction="min",
    range=(0.0, np.inf),
    written=True,
)


def test_another_package_adds_a_metric_of_generated_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName):
        metric(LENGTHS.name)
    entry = EntryPoint(LENGTHS.name, f"{__name__}:LENGTHS", "formwright.metrics")
    monkeypatch.setitem(METRICS._entries(), LENGTHS.name, entry)
    assert score(LENGTHS.name, ["abc", "a"], ["a", "a"]) == 1.0
    assert without_writing(("perplexity", LENGTHS.name), ()) == ("perplexity",)
    task = few("translation")
    prepared = prepare(replace(task, metrics=(task.metric, LENGTHS.name)), BOTH, 32)
    with_beams(prepared, 2)  # which is refused where nothing is written
    head = HeadSpec("seq2seq-lm")
    found = judge(build(BOTH, head=head, seed=0), prepared, prepared.validation)
    texts = generated_texts(build(BOTH, head=head, seed=0).eval(), prepared, prepared.validation)
    targets = prepared.validation.rows.targets
    assert found[LENGTHS.name] == score(LENGTHS.name, texts, targets)
    assert {"perplexity", LENGTHS.name} == found.keys()


def test_all_metrics_are_called_as_they_are_listed() -> None:
    assert [metric(name).name for name in METRICS.names()] == METRICS.names()
    assert {name for name in METRICS.names() if metric(name).written} == {"bleu", "same-text"}
    assert {name for name in METRICS.names() if metric(name).named} == {"entity-f1", "tag-accuracy", "relation-f1"}
