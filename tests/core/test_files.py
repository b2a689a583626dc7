import os
from pathlib import Path

import pytest

from formwright.core.files import write_whole


@pytest.mark.parametrize(("content", "expected"), [("grüße\n", "grüße\n".encode()), (b"\x00\xff", b"\x00\xff")])
def test_what_is_written_is_there_and_nothing_else(tmp_path: Path, content: str | bytes, expected: bytes) -> None:
    write_whole(tmp_path / "file", "before")
    write_whole(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "file", "before")

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError("no room")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="no room"):
        write_whole(tmp_path / "file", "behind")
    assert (tmp_path / "file").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_two_processes_use_two_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        drafts.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    for process in (7, 8):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        write_whole(tmp_path / "file", "text")
    assert len(set(drafts)) == 2


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_device_is_written_to() -> None:
    write_whole(Path(os.devnull), "text")
    assert not Path(os.devnull).is_file()


def test_a_long_name_leaves_room_for_the_draft(tmp_path: Path) -> None:
    write_whole(tmp_path / ("n" * 250), "text")
    assert (tmp_path / ("n" * 250)).read_text() == "text"
