"""Operations are found by what is there: in our folder, and in installed packages that name theirs."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest

from formwright.arch import operations as folder
from formwright.arch.card import Card, card_schema
from formwright.arch.discover import all_operations, own_operations
from formwright.arch.ops import Identity, Operation, Swatch, operations_at
from formwright.core.errors import IllegalDesign, IllegalInput


class Whole(Operation):
    """Do nothing, elsewhere."""

    TYPE: ClassVar[str] = "whole"
    MODULE: ClassVar[str] = Identity.MODULE
    PLACES: ClassVar = ("mixer",)
    SWATCH: ClassVar[Swatch] = Swatch("nothing", "#123456", "x")


class Half(Operation):
    """Lack a colour and a place."""

    TYPE: ClassVar[str] = "half"
    MODULE: ClassVar[str] = Identity.MODULE


CARD = {
    "schema": 1,
    "encoder": {
        "embedding": {"type": "tokens", "vocabulary": 9, "width": 8},
        "layers": [{"type": "block", "width": 8, "mixer": {"type": "whole"}}],
    },
}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Pretend that packages with these entry points are installed."""
    names: dict[str, str] = {}
    monkeypatch.setattr(
        "formwright.core.registry.entry_points",
        lambda group: [EntryPoint(name, f"{__name__}:{kind}", group) for name, kind in names.items()],
    )
    caches = (all_operations, operations_at)
    for one in caches:
        one.cache_clear()
    yield names
    for one in caches:
        one.cache_clear()


def test_every_file_of_the_folder_is_looked_at() -> None:
    files = {path.stem for path in Path(folder.__path__[0]).glob("*.py")} - {"__init__", "base"}
    assert {kind.__module__.rsplit(".")[-1] for kind in own_operations().values()} == files


def test_an_operation_of_another_package_may_stand_in_a_card(installed: dict[str, str]) -> None:
    with pytest.raises(IllegalDesign, match="whole"):
        Card.from_json(CARD)
    installed["whole"] = "Whole"
    all_operations.cache_clear()
    operations_at.cache_clear()
    card = Card.from_json(CARD)
    assert card.encoder is not None
    assert card.encoder.layers[0].mixer == Whole()  # type: ignore[union-attr]
    assert card.to_json() == CARD
    assert "Whole" in card_schema()["$defs"]


@pytest.mark.parametrize(("name", "kind", "missing"), [("half", "Half", "PLACES, SWATCH"), ("other", "Whole", "other")])
def test_an_incomplete_declaration_is_refused(installed: dict[str, str], name: str, kind: str, missing: str) -> None:
    installed[name] = kind
    with pytest.raises(IllegalInput, match=missing):
        all_operations()
