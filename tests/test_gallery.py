"""The drawings in the documentation are those that are drawn today."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_gallery", DOCS / "draw_gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_drawing_is_up_to_date(gallery: ModuleType, tmp_path: Path) -> None:
    gallery.draw(tmp_path)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert len(drawn) == len(gallery.CARDS) + 1
    for name, drawing in drawn.items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == drawing, f"run docs/draw_gallery.py for {name}"
