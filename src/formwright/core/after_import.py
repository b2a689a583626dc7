"""Do something once a module that is not ours has been imported, without importing it ourselves."""

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def after_import(module: str, then: str) -> None:
    """Call `then`, a ``"module:function"``, as soon as `module` has been imported; at once if it already has been.

    Where `then` cannot be imported there is a warning, for the user of `module` may not need it.
    """
    if module in sys.modules:
        _call(then)
    else:
        sys.meta_path.insert(0, _Watch(module, then))


def _call(target: str) -> None:
    name, _, function = target.partition(":")
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        warnings.warn(f"{name} cannot be used here: {error}", RuntimeWarning, stacklevel=2)
    else:
        getattr(module, function)()


class _Watch(MetaPathFinder):
    """Find nothing but the one module, and that with a loader that calls when it is done."""

    def __init__(self, module: str, then: str) -> None:
        self._module, self._then = module, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)  # so that the search below asks the others, and nothing is called twice
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenCall(spec.loader, self._then)
        return spec


class _ThenCall(Loader):
    """Load as the real loader does, step out of its way, and call."""

    def __init__(self, loader: Loader, then: str) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _call(self._then)
