import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formwright
from formwright.core.errors import IllegalInput
from formwright.tasks.encode import frame
from formwright.tasks.rows import ImageRows, PlainText, SpanRows, TextRows, TranslationRows
from formwright.tasks.tokeniser import (
    CLASS,
    SEPARATOR,
    SPECIAL,
    UNKNOWN,
    Special,
    Subwords,
    train_subwords,
    train_wordpiece,
)

WORDS = PlainText(("The lowest newest widest slowest", "low lower new newer wide wider slow slower", "Café crème"))
# words of equal frequency, so that the merges are full of ties
DIGESTS = """
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_subwords, train_wordpiece
words = [a + b + c for a in "abcde" for b in "fghij" for c in "klmno"]
print(train_wordpiece(PlainText(tuple(words)), 80).digest)
print(train_subwords(PlainText(("ab ba ab cd dc", "äß ß ab", "xy zz")), 40).digest)
"""


@pytest.mark.parametrize("size", [5, 6, 7, 10, 20, 35, 60])
def test_the_vocabulary_is_no_larger_than_wanted(size: int) -> None:
    assert train_wordpiece(WORDS, size).size <= size


def test_the_commonest_letters_are_known() -> None:
    letters = {letter for text in WORDS.texts for letter in text.lower().replace("é", "e").replace("è", "e")} - {" "}
    just = train_wordpiece(WORDS, len(SPECIAL) + 2 * len(letters))
    assert all(1 not in ids for ids in just.encode(WORDS.texts))
    tokeniser = train_wordpiece(PlainText(("aaa bbb aab cc", "ab ba c d 日")), 9)
    assert set(tokeniser.vocabulary) == {*SPECIAL, "a", "b", "##a", "##b"}
    assert tokeniser.decode(tokeniser.encode(["ab ba"])[0]) == "ab ba"
    assert tokeniser.encode(["c d"])[0] == [1, 1]


def test_texts_of_every_kind_of_rows() -> None:
    assert TextRows((("a", "b"), ("c", "d")), (0, 1)).all_texts == ("a", "b", "c", "d")
    assert TranslationRows(("a",), ("b",)).all_texts == ("a", "b")
    assert SpanRows(("a", "b"), ("c", "c"), ((), ())).all_texts == ("a", "b", "c")
    with pytest.raises(IllegalInput, match="no text"):
        train_wordpiece(ImageRows(np.zeros((1, 1, 2, 2), np.float32), np.zeros(1, np.int64)))


def test_texts_are_cut_into_known_pieces() -> None:
    assert train_wordpiece(WORDS).vocabulary[:5] == SPECIAL == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    tokeniser = train_wordpiece(WORDS)
    for text, ids in zip(WORDS.texts, tokeniser.encode(WORDS.texts), strict=True):
        assert min(ids) >= len(SPECIAL)
        assert tokeniser.decode(ids) == text.lower().replace("é", "e").replace("è", "e")
    assert tokeniser.encode(["日本"])[0] == [1, 1]
    assert 1 not in tokeniser.encode(["slowwide"])[0]
    hashes = train_wordpiece(PlainText(("## a ##a", "b c a")))
    assert hashes.decode(hashes.encode(["##a"])[0]).replace(" ", "") == "##a"
    special = Special(begin=2, separator=3, pad=0, unknown=1, mask=4)
    assert (tokeniser.special, tokeniser.separators, tokeniser.types) == (special, 1, 2)


def test_offsets_cut_the_text_into_its_tokens() -> None:
    tokeniser = train_wordpiece(WORDS, 60)
    text = "  slowest, CAFÉ  newer"
    (found,) = tokeniser.offsets([text])
    assert [found.ids] == tokeniser.encode([text])
    pieces = [text[start:end].lower().replace("é", "e") for start, end in found.places]
    named = [tokeniser.vocabulary[index].removeprefix("##") for index in found.ids]
    assert pieces == ["," if name == "[UNK]" else name for name in named]


@pytest.mark.parametrize("size", [5_000, 10**12])
def test_more_tokens_than_the_text_has_are_not_made(size: int) -> None:
    assert train_wordpiece(WORDS, size).vocabulary == train_wordpiece(WORDS, 500).vocabulary


SOURCES = ("A young man walks.", "Two dogs run, and one sleeps.", "The T-shirt is red.")
TARGETS = ("Ein junger Mann geht.", "Zwei Hunde laufen, und einer schläft.", "Das T-Shirt ist rot.")
ROWS = TranslationRows(SOURCES * 5, TARGETS * 5)


@pytest.fixture(scope="module")
def tokeniser() -> Subwords:
    return train_subwords(ROWS, 120)


@settings(max_examples=50, deadline=None)
@given(st.text("aeinrst Tß.,", max_size=20))
def test_any_text_of_known_letters_comes_back(text: str) -> None:
    known = train_subwords(PlainText(("aeinrst Tß.,", "ein rat, ist Test.")), 60)
    single = " ".join(text.split())
    assert known.decode(known.encode([single])[0]) == single


def test_equal_texts_share_one_tokeniser_in_every_process() -> None:
    assert train_wordpiece(PlainText(tuple(text + "" for text in WORDS.texts))) is train_wordpiece(WORDS)
    assert train_wordpiece(PlainText(WORDS.texts[:2])) != train_wordpiece(WORDS)
    environment = {**os.environ, "PYTHONPATH": str(Path(formwright.__file__).parents[1])}
    command = [sys.executable, "-c", DIGESTS]
    runs = [subprocess.run(command, env=environment, capture_output=True, check=True).stdout for _ in range(4)]
    assert len(set(runs)) == 1


def test_one_cased_tokeniser_serves_both_languages(tokeniser: Subwords) -> None:
    for text in (*SOURCES, *TARGETS, "Ein T-Shirt, das rot ist.", "schläft (und) läuft"):
        assert tokeniser.decode(tokeniser.encode([text])[0]) == text.replace("(", "").replace(")", "")
    assert tokeniser.size <= 120
    assert tokeniser.vocabulary[:5] == SPECIAL
    assert all(UNKNOWN not in ids for ids in tokeniser.encode([*SOURCES, *TARGETS]))
    assert UNKNOWN in tokeniser.encode(["§"])[0]
    assert tokeniser.encode(["Mann"]) != tokeniser.encode(["mann"])
    assert tokeniser.tokenizer.encode("Zwei Hunde").ids == frame(tokeniser.encode(["Zwei Hunde"]), tokeniser)[0]
    assert (tokeniser.special.begin, tokeniser.special.separator) == (CLASS, SEPARATOR)
    assert tokeniser.digest == Subwords(tokeniser.vocabulary, tokeniser.merges).digest
    assert tokeniser.digest != Subwords(tokeniser.vocabulary, tokeniser.merges[:-1]).digest
    assert tokeniser.digest != train_subwords(ROWS, 80).digest
