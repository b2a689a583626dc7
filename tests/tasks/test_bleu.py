import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tasks.fake_bleu import without_sacrebleu

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.tasks.bleu import bleu, check_bleu, same_text

WORDS = ("Ein", "ein", "Hund", "läuft", ".", ",", "T-Shirt", "120")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_it_is_sacrebleus_own_score(rows: list[tuple[str, str]]) -> None:
    from sacrebleu.metrics import BLEU

    found, wanted = [one for one, _ in rows], [other for _, other in rows]
    assert bleu(found, wanted) == BLEU().corpus_score(found, [wanted]).score


def test_the_ends_of_the_scale() -> None:
    texts = ["Ein Hund läuft durch das Gras.", "Zwei Frauen stehen am Ufer."]
    assert bleu(texts, texts) == pytest.approx(100)
    assert bleu(["x y z", "q"], texts) < 5
    assert bleu([text.lower() for text in texts], texts) < 99


def test_a_score_that_was_computed_by_hand() -> None:
    # of 6, 5, 4 and 3 pieces 5, 3, 2 and 1 are right, and the lengths are the same
    precision = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu(["the cat sat on a mat"], ["the cat sat on the mat"]) == pytest.approx(100 * precision)


def test_texts_are_the_same_or_not() -> None:
    assert same_text(["a b", "c"], ["a b", "C"]) == 0.5


@pytest.mark.parametrize("score", [bleu, same_text])
def test_lists_that_do_not_belong_together_are_refused(score: object) -> None:
    for found, wanted in (([], []), (["a"], ["a", "b"])):
        with pytest.raises(IllegalInput, match="as many translations as references"):
            score(found, wanted)  # type: ignore[operator]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without_sacrebleu(monkeypatch)
    with pytest.raises(MissingExtra, match=r"formwright\[translation\]"):
        check_bleu()
