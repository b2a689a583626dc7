"""Find every operation: ours, one file or more in `formwright.arch.operations`, and those of installed packages.

A model folder carries our code as flat files, among which nothing can be searched: there `formwright.nn.hf` writes this
module with the list of classes in it.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

import formwright.arch.operations
from formwright.arch.operations.base import Operation
from formwright.core.errors import IllegalInput
from formwright.core.registry import Registry

_ALL = ("TYPE", "MODULE", "PLACES", "SWATCH")


@lru_cache(maxsize=1)
def own_operations() -> Mapping[str, type[Operation]]:
    """Return the operations of this package by type."""
    package = formwright.arch.operations
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    classes = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Operation) and kind.__module__ == module.__name__
    ]
    return {kind.TYPE: kind for kind in classes if kind is not Operation}


@lru_cache(maxsize=1)
def all_operations() -> Mapping[str, type[Operation]]:
    """Return the operations of this and of all installed packages by type; raise if one is not declared in full."""
    table = {name: f"{kind.__module__}:{kind.__name__}" for name, kind in own_operations().items()}
    registry: Registry[type[Operation]] = Registry("operation", table, "formwright.operations", (type,))
    found = {name: registry.get(name) for name in registry.names()}
    for name, kind in found.items():
        missing = [one for one in _ALL if not hasattr(kind, one)]
        if not issubclass(kind, Operation) or missing or name != kind.TYPE:
            lacks = f"its {', '.join(missing)}" if missing else f"TYPE {name!r}, the name of its entry point"
            raise IllegalInput(f"the operation {name!r} ({kind.__module__}:{kind.__name__}) does not declare {lacks}")
    ours = {name: found.pop(name) for name in own_operations()}
    return ours | found
