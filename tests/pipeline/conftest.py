"""Databases for the tests of pipelines, and the command line: those of the tests of studies and of commands."""

from tests.cli.conftest import run
from tests.study.conftest import open_store, postgres, url

__all__ = ["open_store", "postgres", "run", "url"]
