import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.test_study_view import ask
from tests.pipeline.cases import films_study

from formwright.cli.output import cell, console, large, note, print_entries, print_json, print_json_with, print_table
from formwright.cli.study_view import StudyView
from formwright.core.files import write_whole
from formwright.core.records import Observation, Spent

Seen = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "0"),
        (9_312, "9,312"),
        (999_999_999_999, "999,999,999,999"),
        (10**12, "1.00e12"),
        (8_746 * 10**95, "8.75e98"),
        (9_999 * 10**20, "1.00e24"),
        (10**400, "1.00e400"),
        pytest.param(123 * 10**5_000, "1.23e5002", id="more than Python writes out"),
    ],
)
def test_large_numbers_are_written_for_people(number: int, written: str) -> None:
    assert large(number) == written


def test_json_is_one_value_with_its_letters_kept(capsys: Seen) -> None:
    print_json({"name": "café", "count": 10**30, "none": None})
    assert capsys.readouterr().out == '{\n  "name": "café",\n  "count": 1' + "0" * 30 + ',\n  "none": null\n}\n'


def test_a_table_aligns_numbers_to_the_right(capsys: Seen) -> None:
    print_table(["name", ">count"], [("a", "1"), ("long name", "1,000")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0].split() == ["name", "count"]
    assert lines[-2].endswith("    1")
    assert len(lines[-1]) == len(lines[-2]) == len(lines[0])


def test_names_are_never_markup(capsys: Seen) -> None:
    print_table(["name", "about"], [("[bold]name[/bold]", ":smile: [red]"), ("[/wrong]", "")])
    out = capsys.readouterr().out
    assert all(text in out for text in ("[bold]name[/bold]", ":smile: [red]", "[/wrong]"))


def test_names_are_whole_in_a_narrow_terminal(capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(["name", "about"], [("a-name-of-twenty-four-ch", "some words that do not fit into one line")])
    out = capsys.readouterr().out
    assert "a-name-of-twenty-four-ch" in out
    assert max(map(len, out.splitlines())) <= 40


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_numbers_are_never_cut(capsys: Seen, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    row = ("a-name-of-twenty-four-ch", "a-word-without-a-blank-in-it", "11,174,215,680", "109,482,240")
    print_table(["name", "about", ">macs", ">params"], [row])
    out = capsys.readouterr().out
    assert all(whole in out for whole in (row[0], row[2], row[3]))
    assert "…" not in out


def test_folders_are_never_cut(capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(["model", ">parameters", "folder"], [("10m", "9,866,688", "runs/of/last-night/models/10m")])
    head, _, row, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "parameters", "folder"]
    assert row.split() == ["10m", "9,866,688", "runs/of/last-night/models/10m"]


def test_what_goes_elsewhere_is_plain() -> None:
    assert not console().is_terminal


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"a": [1, 2]}, {"a": []}, 3]])
def test_json_with_streamed_items_is_one_object(capsys: Seen, items: list[object]) -> None:
    print_json_with({"name": "x"}, "items", iter(items))
    assert capsys.readouterr().out == json.dumps({"name": "x", "items": items}, indent=2) + "\n"


def test_items_are_printed_before_the_next_is_asked_for(capsys: Seen) -> None:
    def items() -> Iterator[str]:
        yield "first"
        assert "first" in capsys.readouterr().out
        yield "second"

    print_json_with({"name": "x"}, "items", items())
    assert "second" in capsys.readouterr().out


def test_half_a_letter_is_escaped_in_json(capsys: Seen) -> None:
    print_json({"name": "\udcff"})
    assert json.loads(capsys.readouterr().out) == {"name": "\udcff"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "drawing.svg"
    write_whole(target, "old")

    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    link = tmp_path / "link.svg"
    link.symlink_to(tmp_path / "target.svg")
    write_whole(link, "drawing")
    assert link.is_symlink()
    assert (tmp_path / "target.svg").read_text(encoding="utf-8") == "drawing"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "drawing")
    assert os.read(reader, 100) == b"drawing"
    os.close(reader)
    assert pipe.is_fifo()


ENTRIES = [
    ("autobert-zero", "Gao et al. 2022, AutoBERT-Zero", "1,000"),
    ("eftnas", "some words that do not fit into one line of a narrow terminal", "20"),
]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_entries_keep_whole_words_at_every_width(columns: int, capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_entries(["name", "about", ">count"], ENTRIES)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert {word for entry in ENTRIES for text in entry for word in text.split()} <= set(" ".join(lines).split())
    assert lines[0].split() == ["name", "about", "count"]


def test_entries_stack_in_a_narrow_terminal(capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "36")
    print_entries(["name", "paper", "about", ">count"], [(ENTRIES[0][0], "", *ENTRIES[0][1:])])  # nothing of a paper
    lines = ("autobert-zero", "  about  Gao et al. 2022,", "         AutoBERT-Zero", "  count  1,000", "\n")
    assert capsys.readouterr().out == "\n".join(lines)


def test_an_interval_beside_many_numbers_stays_on_one_line(capsys: Seen) -> None:
    heads = ["model (test)", ">accuracy", ">95 % interval", ">parameters", ">MACs", ">ms", ">steps"]
    row = ["baseline, made by hand", "0.6000", "0.4500 to 0.7500", "172,416", "2,506,752", "0.55", "57"]
    print_table(heads, [row])
    lines = capsys.readouterr().out.splitlines()
    assert [head.lstrip(">") in lines[0] for head in heads] == [True] * len(heads)
    assert [text in lines[2] for text in row] == [True] * len(row)


CLEAR = "\x1b[2J"  # clears the screen
TITLE = "\x1b]0;mine\x07"  # renames the window
EVIL = f"a{CLEAR}{TITLE}\x9b31m\rb"


def harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_tables_lines_and_json_escape(capsys: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_metric_names_and_reasons(run: Run, tmp_path: Path, capsys: Seen) -> None:
    place = films_study(tmp_path)
    with place.open() as opened, StudyView(opened) as view:
        ask(opened, 0)
        found = Observation({"accuracy": 0.5, EVIL: 1.0}, Spent(1.0, 2, 3))
        opened.log.finish(0, "one", "told", {"observation": found.to_json()})
        ask(opened, 1)
        opened.log.finish(1, "one", "failed", {"reason": EVIL})
        view.look()
    assert harmless(capsys.readouterr().err)
    done = run("show", place.folder).printed()
    assert harmless(done.out)
    assert r"\x1b[2J" in done.out


def test_errors(run: Run, tmp_path: Path) -> None:
    assert harmless(run("show", tmp_path / f"{EVIL}.json").refused().err)
