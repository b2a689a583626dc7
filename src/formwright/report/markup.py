"""HTML building: text is escaped unless it is markup already; also the assets and the script hashes of a page."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no place in HTML


class Markup(str):
    """Text that is HTML already; every other text is escaped when it goes into a tag."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """Write an element; underscores in attribute names become hyphens, a trailing one is dropped."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{_plain(str(it))}"' for key, it in attributes.items())
    return Markup(f"<{name}{pairs}>{join(*content)}</{name}>")


def join(*content: str) -> Markup:
    """Concatenate pieces, escaping those that are not markup."""
    return Markup("".join(piece if isinstance(piece, Markup) else _plain(piece) for piece in content))


def table(heads: Iterable[str | tuple[str, str]], rows: Iterable[Markup], **attributes: str) -> Markup:
    """Write a table that scrolls where it is too wide; a head is its words, or words and class."""
    pairs = [(head, "") if isinstance(head, str) else head for head in heads]
    top = tag("tr", *(tag("th", words, **({"class_": kind} if kind else {})) for words, kind in pairs))
    made = tag("table", tag("thead", top), tag("tbody", *rows), **attributes)
    return tag("div", made, class_="scroll", tabindex=0)


def row(name: str | Markup, cells: Iterable[str], kind: str = "number") -> Markup:
    """Write the row of a table with its name at the head."""
    named = {"class_": kind} if kind else {}
    return tag("tr", tag("th", name, scope="row"), *(tag("td", cell, **named) for cell in cells))


def note(words: str) -> Markup:
    """Write a quiet paragraph."""
    return tag("p", words, class_="note")


def script_json(data: Any) -> str:
    """Write JSON for a script element: no character of it can end the element or the line."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # everything beyond ASCII is escaped
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(words: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", words))


def asset(name: str) -> str:
    return (files("formwright.report") / "assets" / name).read_text(encoding="utf-8")


def script_source(script: str) -> str:
    """Return the hash by which a content security policy allows a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
