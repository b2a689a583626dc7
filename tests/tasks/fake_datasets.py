"""A `datasets` library that gives what a test wants."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest


@dataclass(frozen=True)
class Feature:
    """A column's type, as the library describes it."""

    dtype: str


@dataclass(frozen=True)
class Classes(Feature):
    """A column of classes."""

    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Lists(Feature):
    """A column of lists."""

    feature: Feature = field(default_factory=lambda: Feature("string"))


@dataclass(frozen=True)
class Split:
    """A split, as the library hands it out."""

    features: dict[str, Feature]
    columns: dict[str, list[Any]]

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]


Give = Callable[[Any], list[tuple[str, str | None]]]


@pytest.fixture(name="give")
def fake_library(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Install a `datasets` library that gives one dataset, or raises one error; return what it is asked for."""

    def call(found: Any) -> list[tuple[str, str | None]]:
        asked = []

        def load_dataset(name: str, config: str | None) -> Any:
            asked.append((name, config))
            if isinstance(found, Exception):
                raise found
            return found

        library = ModuleType("datasets")
        library.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", library)
        return asked

    return call
