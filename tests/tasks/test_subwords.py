import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formwright.tasks.encode import frame
from formwright.tasks.rows import PlainText, TranslationRows
from formwright.tasks.subwords import Subwords, train_subwords
from formwright.tasks.tokeniser import CLASS, SEPARATOR, SPECIAL, UNKNOWN

SOURCES = ("A young man walks.", "Two dogs run, and one sleeps.", "The T-shirt is red.")
TARGETS = ("Ein junger Mann geht.", "Zwei Hunde laufen, und einer schläft.", "Das T-Shirt ist rot.")
ROWS = TranslationRows(SOURCES * 5, TARGETS * 5)
CODE = """
from formwright.tasks.rows import PlainText
from formwright.tasks.subwords import train_subwords
print(train_subwords(PlainText(("ab ba ab cd dc", "äß ß ab", "xy zz")), 40).digest)
"""


@pytest.fixture(scope="module")
def tokeniser() -> Subwords:
    return train_subwords(ROWS, 120)


def test_texts_come_back_as_they_were(tokeniser: Subwords) -> None:
    for text in (*SOURCES, *TARGETS, "Ein T-Shirt, das rot ist.", "schläft (und) läuft"):
        assert tokeniser.decode(tokeniser.encode([text])[0]) == text.replace("(", "").replace(")", "")


@settings(max_examples=50, deadline=None)
@given(st.text("aeinrst Tß.,", max_size=20))
def test_any_text_of_known_letters_comes_back(text: str) -> None:
    known = train_subwords(PlainText(("aeinrst Tß.,", "ein rat, ist Test.")), 60)
    single = " ".join(text.split())
    assert known.decode(known.encode([single])[0]) == single


def test_one_tokeniser_serves_both_languages(tokeniser: Subwords) -> None:
    assert tokeniser.size <= 120
    assert tokeniser.vocabulary[:5] == SPECIAL
    assert all(UNKNOWN not in ids for ids in tokeniser.encode([*SOURCES, *TARGETS]))
    assert UNKNOWN in tokeniser.encode(["§"])[0]
    assert tokeniser.encode(["Mann"]) != tokeniser.encode(["mann"])


def test_saved_with_a_model_it_frames_texts_as_training_does(tokeniser: Subwords) -> None:
    ids = tokeniser.encode(["Zwei Hunde"])
    assert tokeniser.tokenizer.encode("Zwei Hunde").ids == frame(ids, tokeniser)[0]
    assert (tokeniser.special.begin, tokeniser.special.separator) == (CLASS, SEPARATOR)


def test_it_is_the_same_in_every_process() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_digests_tell_tokenisers_apart(tokeniser: Subwords) -> None:
    assert tokeniser.digest == Subwords(tokeniser.vocabulary, tokeniser.merges).digest
    assert tokeniser.digest != Subwords(tokeniser.vocabulary, tokeniser.merges[:-1]).digest
    assert tokeniser.digest != train_subwords(ROWS, 80).digest
