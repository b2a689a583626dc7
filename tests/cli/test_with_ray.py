"""`--ray` may stand alone."""

import pytest
from tests.cli.conftest import Run

from formwright.cli.with_ray import with_value


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([], []),
        (["--ray"], ["--ray", "local"]),
        (["a", "--ray", "--workers", "1"], ["a", "--ray", "local", "--workers", "1"]),
        (["--ray", "ray://host:10001", "a"], ["--ray", "ray://host:10001", "a"]),
        (["--ray=host:1", "a"], ["--ray=host:1", "a"]),
        (["--workers", "1"], ["--workers", "1"]),
    ],
)
def test_without_an_address_ray_runs_here(given: list[str], read: list[str]) -> None:
    assert with_value(given) == read


@pytest.mark.parametrize("command", ["search", "resume"])
def test_a_command_takes_the_bare_option(command: str, run: Run) -> None:
    done = run(command, "--ray")
    assert done.code == 2
    assert "requires an argument" not in done.err
    assert "Missing" in done.err
