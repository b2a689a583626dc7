"""`formwright compress --recipe nas-bert` on a tiny BERT, with times that follow from the designs alone."""

from pathlib import Path

from tests.pipeline.block_runs import SIZES, pretended_times, text
from tests.pipeline.compressions import bert

from formwright.cli.app import main

QUICK = ("--batch", 8, "--length", 12, "--save-every", 2)
STEPS = ("--set", "blocks.rounds=1", "--set", "blocks.steps=4", "--set", "students.steps=4")


def line(folder: Path, *options: object, out: str = "out", sizes: str = SIZES) -> list[str]:
    """Give the arguments of a quick compression; `folder` gets a model and a text where there is none."""
    model = folder / "bert" if (folder / "bert").is_dir() else bert(folder)
    own = ("--sizes", sizes, "--text", text(folder), "--device", "cpu", "--workers", 1, "--out", folder / out)
    return [str(part) for part in ("compress", model, "--recipe", "nas-bert", *own, *QUICK, *STEPS, *options)]


if __name__ == "__main__":  # for tests that kill the command: measuring takes longer than all the rest
    with pretended_times():
        main()
