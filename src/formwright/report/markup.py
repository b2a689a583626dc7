"""HTML that cannot be broken out of: text is escaped unless it is markup already."""

import json
import re
from html import escape
from typing import Any

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no place in HTML


class Markup(str):
    """Mark text as HTML; every other text is escaped when it goes into a tag."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """Write an element; underscores in attribute names become hyphens, and one at the end is dropped."""
    pairs = "".join(f' {key.rstrip("_").replace("_", "-")}="{_plain(str(it))}"' for key, it in attributes.items())
    return Markup(f"<{name}{pairs}>{join(*content)}</{name}>")


def join(*content: str) -> Markup:
    """Put pieces behind one another, escaping those that are no markup."""
    return Markup("".join(piece if isinstance(piece, Markup) else _plain(piece) for piece in content))


def script_json(data: Any) -> str:
    """Write JSON that can stand inside a script element: no character of it can end the element or the line."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # everything beyond ASCII is escaped
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(words: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", words))
