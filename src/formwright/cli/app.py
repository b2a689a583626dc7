"""The `formwright` command."""

import errno
import io
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from formwright.cli import (
    bench,
    compress,
    evaluate,
    export,
    list_names,
    measure,
    predict,
    report,
    resume,
    run,
    search,
    show,
    train,
    worker,
)
from formwright.cli.options import WithRay
from formwright.cli.output import echo, note
from formwright.core.errors import FormwrightError, Unsuccessful

UNSUCCESSFUL = 1
USER_ERROR = 2
INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _InOrder(TyperGroup):
    """Show commands in the order in which a user meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


app = typer.Typer(
    cls=_InOrder,
    help="Find the transformer that fits a task, a data set and a device.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compress")(compress.compress)
app.command("list")(list_names.list_names)
app.command("show")(show.show)
app.command("search", cls=WithRay)(search.search)
app.command("resume", cls=WithRay)(resume.resume)
app.command("run")(run.run)
app.command("worker")(worker.worker)
app.command("report")(report.report)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("measure")(measure.measure)
app.command("export")(export.export)
app.command("bench")(bench.bench)


def _version(asked: bool) -> None:
    if asked:
        from formwright import __version__

        echo(f"formwright {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Find the transformer that fits a task, a data set and a device."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 2 for a user's error, 1 for a run without a result, 130 when interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a letter shows `?`
    try:
        app(args=None if arguments is None else list(arguments))
    except FormwrightError as error:
        note(f"formwright: {error}")
        sys.exit(UNSUCCESSFUL if isinstance(error, Unsuccessful) else USER_ERROR)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            note(f"formwright: a name is too long for a file: {str(error.filename)[:60]}...")
            sys.exit(USER_ERROR)
        if error.errno not in _NO_ROOM:
            raise
        note(f"formwright: cannot write the output: {error.strerror}")
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
