"""From an operation of a card to the module that runs it.

A model folder carries our code as flat files, which have other names: there `formwright.nn.hf` writes this module with
the list of classes in it.
"""

from importlib import import_module

from torch import nn

from formwright.arch.ops import Operation
from formwright.core.errors import IllegalInput


def module_class(operation: Operation) -> type[nn.Module]:
    """Import the class that an operation names in `MODULE`."""
    path, _, name = operation.MODULE.partition(":")
    try:
        found: type[nn.Module] = getattr(import_module(path), name)
    except (ImportError, AttributeError) as error:
        raise IllegalInput(
            f"the operation {operation.TYPE!r} names the module {operation.MODULE}, which cannot be loaded: {error}"
        ) from error
    return found
