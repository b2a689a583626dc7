"""Text from outside as it may be shown: without commands to the terminal, and without passwords."""

import re
from urllib.parse import unquote_plus

# Everything but tab and newline that moves the cursor, changes colours, or reorders letters: C0, DEL, C1, bidi marks.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_SETTING = re.compile(r"(?<=[?&])([^=&#\s]*)=[^&\s]*?(?=&|(?:#[^#@&=?\s]*)?$)")  # up to the name of a study, if any
_USER = re.compile(r"(?<=://)([^:/?#@\s]*):\S*(?=@)")  # up to the last @: a password may hold one
_SECRET = ("password", "sslpassword", "passwd", "pwd")


def printable(text: str) -> str:
    r"""Give text that is safe on a terminal: control characters as `\x1b`, and passwords of URLs as `***`."""
    return escaped(without_password(text))


def escaped(text: str) -> str:
    r"""Write control characters other than tab and newline visibly, as `\x1b` or `\u202e`."""
    return _CONTROL.sub(_visible, text)


def without_password(text: str) -> str:
    """Hide the passwords of all URLs in a text, before the host and in the query; everything else stays."""
    return _URL.sub(lambda url: _USER.sub(r"\1:***", _SETTING.sub(_hidden, url[0])), text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _hidden(setting: re.Match[str]) -> str:
    name = unquote_plus(setting[1]).strip().casefold()  # a name may be written with %-signs, and means the same
    return f"{setting[1]}=***" if name in _SECRET else setting[0]


def clock(seconds: float) -> str:
    """Write a duration as minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
