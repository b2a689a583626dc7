import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Import the benchmark that a test file is named after, as Python runs it: its folder is first on the path."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield import_module(request.module.__name__.rpartition("test_")[2])
    ours = [name for name, one in sys.modules.items() if str(getattr(one, "__file__", "")).startswith(f"{BENCHMARKS}/")]
    for name in ours:
        del sys.modules[name]
