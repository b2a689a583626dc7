"""`formwright report`: the page of a study."""

from pathlib import Path
from typing import Annotated

import typer

from formwright.cli.options import StudySource
from formwright.cli.output import echo, print_json
from formwright.core.errors import IllegalInput


def report(
    source: StudySource,
    out: Annotated[Path | None, typer.Option(help="The file to write (report.html in the study's folder).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write the page of a study, also while it runs: one HTML file that opens without a server or network."""
    from formwright.report.page import write_report
    from formwright.study.place import find
    from formwright.study.spaces import readable_space

    place = find(source)
    path = out or place.folder / "report.html"
    with place.open() as opened:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_report(opened.log, readable_space(opened.config.space), path)
        except OSError as error:
            raise IllegalInput(
                f"cannot write {path}: {error.strerror or error}; name another file with --out"
            ) from None
    if as_json:
        print_json({"report": str(path)})
    else:
        echo(f"wrote {path}")
