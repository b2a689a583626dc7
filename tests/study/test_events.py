"""Data as exact JSON text."""

from types import MappingProxyType

import pytest

from formwright.core.errors import IllegalInput
from formwright.study.events import Event, from_text, to_text


def test_events_are_values_of_any_text() -> None:
    data = {"z": 1, "a": [1e-320, -0.0, 12345678901234567890], "text": "a\u0000\ud800ü"}
    text = to_text(MappingProxyType(data))
    assert text.isascii(), "PostgreSQL can store neither a zero character nor half a surrogate pair"
    assert repr(from_text(text, str)) == repr(data)
    with pytest.raises(IllegalInput, match=r"data\.metrics has the key 1, not text"):
        to_text({"metrics": [{1: 0.5}]})
    first, second = (Event(1, "note", None, "w", 2.0, {"a": 1}) for _ in range(2))
    assert first == second
    assert len({first, second}) == 1
