"""The modelling code in a model folder, so that it loads where this package is not installed.

transformers copies the files that a module imports as ``from .name import ...``, all from one folder. So every module
that our models need becomes one file, and `formwright.nn.layer_modules` is imported as `.formwright_nn_layers`.
"""

import ast
import re
from functools import lru_cache
from hashlib import sha256
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pathlib import Path

from formwright import __version__
from formwright.nn.hf.config_fields import AUTO_CLASSES

_ENTRY = "formwright.nn.hf.models"
_CONFIG = "formwright.nn.hf.config"
_IMAGES = "formwright.nn.hf.image_processor"  # imports nothing of ours
_IMPORT = re.compile(r"from\s+(formwright(?:\.\w+)+)\s+import\b")
_HEADER = f"""\
# Copied from Formwright {__version__}, so that this model loads without it. Licensed under the Apache License,
# Version 2.0: http://www.apache.org/licenses/LICENSE-2.0
"""


@lru_cache(maxsize=1)
def bundled_files() -> dict[str, str]:
    """Return the source of every file that a model folder needs, by file name."""
    files: dict[str, str] = {}
    waiting = [_ENTRY]
    while waiting:
        module = waiting.pop()
        if f"{_flat(module)}.py" not in files:
            source = _source(module)
            lines = source.splitlines(keepends=True)
            for number, name in _imports(source):
                flat = f"from .{_flat(name)} import"
                lines[number - 1] = _IMPORT.sub(flat, lines[number - 1])
                waiting.append(name)
            files[f"{_flat(module)}.py"] = "".join(lines)
    # transformers takes a model's class from an earlier folder of the same name if the configuration's code is the same
    digest = sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest()
    return {name: f"{_HEADER}# Digest of all files: {digest}\n\n{text}" for name, text in files.items()}


def write_code(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in bundled_files().items():
        (folder / name).write_text(text, encoding="utf-8")


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
    assert spec is not None, module
    # `from formwright.core import codec` would import a module, which a flat folder cannot say
    assert spec.submodule_search_locations is None, f"import names from the modules of {module}"
    assert isinstance(spec.loader, InspectLoader)
    source = spec.loader.get_source(module)
    assert source is not None, module
    return source


def _imports(source: str) -> list[tuple[int, str]]:
    """List our own modules that a module imports from, with the line of each import."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "formwright" for alias in node.names), ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, ast.unparse(node)
            assert not node.level, ast.unparse(node)
            if node.module.split(".")[0] == "formwright":
                found.append((node.lineno, node.module))
    return found
