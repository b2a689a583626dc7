"""Ask before the Python file of a study's space runs, where it came with the study."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from formwright.cli import panels
from formwright.core.errors import IllegalInput
from formwright.core.text import printable

if TYPE_CHECKING:
    from formwright.pipeline.run_folder import Opened

TrustSpaceFile = Annotated[
    bool,
    typer.Option(
        "--trust-space-file",
        help="Run the Python file of the study's space, even if you have not run it before.",
        rich_help_panel=panels.RUNNING,
    ),
]


def confirm_space(opened: "Opened", trusted: bool) -> None:
    """Ask whether the file of a study's space may run, unless this user ran it before; refuse where nobody answers."""
    from formwright.pipeline.designs import is_trusted, own_file, trust

    file = own_file(opened.search.space)
    if file is None or is_trusted(file):
        return
    told = f"the space of {opened.place.name} is the Python file {file}"
    if not file.is_file():
        raise IllegalInput(f"{told}, and there is no such file")
    told += ", which you have not run before, or which has changed since"
    if not trusted and not (sys.stdin.isatty() and typer.confirm(printable(f"{told}. Run it?"), err=True)):
        raise IllegalInput(f"{told}. Read it; if you trust it, add --trust-space-file")
    trust(file)
