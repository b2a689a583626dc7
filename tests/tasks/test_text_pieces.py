"""Text to learn from: builtin, published, and of the user's own."""

import gzip
from pathlib import Path

import pytest
from tests.pipeline.block_runs import text

from formwright.core.errors import IllegalInput
from formwright.tasks.text_pieces import read_text


def test_the_builtin_prose_is_cut_into_pieces() -> None:
    found = read_text("", None, 32)
    assert len(found.learned) > 5 * len(found.held) > 500
    assert all(3 <= len(piece.split()) <= 24 for piece in found.learned.texts)
    assert not set(found.learned.texts[:2000]) & set(found.held.texts[:50])


def test_a_tenth_of_an_own_file_is_held_out(tmp_path: Path) -> None:
    found = read_text(str(text(tmp_path, 100)), None, 64)
    assert (len(found.learned), len(found.held)) == (90, 10)
    assert not set(found.learned.texts) & set(found.held.texts)


@pytest.mark.parametrize("name", ["wikitext", "wikitext-2"])
@pytest.mark.parametrize("folder", ["", "wikitext-2"])
@pytest.mark.parametrize("packed", [False, True])
def test_wikitext_is_found_in_its_folder(tmp_path: Path, name: str, folder: str, packed: bool) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for part in ("train", "valid"):
        content = "\n".join(f" = Heading = \n the {part} paragraph number {number}" for number in range(30)).encode()
        file = f"{part}.txt{'.gz' if packed else ''}"
        (tmp_path / folder / file).write_bytes(gzip.compress(content) if packed else content)
    found = read_text(name, tmp_path, 64)
    assert "the train paragraph number 7" in found.learned.texts
    assert "the valid paragraph number 7" in found.held.texts


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a b c", encoding="utf-8")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "train.txt.gz").write_bytes(b"no gzip")
    for name, data, why in (
        (str(tmp_path / "absent.txt"), None, "cannot read the text"),
        (str(tmp_path / "short.txt"), None, "has 1 pieces"),
        (str(tmp_path / "binary.txt"), None, "not text in UTF-8"),
        ("wikitext", None, "with --data"),
        ("wikitext", tmp_path / "nowhere", "holds no WikiText-2"),
        ("wikitext", tmp_path, "cannot read the text"),
        ("", tmp_path, "other texts need none"),
    ):
        with pytest.raises(IllegalInput, match=why):
            read_text(name, data, 64)


@pytest.mark.data
def test_the_published_wikitext_is_read(data_dir: Path) -> None:
    found = read_text("wikitext", data_dir / "wikitext-2", 64)
    assert len(found.learned) > 30_000
    assert len(found.held) > 3_000
