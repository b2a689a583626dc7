import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import formwright
from formwright.core.errors import IllegalInput, MissingExtra, UnknownName
from formwright.tasks import FROM_DATA, MINI_GLUE, TASKS, catalogue, load_task
from formwright.tasks.metrics import METRICS

SOURCE = str(Path(formwright.__file__).parents[1])
HEAVY = """
import sys
from formwright.tasks import TASKS
[TASKS.get(name) for name in TASKS.names()]
print(*sys.modules)
"""
DIGEST = "from formwright.tasks import load_task\nprint(load_task('mini-glue/rte').search_view().train.digest)"


def run(code: str, **environment: str) -> str:
    variables = {**os.environ, "PYTHONPATH": SOURCE, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", TASKS.names())
def test_tasks_know_their_names_and_metrics(name: str) -> None:
    task = load_task(name)
    assert task.name == name
    assert task.about
    assert set(task.metrics) <= set(METRICS.names())


def test_names_are_the_same_in_every_process() -> None:
    assert not {"torch", "transformers", "datasets", "sklearn"} & set(run(HEAVY).split())
    here = load_task("mini-glue/rte").search_view().train
    assert run(DIGEST, PYTHONHASHSEED="1") == here.digest  # here strings have other hashes


def table(path: Path, columns: str = "sentence,label") -> Path:
    path.write_text(columns + "\n" + "".join(f"sentence {row},{row % 2}\n" for row in range(20)))
    return path


def test_a_path_is_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "own.csv")
    assert load_task(str(path)).search_view().train.labels
    (tmp_path / "folder").mkdir()
    table(tmp_path / "folder" / "train.csv", "words,class")
    monkeypatch.chdir(tmp_path)
    views = [load_task(name, text=("words",), label="class").search_view() for name in ("folder", "./folder")]
    assert views[0] == views[1] == load_task(str(path)).search_view()


@pytest.mark.parametrize("name", ["glue/sst", "mini-glue/sst", "pydoc/both", "imdb", "a/b/c", ""])
def test_names_of_ours_that_are_wrong_are_not_looked_for_elsewhere(name: str) -> None:
    with pytest.raises(UnknownName, match="no task called"):
        load_task(name)


def test_datasets_come_from_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    for name in ("owner/name", "owner/name:config", "glue/sst2", "squad"):
        with pytest.raises(MissingExtra, match=r'pip install "formwright\[hub\]"'):
            load_task(name)
    with pytest.raises(IllegalInput, match=r"train-v2\.0\.json"):
        load_task("squad_v2", tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("digits", {"data": Path()}, "'digits' takes no --data"),
        ("digits", {"official_dev": True}, "'digits' takes no --official-dev"),
        ("digits", {"label": "label"}, "'digits' takes no --label"),
        ("glue/sst2", {"data": Path(), "text": ("sentence",)}, "'glue/sst2' takes no --text"),
        ("mini-glue/sentiment", {"text": ("a",)}, "takes no --text"),
        ("own.csv", {"data": Path()}, "takes no --data"),
    ],
)
def test_options_that_a_task_has_no_use_for_are_refused(name: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(IllegalInput, match=told):
        load_task(name, **options)


@pytest.mark.parametrize("options", [{}, {"kind": "pictures"}, {"kind": "series"}])
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_a_packed_folder_is_answered_with_the_line_that_unpacks_it(
    options: dict[str, str], whole: bool, tmp_path: Path
) -> None:
    for row in range(20):
        path = tmp_path / "data" / "ab"[row % 2] / f"{row}.pgm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"P5 1 1 255 " + bytes([row]))
    archive = tmp_path / "my pictures" / "packed.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as file:
        file.add(tmp_path / "data", ".")
    with pytest.raises(IllegalInput, match="unpack it with") as told:
        load_task(str(archive.parent if whole else archive), **options)
    line = re.search("`(.*)`", str(told.value))[1]  # type: ignore[index]
    subprocess.run(line, shell=True, check=True, cwd=tmp_path)
    assert load_task(str(tmp_path / "unpacked")).labels == ("a", "b")


def test_packed_files_of_a_published_task_are_told(tmp_path: Path) -> None:
    (tmp_path / "recordings.tar.gz").write_bytes(b"packed")
    with pytest.raises(IllegalInput, match="unpack it with"):
        load_task("fsdd", tmp_path)


def test_names_that_are_wrong() -> None:
    with pytest.raises(UnknownName, match="Nearest: 'mini-glue/sst2'"):
        load_task("mini-glue/sst-2")
    for name in ("own.csv", "./folder", "/nowhere/folder", "some/file.jsonl.gz"):
        with pytest.raises(IllegalInput, match=r"cannot read|neither a folder"):
            load_task(name)
    assert load_task("mini-glue/sentiment") is load_task("mini-glue/sst2")


def test_tasks_are_named_and_listed_with_what_they_need() -> None:
    assert len(MINI_GLUE) == 9
    others = {"pydoc/masked", "pydoc/causal", "digits", "translation"}
    assert set(TASKS.names()) == others | {f"mini-glue/{name}" for name in MINI_GLUE}
    others = {"squad", "squad_v2", "multi30k", "wikitext-2", "fashion-mnist", "mnist", "fsdd", "semeval2010_task8"}
    assert set(FROM_DATA) == {f"glue/{name}" for name in MINI_GLUE} | others
    entries = catalogue()
    assert [entry.name for entry in entries] == [*TASKS.names(), *FROM_DATA]
    assert {entry.rows for entry in entries if entry.name in TASKS.names()} == {"builtin"}
    assert all(entry.rows.startswith("--data DIR") for entry in entries if entry.name in FROM_DATA)
    assert all(entry.about and entry.metric in METRICS.names() for entry in entries)
