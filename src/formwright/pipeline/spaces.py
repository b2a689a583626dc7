"""Spaces by name, or out of a file of the user's own, which is a program: it runs only where its user trusts it.

Opening a study runs no code: `readable_space` gives no space for such a file, and cards are in the log. A search runs
the file that its command line names, and remembers it for this user; going on with a study runs a file that this user
has run before, in the same place and with the same content, and any other only when told to.
"""

import hashlib
import importlib.util
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.files import read_regular
from formwright.core.options import PythonObject
from formwright.core.protocols import Space as SpaceLike
from formwright.space.space import Space
from formwright.space.zoo import load_space


def own_file(name: Any) -> Path | None:
    """Give the Python file of a space that is named `FILE.py:NAME`; None for any other space."""
    if not isinstance(name, str):
        return None
    file, colon, _ = name.rpartition(":")
    return Path(file) if colon and file.endswith(".py") else None


def readable_space(name: str) -> Space | None:
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


def find_space(name: Any) -> Space:
    """Find a space by its name, or `FILE.py:NAME` in a file of the user's own, which runs; or take it as it is."""
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
