"""The modelling code in a model folder, so that it loads where this package is not installed.

transformers copies the files that a module imports as ``from .name import ...``, all from one folder. So every module
that our models need becomes one file, and `formwright.nn.layer_modules` is imported as `.formwright_nn_layers`.
"""

import ast
import re
from functools import lru_cache
from hashlib import sha256
from importlib.abc import InspectLoader
from importlib.util import find_spec, resolve_name
from pathlib import Path

from formwright import __version__
from formwright.arch.card import Card
from formwright.arch.discover import own_operations
from formwright.arch.ops import Operation
from formwright.core.errors import IllegalInput
from formwright.nn.hf.config_fields import AUTO_CLASSES

_ENTRY = "formwright.nn.hf.models"
_CONFIG = "formwright.nn.hf.config"
_FRAMES = "formwright.nn.hf.frame_extractor"
_IMAGES = "formwright.nn.hf.image_processor"  # imports nothing of ours
_IMPORT = re.compile(r"from\s+[\w.]+\s+import\b")
_HEADER = f"""\
# Copied from Formwright {__version__}, so that this model loads without it. Licensed under the Apache License,
# Version 2.0: http://www.apache.org/licenses/LICENSE-2.0
"""


@lru_cache(maxsize=8)
def bundled_files(entry: str = _ENTRY, foreign: tuple[type[Operation], ...] = ()) -> dict[str, str]:
    """Return the source of every file that a model folder needs, by file name.

    `foreign` are operations of other packages that the model is made of; their declarations and modules come along.
    """
    files: dict[str, str] = {}
    ours = set()
    listed = _listed((*own_operations().values(), *foreign))
    roots = {"formwright", *(kind.__module__.split(".")[0] for kind in foreign)}
    waiting = [entry]
    while waiting:
        module = waiting.pop()
        if f"{_flat(module)}.py" not in files:
            source = listed.get(module) or _source(module)
            lines = source.splitlines(keepends=True)
            for number, name in _imports(module, source, roots):
                flat = f"from .{_flat(name)} import"
                lines[number - 1] = _IMPORT.sub(flat, lines[number - 1], count=1)
                waiting.append(name)
            files[f"{_flat(module)}.py"] = "".join(lines)
            ours |= {f"{_flat(module)}.py"} if module.startswith("formwright.") else set()
    # transformers takes a model's class from an earlier folder of the same name if the configuration's code is the same
    digest = sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest()
    ending = f"# Digest of all files: {digest}\n\n"
    return {name: f"{_HEADER if name in ours else ''}{ending}{text}" for name, text in files.items()}


def foreign_operations(card: Card) -> tuple[type[Operation], ...]:
    """List the operations of other packages that a design is made of."""
    layers = (layer for stack in card.stacks for layer in stack.layers)
    used = {type(operation) for layer in layers for _, operation in layer.operations}
    return tuple(sorted(used - set(own_operations().values()), key=lambda kind: kind.TYPE))


def _listed(found: tuple[type[Operation], ...]) -> dict[str, str]:
    """Write the two modules that look for operations, with the list of operations in them."""

    def function(head: str, places: list[tuple[str, str]], end: str) -> str:
        # imported when it is called: an operation of another package imports our vocabulary, which imports this
        imports = "".join(f"    from {module} import {name}\n" for module, name in places)
        members = "".join(f'        "{kind.TYPE}": {name},\n' for kind, (_, name) in zip(found, places, strict=True))
        return f"def {head}:\n{imports}    return {{\n{members}    }}{end}\n"

    declared = [(kind.__module__, kind.__name__) for kind in found]
    modules = [(path, name) for path, _, name in (kind.MODULE.partition(":") for kind in found)]
    return {
        "formwright.arch.discover": function("all_operations()", declared, ""),
        "formwright.nn.operation_modules": function("module_class(operation)", modules, "[operation.TYPE]"),
    }


def write_code(folder: Path, entry: str = _ENTRY, foreign: tuple[type[Operation], ...] = ()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in bundled_files(entry, foreign).items():
        (folder / name).write_text(text, encoding="utf-8")


def write_frame_extractor(folder: Path) -> None:
    write_code(folder, _FRAMES)


def write_image_processor(folder: Path) -> None:
    (folder / f"{_flat(_IMAGES)}.py").write_text(f"{_HEADER}\n{_source(_IMAGES)}", encoding="utf-8")


def auto_map() -> dict[str, str]:
    """Return the `auto_map` of `config.json`: where transformers finds the classes of `bundled_files`."""
    models = {auto: f"{_flat(_ENTRY)}.{name}" for name, auto in AUTO_CLASSES.items()}
    return {"AutoConfig": f"{_flat(_CONFIG)}.FormwrightConfig", **models}


def _flat(module: str) -> str:
    return module.replace(".", "_")


def _source(module: str) -> str:
    spec = find_spec(module)
    # `from formwright.core import codec` would import a module, which a flat folder cannot say
    if spec is None or spec.submodule_search_locations is not None:
        raise IllegalInput(f"a model folder cannot carry {module}: import names from the modules of a package")
    assert isinstance(spec.loader, InspectLoader)
    source = spec.loader.get_source(module)
    assert source is not None, module
    return source


def _imports(module: str, source: str, roots: set[str]) -> list[tuple[int, str]]:
    """List the modules of the `roots` that a module imports from, with the line of each import."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in roots for alias in node.names):
            raise IllegalInput(f"a model folder cannot carry {module}: it has to say `from ... import ...`")
        if isinstance(node, ast.ImportFrom):
            name = resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0])
            if name.split(".")[0] in roots:
                found.append((node.lineno, name))
    return found
