"""Names, labels and reasons of others never command the terminal, wherever a command prints them."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.test_study_view import ask
from tests.pipeline.cases import films_study

from formwright.cli.output import cell, note, print_entries, print_json, print_table
from formwright.cli.study_view import StudyView
from formwright.core.records import Observation, Spent

CLEAR = "\x1b[2J"  # clears the screen
TITLE = "\x1b]0;mine\x07"  # renames the window
EVIL = f"a{CLEAR}{TITLE}\x9b31m\rb"


def harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_tables_lines_and_json_escape(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    print_table([EVIL, f">{EVIL}"], [(EVIL, EVIL)])
    monkeypatch.setenv("COLUMNS", "10")
    print_entries([EVIL, EVIL], [(EVIL, EVIL)])
    note(EVIL)
    print_json({EVIL: EVIL})
    seen = capsys.readouterr()
    assert harmless(seen.out + seen.err)
    assert r"\x1b[2J" in seen.out
    assert r"\x1b[2J" in seen.err
    assert harmless(cell(EVIL).plain)


def test_column_names_and_labels(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"some words {row},{('no', EVIL)[row % 2]!s}" for row in range(40)]
    path.write_bytes("\n".join([f"{CLEAR}text,{TITLE}label", *[row.replace("\r", "") for row in rows]]).encode())
    for options in (["--text", f"{CLEAR}text", "--label", f"{TITLE}label"], ["--text", "missing", "--label", "label"]):
        done = run("show", f"task:{path}", *options)
        assert done.code == (2 if "missing" in options else 0)
        assert harmless(done.out + done.err)
        assert r"\x1b[2J" in done.out + done.err


def test_metric_names_and_reasons(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = films_study(tmp_path)
    with place.open() as opened, StudyView(opened) as view:
        ask(opened, 0)
        found = Observation({"accuracy": 0.5, EVIL: 1.0}, Spent(1.0, 2, 3))
        opened.log.finish(0, "one", "told", {"observation": found.to_json()})
        ask(opened, 1)
        opened.log.finish(1, "one", "failed", {"reason": EVIL})
        view.look()
    assert harmless(capsys.readouterr().err)
    done = run("show", place.folder)
    assert done.code == 0
    assert harmless(done.out)
    assert r"\x1b[2J" in done.out


def test_errors(run: Run, tmp_path: Path) -> None:
    done = run("show", tmp_path / f"{EVIL}.json")
    assert done.code == 2
    assert harmless(done.err)
