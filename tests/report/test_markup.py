import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "1 < 2"), " & ") == "<p><b>1 &lt; 2</b> &amp; </p>"
    assert join("<", Markup("<br>")) == "&lt;<br>"


def test_attribute_names_have_hyphens() -> None:
    assert tag("i", class_="a", aria_label="b", tabindex=0) == '<i class="a" aria-label="b" tabindex="0"></i>'


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text()) | st.integers() | st.none(), max_size=4))
def test_json_in_a_script_is_the_same_and_plain(data: object) -> None:
    text = script_json(data)
    assert json.loads(text) == data
    assert text.isascii()
    assert not set(text) & set("<>&\n\r")


def test_json_refuses_what_a_browser_cannot_read() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))


def test_a_script_is_known_by_its_hash() -> None:
    told = script_source("alert(1)")
    assert told.startswith("'sha256-")
    assert base64.b64decode(told[8:-1]) == hashlib.sha256(b"alert(1)").digest()
