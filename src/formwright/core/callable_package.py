"""Packages that are functions too: `formwright.search` holds the searchers, and `formwright.search(...)` searches."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package that calls `__target__`, a `module:function`, when it is called.

    A package and a function of the front door may have one name: whichever is imported first, both work.
    """

    __target__: str

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.__wrapped__(*arguments, **options)

    @property
    def __wrapped__(self) -> Any:
        module, _, function = self.__target__.partition(":")
        return getattr(import_module(module), function)


def call_package(name: str, target: str) -> None:
    """Make a package, which is being imported, callable."""
    package = sys.modules[name]
    package.__class__ = CallablePackage
    package.__target__ = target  # type: ignore[attr-defined]
