"""Files of pages, and the names of scripts."""

import base64
import hashlib

from formwright.report.source import asset, script_source


def test_a_script_is_known_by_its_hash() -> None:
    told = script_source("alert(1)")
    assert told.startswith("'sha256-")
    assert base64.b64decode(told[8:-1]) == hashlib.sha256(b"alert(1)").digest()


def test_assets_are_read() -> None:
    assert "$script" in asset("blocks.html")
