"""Run a part of a test in a process of its own: what kills that process is a failure to read, not the end of pytest."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def in_own_process(subject: Callable[..., None], *arguments: object, code: int = 0) -> str:
    """Call a function of a test module with some words, in another process, and return what it printed.

    Its exit code is checked; an assertion that fails there is shown with its traceback, and so is a crash.
    """
    paths = filter(None, (str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")))
    words = [subject.__module__, subject.__qualname__, *map(str, arguments)]
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.own_process", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, f"exit code {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(*sys.argv[3:])
