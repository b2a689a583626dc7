"""Spaces by name, or out of a file of the user's own."""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.space.zoo.elastic_choices import ElasticChoices


def find_space(name: str) -> Space:
    """Find a space by its name, or `FILE.py:NAME` in a file of the user's own, which is run for that.

    `FILE.json` is the space of an encoder's sub-networks, as `ElasticChoices` writes it.
    """
    if name.endswith(".json"):
        return read_choices(Path(name)).space
    file, colon, attribute = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        return load_space(name)
    found = getattr(_module(Path(file)), attribute, None)
    if not isinstance(found, Space):
        raise IllegalInput(f"{file} has no search space called {attribute!r}; make one with formwright.space.Space")
    return found


def read_choices(file: Path) -> ElasticChoices:
    """Read what the sub-networks of an encoder may be."""
    try:
        return ElasticChoices.from_json(json.loads(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise IllegalInput(f"cannot read the search space {file}: {error}") from None


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
