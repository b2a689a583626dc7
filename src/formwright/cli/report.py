"""`formwright report`: the page of a run."""

from pathlib import Path
from typing import Annotated

from formwright.cli.options import RunSource, flag
from formwright.cli.output import echo, print_json


def report(
    source: RunSource,
    out: Annotated[Path | None, flag("The file to write (report.html in the run's folder).", None)] = None,
    as_json: Annotated[bool, flag("Print one JSON object.", None, "--json")] = False,
) -> None:
    """Write the page of a run, also while it works: one HTML file that opens without a server or network."""
    from formwright.report.page import write_page

    path = write_page(source, out)
    if as_json:
        print_json({"report": str(path)})
    else:
        echo(f"wrote {path}")
