"""Imports of what an optional extra brings."""

import importlib
from types import ModuleType

from formwright.core.errors import MissingExtra


def need(module: str, extra: str) -> ModuleType:
    """Import and return `module`, or raise `MissingExtra` with the line that installs `extra`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # a module that is there but lacks something of its own is a broken installation, not a missing extra
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise MissingExtra(module, extra) from error
        raise
