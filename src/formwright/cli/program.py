"""How this program was called, and how to call it again."""

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from formwright.core.text import without_password

NAME = "formwright"


def call(*arguments: object) -> str:
    """Give the line that calls this program again from the same shell: by its path where its name is not enough."""
    return shlex.join([*_program(), *map(str, arguments)])


def command_line(arguments: Iterable[str]) -> str:
    """Give a command line to be kept and shown: under the program's name, and without passwords."""
    return shlex.join([NAME, *map(without_password, arguments)])


def _program() -> list[str]:
    called = Path(sys.argv[0])
    if called.stem != NAME or called.suffix not in ("", ".exe") or not called.is_file():
        return [NAME]  # as a module, or from a program of someone else
    known = shutil.which(NAME)
    return [NAME] if known is not None and Path(known).resolve() == called.resolve() else [str(called)]
