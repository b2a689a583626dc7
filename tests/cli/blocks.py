"""`formwright compress --recipe nas-bert` on a tiny BERT, with times that follow from the designs alone."""

from pathlib import Path

from tests.compress.blockwise.small import SIZES, pretended, text
from tests.compress.tiny import bert

import formwright.cli.compress_blocks
from formwright.cli.app import main

QUICK = ("--rounds", 1, "--steps", 4, "--student-steps", 4, "--batch", 8, "--length", 12, "--save-every", 2)


def line(folder: Path, *options: object, out: str = "out", sizes: str = SIZES) -> list[str]:
    """Give the arguments of a quick compression; `folder` gets a model and a text where there is none."""
    model = folder / "bert" if (folder / "bert").is_dir() else bert(folder)
    own = ("--sizes", sizes, "--text", text(folder), "--device", "cpu", "--workers", 1, "--out", folder / out)
    return [str(part) for part in ("compress", model, "--recipe", "nas-bert", *own, *QUICK, *options)]


if __name__ == "__main__":  # for tests that kill the command: measuring takes longer than all the rest
    formwright.cli.compress_blocks.quick = lambda *_: pretended  # type: ignore[assignment]
    main()
