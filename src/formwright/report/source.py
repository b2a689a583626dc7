"""The files that a page is made of, and the names by which its policy knows its scripts."""

import base64
import hashlib
from importlib.resources import files


def asset(name: str) -> str:
    """Read a file that goes into a page."""
    return (files("formwright.report") / "assets" / name).read_text(encoding="utf-8")


def script_source(script: str) -> str:
    """Give the source by which a content security policy knows a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
