"""Commands whose option `--ray` may stand alone."""

from typing import Any

from typer.core import TyperCommand

OPTION, DEFAULT = "--ray", "local"


class WithRay(TyperCommand):
    """Read `--ray` without an address as a cluster on this machine; typer knows no optional values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command."""
        return super().parse_args(ctx, with_value(args))


def with_value(arguments: list[str]) -> list[str]:
    """Give `--ray` its default where no value follows it."""
    words = []
    for argument, after in zip(arguments, [*arguments[1:], "--"], strict=False):
        words += [argument, DEFAULT] if argument == OPTION and after.startswith("-") else [argument]
    return words
