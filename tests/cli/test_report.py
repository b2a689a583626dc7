import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.pipeline.cases import create, own_rows, work

from formwright.pipeline.study_place import Place
from formwright.study.stop import Stop


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Give a study that still runs: two trials are done, another one is under way."""
    found = create(tmp_path / "films", own_rows(tmp_path, stop=Stop(2)))
    work(found)
    with found.open() as opened:
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 3}})
        data = opened.log.read()[0].data
        opened.log.ask(2, "me", 60, dict(data))
        yield found


def check_page(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!")
    assert "films" in page
    assert "synflow" in page
    assert "</html>" in page


def test_the_page_of_a_running_study(run: Run, place: Place) -> None:
    done = run("report", place.folder)
    assert (done.code, done.out) == (0, f"wrote {place.folder / 'report.html'}\n")
    check_page(place.folder / "report.html")


def test_the_page_may_go_elsewhere(run: Run, place: Place, tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    assert run("report", f"sqlite:///{place.storage}#films", "--out", path, "--json").data == {"report": str(path)}
    check_page(path)
    assert not (place.folder / "report.html").exists()


def test_a_page_that_cannot_be_written(run: Run, place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("report", place.folder, "--out", tmp_path / "file" / "page.html").refused()
    assert done.err.startswith(f"formwright: cannot write {tmp_path / 'file' / 'page.html'}: ")


@pytest.mark.parametrize("name", [".", "folder"])
def test_a_folder_is_not_written(
    name: str, run: Run, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    run("report", place.folder, "--out", name).refused(f"cannot write {name}: Is a directory")
    assert [path.name for path in Path().iterdir()] == ["folder"]


def test_a_device_is_written_to_and_stays_one(run: Run, place: Place, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        page = pool.submit(pipe.read_text, encoding="utf-8")
        assert run("report", place.folder, "--out", pipe).code == 0
    assert "</html>" in page.result()
    assert pipe.is_fifo()


def test_a_study_without_trials_has_a_page(run: Run, tmp_path: Path) -> None:
    place = create(tmp_path / "films", own_rows(tmp_path))
    assert run("report", place.folder).code == 0
    check_page(place.folder / "report.html")
