"""Folders are written whole or not at all, and nothing foreign is replaced."""

from pathlib import Path

import pytest
from tests.nn.hf.helpers import DESIGNS

from formwright.core.errors import IllegalInput
from formwright.nn.hf.folders import CARD, whole_folder

CANONICAL = DESIGNS["bert"][0].canonical


def write(target: Path, text: str, *, force: bool = False) -> None:
    with whole_folder(target, force=force) as part:
        (part / CARD).write_bytes(CANONICAL)
        (part / "text").write_text(text, encoding="utf-8")


def test_the_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "model"
    with whole_folder(target) as part:
        assert not target.exists()
        assert part.parent == target.parent
        (part / "text").write_text("all", encoding="utf-8")
    assert (target / "text").read_text(encoding="utf-8") == "all"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_nothing(error: type[BaseException], tmp_path: Path) -> None:
    def fail() -> None:
        with whole_folder(tmp_path / "model") as part:
            (part / "text").write_text("half", encoding="utf-8")
            raise error

    with pytest.raises(error):
        fail()
    assert not list(tmp_path.iterdir())


def test_an_error_keeps_the_model_that_was_there(tmp_path: Path) -> None:
    write(tmp_path / "model", "old")

    def fail() -> None:
        with whole_folder(tmp_path / "model", force=True):
            raise OSError(28, "No space left on device")

    with pytest.raises(IllegalInput, match=r"cannot write .*model: No space left on device"):
        fail()
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_our_own_folder_is_replaced_when_forced(tmp_path: Path) -> None:
    write(tmp_path / "model", "old")
    with pytest.raises(IllegalInput, match="--force"):
        write(tmp_path / "model", "new")
    write(tmp_path / "model", "new", force=True)
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_empty_folder_is_taken_over_and_a_link_followed(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to("model")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "model" / "text").is_file()


@pytest.mark.parametrize("content", [None, b"{}", b"no card"])
def test_what_is_not_ours_is_never_replaced(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("years of work", encoding="utf-8")
    if content is not None:
        (tmp_path / "model" / CARD).write_bytes(content)
    with pytest.raises(IllegalInput, match="not an exported model"):
        write(tmp_path / "model", "new", force=True)
    assert (tmp_path / "model" / "thesis.txt").is_file()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("", encoding="utf-8")
    with pytest.raises(IllegalInput, match="is a file"):
        write(tmp_path / "model", "new", force=True)


def test_what_another_export_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    def both() -> None:
        with whole_folder(tmp_path / "model") as part:
            (part / "text").write_text("late", encoding="utf-8")
            write(tmp_path / "model", "early")

    with pytest.raises(IllegalInput, match="holds an exported model already"):
        both()
    assert (tmp_path / "model" / "text").read_text(encoding="utf-8") == "early"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["x" * 255, "\N{GRINNING FACE}" * 63, "a 'b\" \n c"])
def test_a_folder_may_have_any_name_that_the_system_allows(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "old")
    write(tmp_path / name, "new", force=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    (tmp_path / "made").mkdir()
    assert (tmp_path / name).stat().st_mode == (tmp_path / "made").stat().st_mode
