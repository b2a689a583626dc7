import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.core.rng import derive
from formwright.pipeline.designs import LARGEST, NamedCard, absolute, find, find_space, read_card
from formwright.space.zoo import load_card, load_space

Write = Callable[..., Path]
TINY = load_card("bert-tiny")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Give a function that writes JSON data, text or bytes to a file and returns its path."""

    def call(content: object, name: str = "mine.json") -> Path:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return call


def test_published_names_and_files_are_found_from_every_folder(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("hat") is load_space("hat")
    assert find("bert-tiny") == NamedCard("bert-tiny", TINY)
    monkeypatch.chdir(write(TINY.to_json(), "plain").parent)
    assert find("plain") == NamedCard("plain", TINY)
    monkeypatch.chdir(write(TINY.to_json(), "hat").parent)
    assert find("hat") is load_space("hat")
    assert find("./hat") == NamedCard("hat", TINY)
    assert read_card(write(b"\xef\xbb\xbf" + TINY.canonical)).card == TINY
    assert find_space("flexibert-nano") is load_space("flexibert-nano")


@pytest.mark.parametrize("name", ["mine.json", "mine.txt", "mine"])
def test_a_path_is_a_file(write: Write, name: str) -> None:
    assert find(str(write(TINY.to_json(), name))) == NamedCard("mine", TINY)


CLOSE = {"fexibert": "flexibert", "BERT-BASE": "bert-base", "hta": "hat", "": "", "qqqqqq": "", "x" * 5_000: ""}


@pytest.mark.parametrize(("name", "close"), CLOSE.items())
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, close: str) -> None:
    nearest = rf" Nearest: '{close}'\." if close else ""
    with pytest.raises(IllegalInput, match=rf"is called '{name}'\.{nearest} See `formwright list spaces`"):
        find(name)


@pytest.mark.parametrize("name", ["absent.json", "absent/", "absent/card", "x" * 5_000 + ".json"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(IllegalInput, match=r"cannot read .*: (No such file or directory|File name too long)"):
        find(f"{tmp_path}/{name}")


def test_missing_files_folders_and_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=f"{tmp_path} is a folder"):
        find(str(tmp_path))
    with pytest.raises(IllegalInput, match="there is no file"):
        find_space(f"{tmp_path / 'absent.py'}:MINE")
    with pytest.raises(UnknownName, match="flexibert-nano"):
        find_space("flexibert-nanno")


@pytest.mark.parametrize(
    "content",
    ["", '{"schema": 1', "not json", b"\xff\xfe\x00", '{"schema": 1, "schema": 1}', "[" * 100_000, '{"schema": NaN}'],
    ids=["empty", "cut", "words", "binary", "repeated key", "deep", "not a number"],
)
def test_what_is_no_json_is_refused(write: Write, content: object) -> None:
    path = write(content)
    with pytest.raises(IllegalDesign, match=rf"illegal card in {path}, 1 fault:\n  the whole: is not JSON"):
        read_card(path)


@pytest.mark.parametrize("content", [[], 3, None, {"schema": "1"}, {"schema": 0}, {}, {"encoder": None}])
def test_json_that_is_no_card_is_refused(write: Write, content: object) -> None:
    with pytest.raises(IllegalDesign, match="1 fault"):
        read_card(write(content))


def test_a_card_of_a_newer_schema_is_refused_with_what_to_do(write: Write) -> None:
    with pytest.raises(IllegalDesign, match=r"schema: is 2; .* reads up to 1\. Update formwright to read this card"):
        read_card(write(TINY.to_json() | {"schema": 2}))


def test_a_file_larger_than_any_card_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(IllegalInput, match=r"huge\.json: it holds more than 16,777,216 bytes"):
        read_card(path)
    path.write_bytes(TINY.canonical.ljust(LARGEST))
    assert read_card(path).card == TINY


def test_paths_are_made_absolute_and_published_names_stay(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(TINY.to_json(), "hat").parent
    monkeypatch.chdir(folder)
    (folder / "models").mkdir()
    assert [absolute(name) for name in ("hat", "./hat", "models/", "absent.json", "bert-tiny", "absent")] == [
        *("hat", str(folder / "hat"), str(folder / "models"), str(folder / "absent.json"), "bert-tiny", "absent")
    ]


MINE = """
from dataclasses import dataclass
from formwright.testing.toy_problem import tiny
MINE = tiny()
NUMBER = 7
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE, encoding="utf-8")
    return path


def test_a_space_of_the_users_own_is_found_in_its_file(mine: Path) -> None:
    space = find_space(f"{mine}:MINE")
    assert space.count() == 12
    design = space.sample(derive(0))
    assert pickle.loads(pickle.dumps(space)).card(design) == space.card(design)


@pytest.mark.parametrize("name", ["MINNE", "NUMBER", "dataclass"])
def test_a_file_without_that_space_is_refused(name: str, mine: Path) -> None:
    with pytest.raises(IllegalInput, match=f"has no search space called '{name}'"):
        find_space(f"{mine}:{name}")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("import absent_module_of_mine", "ModuleNotFoundError: No module named"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_file_that_cannot_be_run_is_refused(content: str, told: str, mine: Path) -> None:
    mine.write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=rf"cannot run .*mine\.py: {told}"):
        find_space(f"{mine}:MINE")


def module_name(mine: Path, seed: str) -> str:
    """Name the module of a space in a process whose hashes begin with a seed."""
    load = f"import sys; from formwright.pipeline.designs import find_space; find_space({f'{mine}:MINE'!r})"
    show = "print(*(name for name in sys.modules if name.startswith('formwright_user_')))"
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.check_output([sys.executable, "-c", f"{load}; {show}"], env=environment, text=True).strip()


@pytest.mark.slow
def test_a_module_has_the_same_name_in_every_process(mine: Path) -> None:
    assert module_name(mine, "1") == module_name(mine, "2") != ""
