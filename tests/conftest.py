"""Settings and fixtures that every test shares."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# Two cores and many property tests: few examples each, no deadline. CI repeats the same examples every time,
# developers see new ones.
settings.register_profile("fast", max_examples=60, deadline=None, derandomize="CI" in os.environ)
settings.load_profile("fast")
# Tests run side by side, one process for each core: more threads than that only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What the tests trust is nobody's business: the record of the user who runs them stays as it is.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="formwright-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def data_dir(pytestconfig: pytest.Config) -> Path:
    """Give the folder of published data sets, for tests marked `data`."""
    folder = pytestconfig.rootpath.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.fail(f"{folder} is missing; leave the data tests out with: pytest -m 'not data'")
    return folder
