"""What the documentation shows runs, and its numbers are what the program prints."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import in_one_process

from formwright.space.zoo import SPACES, load_space

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
OTHERS = {
    "--check",
    "--coordinates",
    "--early",
    "--logdir",
    "--seeds",
    "--strict",
    "--students",
    "--tables",
}  # of other programs
FORMULAS = {
    "5 x 233,280^4": 5 * 233_280**4,
    "3 (9^10 + 9^11 + 9^12)": 3 * (9**10 + 9**11 + 9**12),
    "3 x 6^12": 3 * 6**12,
    "7^12": 7**12,
    "25^12": 25**12,
}


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def programs(page: str) -> list[str]:
    """List the Python programs that a page shows."""
    return re.findall(r"^```python\n(.*?)^```", read(page), re.DOTALL | re.MULTILINE)


def sizes() -> dict[str, str]:
    """Read the table of spaces: the size in its second column by the name in its first."""
    return dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*\d[^|]*) \|", read("docs/spaces.md"), re.MULTILINE))


PROGRAMS = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("models", "pipelines", "python", "spaces", "studies", "training", "methods/autobert_zero")
    ),
]


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs_on_a_page_run(page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_process(monkeypatch)
    assert programs(page)
    for program in programs(page):
        exec(compile(program, page, "exec"), {"__name__": page})
        assert capsys.readouterr().out.strip()


def test_files_on_the_page_of_pipelines_are_pipelines(tmp_path: Path) -> None:
    from formwright.pipeline.files import read_pipeline_file

    found = re.findall(r"^```yaml\n(.*?)^```", read("docs/pipelines.md"), re.DOTALL | re.MULTILINE)
    assert len(found) > 1
    for number, text in enumerate(found):
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
        assert read_pipeline_file(tmp_path / f"{number}.yaml").stages


def test_the_page_of_spaces_shows_the_example() -> None:
    assert any(program in read("examples/own_space.py") for program in programs("docs/spaces.md"))


@pytest.mark.parametrize("name", sizes())
def test_sizes_of_spaces_are_true(name: str) -> None:
    size, count = sizes()[name], load_space(name).count()
    power = re.fullmatch(r"(?:about )?(\d\.(\d+)e\d+)", size)
    if power is None:
        assert FORMULAS.get(size, count) == count
        assert size in (*FORMULAS, f"{count:,}")
    else:
        assert f"{count:.{len(power[2])}e}".replace("+", "") == power[1]


def test_every_published_space_is_on_the_page() -> None:
    published, named = ({name for name in names if "-nano" not in name} for names in (SPACES.names(), sizes()))
    assert published == named


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", read(page))
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert not missing


def commands() -> dict[str, set[str]]:
    """Give the options of every command, by its name."""
    import typer

    from formwright.cli.app import app

    known: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {"--help", *(option for one in command.params for option in one.opts + one.secondary_opts)}
        for name, command in known.items()
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_command_on_a_page_exists_with_its_options(page: str) -> None:
    known = commands()
    shown = re.findall(r"(?:^ *|`|/)formwright ([a-z]+)\b([^`#\n]*)", read(page), re.MULTILINE)
    assert len(shown) > 20 or page != "README.md"
    for name, rest in shown:
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", rest)) <= known[name], f"formwright {name}{rest}"


@pytest.mark.parametrize("page", PAGES)
def test_every_option_on_a_page_exists(page: str) -> None:
    known = set().union(*commands().values())
    for code in re.findall(r"`([^`\n]+)`", read(page)):
        if "benchmarks/" not in code and not code.startswith("--parts"):  # programs with options of their own
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code)) <= known | OTHERS, code


@pytest.mark.parametrize("page", PAGES)
def test_every_module_on_a_page_exists(page: str) -> None:
    sources = ["/" + str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.*")]
    for code in re.findall(r"`([\w/]+\.py)`", read(page)):
        assert (ROOT / code).exists() or any(source.endswith(f"/{code}") for source in sources), code


def test_the_map_names_files_of_the_package_in_the_same_row() -> None:
    for package, row in re.findall(r"^\| `(\w+)` (\|.*)$", read("docs/map.md"), re.MULTILINE):
        for file in re.findall(r"`(\w+\.py)`", row):
            assert (ROOT / "src" / "formwright" / package / file).exists(), f"{package}: {file}"
