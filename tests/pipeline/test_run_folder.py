"""The folder of a run: how it is found, what it says, and which folders are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.cases import Given, create, quick, search_of

from formwright.core.errors import FormwrightError, IllegalInput, UnknownName
from formwright.pipeline.pipeline import VERSION, Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_folder import DATABASE, RUN, RunRecord, check_folder, claim_folder, holds_run
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.study_place import Opened, find
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.search import searcher
from formwright.study.stop import Stop
from formwright.study.store import Store, StoreError

MINE = quick(stop=Stop(trials=3, patience=2))


def same(opened: Opened, made: Pipeline = MINE) -> bool:
    """Tell whether a study is that of a pipeline."""
    return opened.pipeline.to_json() == made.to_json() and opened.search == search_of(made)


def record(made: Pipeline = MINE, contents: dict[str, Any] | None = None) -> RunRecord:
    return RunRecord.of(PipelineRun(made, Path("mine"), study_name="mine"), contents or {})


def test_a_study_is_found_by_its_folder_which_says_everything(tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE)
    assert {path.name for path in place.folder.iterdir()} >= {RUN, DATABASE}
    found = find(str(tmp_path / "mine"))
    assert found == place
    with found.open() as opened:
        assert same(opened)
        assert (opened.log.name, opened.log.read()) == ("mine", [])
        assert opened.deliver.steps == 5
    facts = json.loads((tmp_path / "mine" / RUN).read_text(encoding="utf-8"))
    assert Pipeline.from_json(facts["pipeline"]) == MINE
    assert (facts["storage"], facts["contents"], RunOptions(**facts["options"])) == (None, {}, RunOptions())
    assert (tmp_path / "mine" / RUN).stat().st_mode & 0o777 == 0o600  # a URL may hold a password
    assert RunRecord.read(tmp_path / "mine") == record()
    (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(tmp_path / "moved")).open() as opened:
        assert opened.log.name == "mine"


def test_an_empty_folder_holds_no_run_but_will_do(tmp_path: Path) -> None:
    assert not holds_run(tmp_path / "absent")
    assert not holds_run(tmp_path)
    assert create(tmp_path, MINE).folder == tmp_path
    assert holds_run(tmp_path)
    (tmp_path / RUN).unlink()
    assert holds_run(tmp_path)


def test_what_stages_made_is_found_where_the_folder_is_now(tmp_path: Path) -> None:
    made = Pipeline(Given("anything"), *MINE)  # a stage of the user's own program
    create(tmp_path / "mine", made)
    moved = (tmp_path / "mine").rename(tmp_path / "moved")
    found = find(str(moved))
    assert (found.folder, found.name) == (moved, "mine")
    with found.open(run=PipelineRun(made, moved)) as opened:
        assert opened.here.artifact(made.stages[0]) == "anything"
    assert RunRecord.read(moved).changes(record(made)) == []


def test_several_searches_of_one_run_have_studies_of_their_own(tmp_path: Path) -> None:
    first, second = search_of(quick()), search_of(quick(seed=1))
    made = Pipeline(first, second)
    create(tmp_path / "mine", made)
    found = find(str(tmp_path / "mine"))
    assert (found.folder, found.name) == (tmp_path / "mine" / "search", "mine.search")
    other = second.place(PipelineRun(made, tmp_path / "mine").stage(second))
    assert (other.folder, other.name) == (tmp_path / "mine" / "search-2", "mine.search-2")


@pytest.mark.slow
def test_several_searches_share_what_a_stage_made(tmp_path: Path) -> None:
    shared = TrainShared("autoformer-nano", TaskChoice("digits", rows=100), steps=2)
    searches = [
        Search(
            "autoformer-nano",
            shared.task,
            (),
            limits,
            searcher("random"),
            SharedSubnetworks(shared),
            stop=Stop(trials=2),
        )
        for limits in ((), ("params<=30000",))
    ]
    done = run_pipeline(PipelineRun(Pipeline(shared, *searches), tmp_path / "mine"))
    for stage in done.pipeline.of_kind(Search):
        with done.artifact(stage) as opened:
            assert len(opened.history().finished) == 2


def test_a_study_on_a_server_is_found_by_its_folder_and_by_its_url(url: str, tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE, url, "films")
    assert find(str(tmp_path / "mine")) == place
    by_url = find(f"{url}#films", tmp_path / "weights")
    assert (by_url.folder, by_url.storage, by_url.name) == (tmp_path / "weights", url, "films")
    assert find(url).name == "films"
    assert find(url).folder == Path("films")
    with by_url.open() as opened:
        assert same(opened)


def test_one_of_several_studies_has_to_be_named(open_store: Callable[[], Store], url: str) -> None:
    store = open_store()
    with pytest.raises(IllegalInput, match="holds no studies yet: start one with `formwright search`"):
        find(url)
    for name in ("one", "two"):
        store.create_study(name, {**MINE.to_json(whole=True), "stage": "search"})
    with pytest.raises(IllegalInput, match=r"holds 2 studies \(one, two\); say which: .*#NAME"):
        find(url)
    assert find(f"{url}#two").name == "two"
    with pytest.raises(UnknownName, match="no study called 'twoo'"):
        find(f"{url}#twoo").open()


def test_the_folder_of_another_run_is_refused_with_what_differs(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    check_folder(tmp_path / "mine", record(), force=False)
    further = quick(stop=Stop(trials=99), baseline=False)  # how far a run goes is no other run
    check_folder(tmp_path / "mine", record(further), force=False)
    other = record(quick(seed=7, keep=2))
    with pytest.raises(IllegalInput) as caught:
        claim_folder(tmp_path / "mine", other, force=False)
    for fact in (
        "search.seed (the default there, 7 now)",
        "deliver.keep",
        "output folder",
        "force",
        f"formwright resume {tmp_path / 'mine'}",
    ):
        assert fact in str(caught.value)
    assert RunRecord.read(tmp_path / "mine") == record()


def test_force_makes_room_but_keeps_what_was_seen_of_test_rows(tmp_path: Path) -> None:
    folder = create(tmp_path / "mine", MINE).folder
    for name in ("models", "final", "search"):
        (folder / name).mkdir()
        (folder / name / "file").touch()
    claim_folder(folder, other := record(quick(seed=7)), force=True)
    assert {path.name for path in folder.iterdir()} == {RUN, "final"}
    assert (folder / "final" / "file").is_file()
    assert RunRecord.read(folder) == other


def test_changed_inputs_and_stages_are_named(tmp_path: Path) -> None:
    rows = {"training rows": {"rows": 80, "sha256": "a"}, "test rows": {"rows": 10, "sha256": "b"}}
    before = record(contents={"search": rows})
    now = record(contents={"search": {**rows, "training rows": {"rows": 90, "sha256": "c"}}})
    (told,) = before.changes(now)
    assert "training rows (80 before, 90 now" in told
    assert before.changes(before) == []
    assert record().changes(now) == []
    shorter = record(Pipeline(search_of(MINE)))
    assert "deliver" in shorter.changes(record())[0]
    assert "deliver" in record().changes(shorter)[0]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_holds_other_files_is_refused(force: bool, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "diary.txt"):
        with pytest.raises(IllegalInput, match="output folder"):
            claim_folder(folder, record(), force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


def test_a_database_without_a_study_is_taken_for_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    Store.open(tmp_path / "mine" / DATABASE, create=True).close()
    create(tmp_path / "mine", MINE)
    with find(str(tmp_path / "mine")).open() as opened:
        assert same(opened)


def test_folders_that_cannot_hold_a_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FormwrightError, match="cannot"):
        create(tmp_path / "file" / "mine", MINE)
    (tmp_path / "config.json").write_text('{"architectures": ["FormwrightModel"]}', encoding="utf-8")
    with pytest.raises(IllegalInput, match="formwright measure"):
        find(str(tmp_path))
    with pytest.raises(IllegalInput, match=RUN):
        find(str(tmp_path / "absent"))
    with pytest.raises(StoreError, match="cannot reach postgresql") as caught:
        create(tmp_path / "mine", MINE, "postgresql+psycopg://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, RUN),
        ("{", "cannot read"),
        ("[]", "cannot read"),
        ('{"name": "mine"}', "cannot read .*'options'"),
        ('{"options": {}, "pipeline": 3, "fixed": {}, "contents": {}}', "cannot read"),
        ('{"options": {"wokers": 3}, "pipeline": {}, "fixed": {}, "contents": {}}', "cannot read .*'wokers'"),
        ('{"options": {}, "pipeline": {}, "fixed": {}, "contents": {}, "more": 1}', "cannot read .*'more'"),
    ],
)
def test_what_is_no_run_is_refused(content: str | None, told: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / RUN).write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=told):
        find(str(tmp_path))


@pytest.mark.parametrize("content", ["{", "[]"])
def test_the_log_is_enough_where_the_file_is_spoilt(content: str, tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    (tmp_path / "mine" / RUN).write_text(content, encoding="utf-8")
    with pytest.raises(IllegalInput, match=DATABASE):
        find(str(tmp_path / "mine"))
    (tmp_path / "mine" / RUN).unlink()  # as where a run is killed before it is described
    with pytest.raises(IllegalInput, match="mine"):
        create(tmp_path / "mine", MINE)
    with find(str(tmp_path / "mine")).open() as opened:
        assert same(opened)
        assert opened.log.name == "mine"


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
        assert same(opened)


def test_a_run_without_a_study_says_how_it_is_resumed(tmp_path: Path) -> None:
    create(tmp_path / "mine", MINE)
    for path in (tmp_path / "mine").glob(f"{DATABASE}*"):
        path.unlink()
    with pytest.raises(IllegalInput, match="formwright resume"):
        find(str(tmp_path / "mine"))


def test_a_study_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "study.db", create=True) as store:
        store.create_study("mine", {**MINE.to_json(), "version": VERSION + 1, "stage": "search"})
    with (
        find(f"sqlite:///{tmp_path / 'study.db'}").open() as opened,
        pytest.raises(IllegalInput, match=f"version {VERSION + 1}"),
    ):
        _ = opened.search


def test_the_last_run_says_when_to_stop(tmp_path: Path) -> None:
    place = create(tmp_path / "mine", MINE)
    with place.open() as opened:
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 9, "seconds": None}})
        opened.log.append("started", "me", {"begins": True, "stop": {"trials": 5, "seconds": 2.5}})
        opened.log.append("started", "me", {"begins": True})
    with place.open() as opened:
        assert opened.search.stop == Stop(trials=5, seconds=2.5, patience=2)
        assert opened.log.config == {**MINE.to_json(whole=True), "stage": "search"}
