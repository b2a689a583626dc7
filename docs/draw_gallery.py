"""Redraw the designs of the documentation: `python docs/draw_gallery.py`.

All of them are what `formwright show NAME --svg FILE` writes. The Transformer is also drawn as a design of the Evolved
Transformer's space, in the same shapes as the cells that were found from it; the file of its card is `show`n alike.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from formwright.cli.app import main
from formwright.space.zoo.evolved_transformer import PUBLISHED, SPACE, transformer

IMAGES = Path(__file__).parent / "images"
CARDS = ("flexibert-mini", "autobert-zero-layer-2", "autobert-zero-layer-12", "evolved-transformer-base")
AS_CELLS = "transformer-as-cells"


def draw(folder: Path) -> None:
    """Write every drawing into a folder."""
    for name in CARDS:
        _show(name, folder / f"{name}.svg")
    with tempfile.TemporaryDirectory() as place:
        card = Path(place) / f"{AS_CELLS}.json"
        card.write_text(json.dumps(SPACE.card(transformer(PUBLISHED)).to_json()), encoding="utf-8")
        _show(str(card), folder / f"{AS_CELLS}.svg")


def _show(name: str, path: Path) -> None:
    try:
        main(["show", name, "--svg", str(path)])
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
