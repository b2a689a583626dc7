"""HTML and SVG elements as text, which is escaped unless it is markup already; assets and script hashes of a page."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in HTML and XML
_EMPTY = ("circle", "input", "path", "polygon", "rect")  # elements that close themselves


class Markup(str):
    """Text that is HTML already; every other text is escaped when it goes into a tag."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """Write an element; underscores in attribute names become hyphens, a trailing one and empty values are dropped."""
    texts = {key: it if isinstance(it, str) else number(it) for key, it in attributes.items()}
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{_plain(it)}"' for key, it in texts.items() if it)
    return Markup(
        f"<{name}{pairs}/>" if name in _EMPTY and not content else f"<{name}{pairs}>{join(*content)}</{name}>"
    )


def number(value: float) -> str:
    """Format a length to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def join(*content: str) -> Markup:
    """Concatenate pieces, escaping those that are not markup."""
    return Markup("".join(piece if isinstance(piece, Markup) else _plain(piece) for piece in content))


def table(heads: Iterable[str | tuple[str, str]], rows: Iterable[Markup], **attributes: str) -> Markup:
    """Write a table that scrolls where it is too wide; a head is its words, or words and class."""
    pairs = [(head, "") if isinstance(head, str) else head for head in heads]
    top = tag("tr", *(tag("th", words, class_=kind) for words, kind in pairs))
    made = tag("table", tag("thead", top), tag("tbody", *rows), **attributes)
    return tag("div", made, class_="scroll", tabindex=0)


def row(name: str | Markup, cells: Iterable[str], kind: str = "number") -> Markup:
    """Write the row of a table with its name at the head."""
    return tag("tr", tag("th", name, scope="row"), *(tag("td", cell, class_=kind) for cell in cells))


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
