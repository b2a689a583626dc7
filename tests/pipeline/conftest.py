"""Databases for the tests of pipelines: those of the tests of studies."""

from tests.study.conftest import open_store, postgres, url

__all__ = ["open_store", "postgres", "url"]
