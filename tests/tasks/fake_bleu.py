"""What tests of BLEU share."""

import sys

import pytest


def without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sacrebleu seem not to be installed."""
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
