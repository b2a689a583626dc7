"""Designs and spaces by name, or out of a file of the user's own: a card, or a program that makes a space.

A program runs only where its user trusts it. Opening a study runs no code: `readable_space` gives no space for such a
file, and cards are in the log. A search runs the file that its command line names, and remembers it for this user;
going on with a study runs a file that this user has run before, in the same place and with the same content, and any
other only when told to.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalDesign, IllegalInput, nearest_hint
from formwright.core.files import read_regular

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.space.space import Space


def own_file(name: Any) -> Path | None:
    """Give the Python file of a space that is named `FILE.py:NAME`; None for any other space."""
    if not isinstance(name, str):
        return None
    file, colon, _ = name.rpartition(":")
    return Path(file) if colon and file.endswith(".py") else None


def readable_space(name: str) -> "Space | None":
    """Find a space by name without running any code; None where that would take a file of the user's own."""
    return None if own_file(name) is not None else find_space(name)


def is_trusted(file: Path) -> bool:
    """Tell whether this user has run or trusted a file before, in the same place and with the same content."""
    try:
        return _known_as(file) in _record().read_text(encoding="utf-8").splitlines()
    except OSError:
        return False


def trust(file: Path) -> None:
    """Remember that this user runs a file; where that cannot be written, the user is asked again."""
    with suppress(OSError):
        if not is_trusted(file):
            _record().parent.mkdir(parents=True, exist_ok=True)
            with _record().open("a", encoding="utf-8") as record:
                record.write(f"{_known_as(file)}\n")


def _known_as(file: Path) -> str:
    """Name a file by content and place, as sha256sum does: the same program may do other things in another folder."""
    return f"{hashlib.sha256(read_regular(file)).hexdigest()}  {file.resolve()}"


def _record() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "formwright" / "trusted-spaces"


def find_space(name: Any) -> "Space":
    """Find a space by its name, or `FILE.py:NAME` in a file of the user's own, which runs; or take it as it is."""
    from formwright.core.options import PythonObject
    from formwright.core.protocols import SpaceLike
    from formwright.space.space import Space
    from formwright.space.zoo import load_space

    if not isinstance(name, str):
        found = name.checked if isinstance(name, PythonObject) else name
        if not isinstance(found, SpaceLike):
            raise IllegalInput(f"a space is needed, or the name of one (`formwright list spaces`), not {found!r}")
        return found  # type: ignore[return-value]
    file, attribute = own_file(name), name.rpartition(":")[2]
    if file is None:
        return load_space(name)
    found = getattr(_module(file), attribute, None)
    if not isinstance(found, Space):
        raise IllegalInput(f"{file} has no search space called {attribute!r}; make one with formwright.space.Space")
    return found


def _module(file: Path) -> Any:
    if not file.is_file():
        raise IllegalInput(f"there is no file {file}")
    # the same in every process, so that what one pickles another one reads
    name = f"formwright_user_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that what it defines can be pickled
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a file of the user's own does wrong
        del sys.modules[name]
        raise IllegalInput(f"cannot run {file}: {type(error).__name__}: {error}") from error
    return module


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

    if os.path.isdir(name) and name not in (*SPACES.names(), *CARDS.names()):
        raise IllegalInput(
            f"{name} is a folder, and neither that of a run (run.json) nor that of a model (card.json); if it has "
            f"rows of a task, say task:{name}"
        )
    if _is_a_path(name):
        return read_card(Path(name))
    if name in SPACES.names():
        return SPACES.get(name)
    if name in CARDS.names():
        return NamedCard(name, CARDS.get(name))
    if os.path.isfile(name):  # last, so that what a published name means does not depend on the folder one stands in
        return read_card(Path(name))
    hint = nearest_hint(name, [*SPACES.names(), *CARDS.names()])
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
        data = Card.parse(text)
        if isinstance(data, dict) and data.get("kind") == "card" and "card" in data:
            data = data["card"]  # of what `formwright show CARD --json` printed
        return NamedCard(path.stem, Card.from_json(data))
    except IllegalDesign as error:
        raise IllegalDesign(error.faults, what=f"card in {path}") from None


def _is_a_path(name: str) -> bool:
    return name.endswith(".json") or "/" in name or "\\" in name


def card_facts(named: NamedCard, length: int) -> dict[str, Any]:
    """Give a design with its digests and its costs at `length` tokens in a row."""
    from formwright.arch.graph import graph_digest
    from formwright.cost import all_costs

    costs = all_costs(named.card, length)
    return {
        "kind": "card",
        "name": named.name,
        "family": named.card.family,
        "digest": named.card.digest,
        "graph_digest": graph_digest(named.card),
        "length": length,
        "params": costs["params"],
        "macs": costs["macs"],
        "costs": costs,
        "card": named.card.to_json(),
    }


def space_facts(space: "Space") -> dict[str, Any]:
    """Give the size of a space, and its genes with their options."""
    genes = [
        {"where": line.where, "options": list(line.options), "remark": line.remark} for line in space.root.outline()
    ]
    return {"kind": "space", "name": space.name, "count": space.count(), "about": space.about, "genes": genes}


def samples(space: "Space", number: int, seed: int) -> Iterator[tuple[NamedCard, Any]]:
    """Draw designs one at a time, so that any number of them fits into memory, each with its JSON."""
    from formwright.core.rng import derive

    rng = derive(seed, "show", space.name)
    for index in range(number):
        design = space.sample(rng)
        yield NamedCard(f"{space.name}, sample {index} of seed {seed}", space.card(design)), space.to_json(design)
