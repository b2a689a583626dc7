"""Studies by name, and what is said about databases that cannot be used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput, UnknownName
from formwright.study.store import Store


def test_a_study_keeps_its_name_and_config(store: Store, open_store: Callable[[], Store]) -> None:
    config = {"seed": 3, "limit": 0.1, "space": {"name": "größe", "layers": [1, 2]}}
    store.create_study("first", config)
    store.create_study("second", {})
    again = open_store()
    assert again.studies() == ["first", "second"]
    assert (again.study("first").name, again.study("first").config) == ("first", config)
    assert again.study("first").read() == []


def test_a_name_is_taken_once(store: Store) -> None:
    store.create_study("one", {"seed": 1})
    with pytest.raises(IllegalInput, match="has a study called 'one' already"):
        store.create_study("one", {"seed": 1})
    assert store.study("one").config == {"seed": 1}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0b",
        "two\nlines",
        "\ud800",
        "../outside",
        "..",
        ".",
        ".hidden",
        "/tmp",
        "a/b",
        "a\\b",
        "\x1b[2J",
        "x" * 201,
    ],
)
def test_a_name_leads_nowhere_else(store: Store, name: str) -> None:
    with pytest.raises(IllegalInput, match="cannot be called"):
        store.create_study(name, {})
    with pytest.raises(IllegalInput, match="cannot be called"):
        store.study(name)


def test_a_missing_study_is_named_with_its_nearest(store: Store) -> None:
    store.create_study("flexibert", {})
    with pytest.raises(
        UnknownName, match=r"^no study called 'flexbert'\. Nearest: 'flexibert'\. There are: flexibert\.$"
    ):
        store.study("flexbert")


def test_a_config_is_plain_json(store: Store) -> None:
    with pytest.raises(IllegalInput, match="plain, finite JSON"):
        store.create_study("one", {"limit": float("nan")})
    assert store.studies() == []


@pytest.mark.parametrize(
    ("given", "made"), [("out", "out/study.db"), ("out/my.db", "out/my.db"), ("v1.5 run", "v1.5 run/study.db")]
)
def test_a_folder_or_a_file_is_a_place(tmp_path: Path, given: str, made: str) -> None:
    with Store.open(tmp_path / given, create=True) as store:
        store.create_study("one", {})
        assert store.place == str(tmp_path / made)
    for form in (tmp_path / given, str(tmp_path / made), f"sqlite:///{tmp_path / made}"):
        with Store.open(form) as store:
            assert store.studies() == ["one"]


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    folder = tmp_path / "50% of a?b#c & ü"
    with Store.open(folder, create=True) as store:
        store.create_study("one", {})
    assert [path.name for path in folder.iterdir()] == ["study.db"]
    with Store.open(folder) as store:
        assert store.studies() == ["one"]


def test_a_missing_file_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="there is no study at"):
        Store.open(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("hello")
    with pytest.raises(IllegalInput, match="cannot make"):
        Store.open(tmp_path / "out" / "study.db", create=True)


@pytest.mark.parametrize("create", [False, True])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "study.db"
    path.write_text("This is a diary, not a database. " * 200)
    before = path.read_bytes()
    with pytest.raises(IllegalInput, match="is not a study database, or a damaged one: file is not a database"):
        Store.open(path, create=create)
    assert path.read_bytes() == before
