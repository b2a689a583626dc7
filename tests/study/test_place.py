import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.study.cases import quick_config

from formwright.core.errors import FormwrightError, IllegalInput, UnknownName
from formwright.study.config import DistillationChoice
from formwright.study.place import CONFIG, DATABASE, create, find, holds_study
from formwright.study.stop import Stop
from formwright.study.store import Store, StoreError

MINE = quick_config(stop=Stop(trials=3, patience=2))


def test_a_study_is_found_by_its_folder(tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE)
    assert {path.name for path in place.folder.iterdir()} >= {CONFIG, DATABASE}
    found = find(str(tmp_path / "mine"))
    assert found == place
    with found.open() as opened:
        assert opened.config == MINE
        assert opened.log.name == "mine"
        assert opened.log.read() == []


def test_the_file_says_everything(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    facts = json.loads((tmp_path / "mine" / CONFIG).read_text(encoding="utf-8"))
    assert facts == {"storage": None, "name": "mine", "config": MINE.to_json()}


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert create(tmp_path, MINE).folder == tmp_path


def test_a_folder_may_move(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(tmp_path / "moved")).open() as opened:
        assert opened.log.name == "mine"


def test_what_a_study_made_is_found_where_its_folder_is_now(tmp_path: Path) -> None:
    config = quick_config(
        space="space.json",
        evaluator="shared",
        weights="super-network",
        latency_table="latency.json",
        distillation=DistillationChoice("models/teacher", 0.1, 2.0),
    )
    create(tmp_path / "mine", config)
    moved = (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(moved)).open() as opened:
        found = opened.config
    assert (found.space, found.weights) == (str(moved / "space.json"), str(moved / "super-network"))
    assert found.latency_table == str(moved / "latency.json")
    assert found.distillation == DistillationChoice(str(moved / "models" / "teacher"), 0.1, 2.0)
    elsewhere = quick_config(space="/spaces/mine.json", evaluator="shared", weights="/weights/mine")
    assert elsewhere.seen_from(moved) == elsewhere  # as studies of earlier versions have it


def test_a_study_on_a_server_is_found_by_its_folder_and_by_its_url(url: str, tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE, url, "films")
    assert find(str(tmp_path / "mine")) == place
    by_url = find(f"{url}#films", tmp_path / "weights")
    assert (by_url.folder, by_url.storage, by_url.name) == (tmp_path / "weights", url, "films")
    assert find(url).name == "films"
    assert find(url).folder == Path("films")
    with by_url.open() as opened:
        assert opened.config == MINE


def test_one_of_several_studies_has_to_be_named(open_store: Callable[[], Store], url: str) -> None:
    store = open_store()
    with pytest.raises(IllegalInput, match="holds no studies yet: start one with `formwright search`"):
        find(url)
    for name in ("one", "two"):
        store.create_study(name, MINE.to_json())
    with pytest.raises(IllegalInput, match=r"holds 2 studies \(one, two\); say which: .*#NAME"):
        find(url)
    assert find(f"{url}#two").name == "two"
    with pytest.raises(UnknownName, match="no study called 'twoo'"):
        find(f"{url}#twoo").open()


def test_a_folder_that_holds_a_study_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    with pytest.raises(
        IllegalInput, match=r"mine holds a study already: go on with it by `formwright resume .*mine`, or name"
    ):
        create(tmp_path / "mine", MINE)


def test_a_folder_that_holds_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary", encoding="utf-8")
    with pytest.raises(IllegalInput, match="is not an empty folder: name another one with --out"):
        create(tmp_path, MINE)
    with pytest.raises(IllegalInput, match="is not an empty folder"):
        create(tmp_path / "diary.txt", MINE)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


def test_a_study_that_was_killed_before_it_was_described_can_be_gone_on_with(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    (tmp_path / "mine" / CONFIG).unlink()
    with pytest.raises(IllegalInput, match="mine holds a study already"):
        create(tmp_path / "mine", MINE)
    with find(str(tmp_path / "mine")).open() as opened:
        assert (opened.config, opened.log.name) == (MINE, "mine")


def test_a_database_without_a_study_is_taken_for_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    Store.open(tmp_path / "mine" / DATABASE, create=True).close()
    create(tmp_path / "mine", MINE)
    with find(str(tmp_path / "mine")).open() as opened:
        assert opened.config == MINE


def test_a_name_that_is_taken_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE, url, "films")
    with pytest.raises(IllegalInput, match="has a study called 'films' already"):
        create(tmp_path / "other", MINE, url, "films")
    assert not (tmp_path / "other").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FormwrightError, match="cannot"):
        create(tmp_path / "file" / "mine", MINE)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "is not the folder of a study: it has no config.json"),
        ("{", "cannot read"),
        ("[]", "cannot read"),
        ('{"name": "mine"}', "cannot read .*'storage'"),
        ('{"name": "mine", "storage": 3}', "cannot read .*'storage'"),
        ('{"name": null, "storage": null}', "cannot read .*'name'"),
        ('{"architectures": ["FormwrightModel"]}', "holds a model, not a study: `formwright measure"),
    ],
)
def test_what_is_no_study_is_refused(content: str | None, told: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / CONFIG).write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=told):
        find(str(tmp_path))


@pytest.mark.parametrize("content", ["{", "[]"])
def test_the_log_is_enough_where_the_file_is_spoilt(content: str, tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    (tmp_path / "mine" / CONFIG).write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"Mend it, or remove it: study\.db holds the study"):
        find(str(tmp_path / "mine"))
    (tmp_path / "mine" / CONFIG).unlink()
    with find(str(tmp_path / "mine")).open() as opened:
        assert opened.config == MINE


@pytest.mark.parametrize("storage", ["logs", "logs/mine.db", "sqlite:///logs/mine.db"])
def test_a_file_elsewhere_is_found_from_any_folder(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = create(Path("mine"), MINE, storage)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    found = find("../mine")
    assert found.storage == place.storage
    with found.open() as opened:
        assert opened.config == MINE


def test_a_server_that_cannot_be_reached_is_no_fault_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^cannot reach postgresql.*Check the server.*then try again") as caught:
        create(tmp_path / "mine", MINE, "postgresql+psycopg://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "mine").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="is not the folder of a study"):
        find(str(tmp_path / "absent"))


def test_a_study_whose_log_is_gone_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    for path in (tmp_path / "mine").glob(f"{DATABASE}*"):
        path.unlink()
    with pytest.raises(IllegalInput, match="there is no study at"):
        find(str(tmp_path / "mine")).open()


def test_a_study_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db", create=True) as store:
        store.create_study("mine", {**MINE.to_json(), "version": 2})
    with pytest.raises(IllegalInput, match="this study has version 2"):
        find(f"sqlite:///{tmp_path / 'study.db'}").open()


def test_the_last_run_says_when_to_stop(tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE)
    with place.open() as opened:
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 9, "seconds": None}})
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 5, "seconds": 2.5}})
        opened.log.append("started", "me", {"begins": True})
    with place.open() as opened:
        assert opened.config.stop == Stop(trials=5, seconds=2.5, patience=2)
        assert opened.log.config == MINE.to_json()


def test_files_that_are_named_may_stand_beside_a_study(tmp_path: Path) -> None:
    (tmp_path / "plan.json").touch()
    (tmp_path / "teacher").mkdir()
    with pytest.raises(IllegalInput, match="is not an empty folder"):
        create(tmp_path, MINE, beside={"plan.json"})
    assert create(tmp_path, MINE, beside={"plan.json", "teacher", "absent"}).folder == tmp_path


def test_a_folder_tells_whether_it_holds_a_study(tmp_path: Path) -> None:
    assert not holds_study(tmp_path / "absent")
    assert not holds_study(tmp_path)
    Store.open(tmp_path / DATABASE, create=True).close()
    assert not holds_study(tmp_path)
    create(tmp_path, MINE)
    assert holds_study(tmp_path)
    (tmp_path / CONFIG).unlink()
    assert holds_study(tmp_path)
