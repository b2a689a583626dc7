import pytest

from formwright.cli.output import console, large, print_json, print_table


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
    ],
)
def test_large_numbers_are_written_for_people(number: int, written: str) -> None:
    assert large(number) == written


def test_numbers_that_python_does_not_write_out_are_written_for_people() -> None:
    assert large(123 * 10**5_000) == "1.23e5002"


def test_json_is_one_value_with_its_letters_kept(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "café", "count": 10**30, "none": None})
    assert capsys.readouterr().out == '{\n  "name": "café",\n  "count": 1' + "0" * 30 + ',\n  "none": null\n}\n'


def test_a_table_aligns_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", ">count"], [("a", "1"), ("long name", "1,000")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[0].split() == ["name", "count"]
    assert lines[-2].endswith("    1")
    assert len(lines[-1]) == len(lines[-2]) == len(lines[0])


def test_names_are_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "about"], [("[bold]name[/bold]", ":smile: [red]"), ("[/wrong]", "")])
    out = capsys.readouterr().out
    assert "[bold]name[/bold]" in out
    assert ":smile: [red]" in out
    assert "[/wrong]" in out


def test_names_are_kept_whole_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(["name", "about"], [("a-name-of-twenty-four-ch", "some words that do not fit into one line")])
    lines = capsys.readouterr().out.splitlines()
    assert any("a-name-of-twenty-four-ch" in line for line in lines)
    assert max(map(len, lines)) <= 40


def test_what_goes_elsewhere_is_plain() -> None:
    assert not console().is_terminal
