import base64
import hashlib
import json
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formwright.report.figures import duration, evenly_spaced, figure, kind_of, long_count, score, short_count
from formwright.report.markup import Markup, join, script_json, script_source, tag

HOSTILE = ['<script>alert("1")</script>', "</td><img src=x onerror=a(1)>", "&lt;b&gt;", "\" onclick='x'", "a\u2028b"]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("words", HOSTILE)
def test_text_and_attributes_come_back_as_they_were(words: str) -> None:
    reader = read(tag("p", words, title=words))
    assert reader.tags == [("p", {"title": words})]
    assert reader.words == words


@given(st.text())
def test_any_text_stays_text(words: str) -> None:
    page = tag("td", words, data_name=words)
    assert [name for name, _ in read(page).tags] == ["td"]
    page.encode("utf-8")


def test_markup_is_escaped_once_and_scripts_are_known_by_their_hash() -> None:
    assert tag("p", tag("b", "1 < 2"), " & ") == "<p><b>1 &lt; 2</b> &amp; </p>"
    assert join("<", Markup("<br>")) == "&lt;<br>"
    assert tag("i", class_="a", aria_label="b", tabindex=0) == '<i class="a" aria-label="b" tabindex="0"></i>'
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))
    told = script_source("alert(1)")
    assert told.startswith("'sha256-")
    assert base64.b64decode(told[8:-1]) == hashlib.sha256(b"alert(1)").digest()


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text()) | st.integers() | st.none(), max_size=4))
def test_json_in_a_script_is_the_same_and_plain(data: object) -> None:
    text = script_json(data)
    assert json.loads(text) == data
    assert text.isascii()
    assert not set(text) & set("<>&\n\r")


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (0.81234567, "accuracy", "0.8123"),
        (-0.5, "matthews", "-0.5000"),
        (1234.567, "perplexity", "1,234.57"),
        (1234567.0, "params", "1,234,567"),
        (1234567.0, "params-body", "1,234,567"),
        (3.14159, "latency_ms", "3.14 ms"),
        (75.2, "train_seconds", "1 min 15 s"),
        (None, "accuracy", "\N{EN DASH}"),
    ],
)
def test_a_figure_follows_its_name(value: float | None, name: str, words: str) -> None:
    assert figure(value, name) == words


def test_kinds_and_digits_of_figures() -> None:
    assert [kind_of(name) for name in ("macs", "latency_ms", "seconds", "f1")] == [
        "count",
        "milliseconds",
        "seconds",
        "score",
    ]
    assert (score(99.99), score(100)) == ("99.9900", "100.00")


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (999, "999"), (1000, "1.00 k"), (12_345, "12.3 k"), (1.2e14, "120 T")]
)
def test_counts_have_three_digits(value: float, words: str) -> None:
    assert short_count(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.5, "0.50 s"), (59.4, "59 s"), (60, "1 min 0 s"), (3725, "1 h 2 min"), (90_000, "1 d 1 h")]
)
def test_durations_have_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1, "1"),
        (999_999, "999,999"),
        (1_000_000, "1.0 x 10^6"),
        (3_486_784_401_000, "3.5 x 10^12"),
        (5 * 10**400, "5.0 x 10^400"),
    ],
)
def test_long_counts_are_powers_of_ten(value: int, words: str) -> None:
    assert long_count(value) == words


@given(st.integers(0, 5_000), st.integers(2, 100))
def test_the_choice_is_even(count: int, most: int) -> None:
    chosen = evenly_spaced(count, most)
    assert len(chosen) == min(count, most)
    assert chosen == sorted(set(chosen))
    assert chosen[:1] == [0] * bool(count)
    assert chosen[-1:] == [count - 1] * bool(count)
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1
