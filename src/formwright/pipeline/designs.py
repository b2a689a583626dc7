"""Designs by name: a space, a published card, or a file that holds a card."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalDesign, IllegalInput, nearest

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space

LARGEST = 1 << 24  # bytes of a card's file; enough for 100,000 layers, and reading never fills the memory


@dataclass(frozen=True)
class NamedCard:
    """A card and what to call it."""

    name: str
    card: "Card"


def absolute(name: str) -> str:
    """Make the path of a file or folder absolute, so that a run is resumed from anywhere; a published name stays."""
    from formwright.space.zoo import CARDS, SPACES

    published = not _is_a_path(name) and name in (*SPACES.names(), *CARDS.names())
    is_path = os.path.isdir(name) or (not published and (_is_a_path(name) or os.path.isfile(name)))
    return os.path.abspath(name) if is_path else name


def find(name: str) -> "Space | NamedCard":
    """Find a space or a card by name, or read a card from a file."""
    from formwright.space.zoo import CARDS, SPACES

    if _is_a_path(name):
        return read_card(Path(name))
    if name in SPACES.names():
        return SPACES.get(name)
    if name in CARDS.names():
        return NamedCard(name, CARDS.get(name))
    if os.path.isfile(name):  # last, so that what a published name means does not depend on the folder one stands in
        return read_card(Path(name))
    close = nearest(name, [*SPACES.names(), *CARDS.names()])
    hint = f" Nearest: {close[0]!r}." if close else ""
    raise IllegalInput(
        f"no space, card or file is called {name!r}.{hint} See `formwright list spaces` and `formwright list cards`."
    )


def read_card(path: Path) -> NamedCard:
    """Read a card from a JSON file; every fault of it is named with the file."""
    from formwright.arch.card import Card

    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise IllegalInput(f"cannot read {path}: {error.strerror or error}") from None
    if len(text) > LARGEST:
        raise IllegalInput(f"cannot read {path}: it holds more than {LARGEST:,} bytes, and no card does")
    try:
        return NamedCard(path.stem, Card.from_json(_card_within(Card.parse(text))))
    except IllegalDesign as error:
        raise IllegalDesign(error.faults, what=f"card in {path}") from None


def _card_within(data: Any) -> Any:
    """Take the card out of what `formwright show CARD --json` printed, or the data as it is."""
    shown = isinstance(data, dict) and data.get("kind") == "card" and "card" in data
    return data["card"] if shown else data


def _is_a_path(name: str) -> bool:
    return name.endswith(".json") or "/" in name or "\\" in name
