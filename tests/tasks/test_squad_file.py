import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.squad_file import read_squad, rows_of

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
    (article,) = read_squad(written(tmp_path, data, name))
    assert article.title == "Ann"
    rows = rows_of((article, article), "mine")
    assert rows.questions == ("Who?",) * 6
    assert set(rows.contexts) == {CONTEXT}
    assert rows.answers == ((("Ann", 0), ("1066", 16)), (("Ann", 0),), ()) * 2


def test_a_byte_order_mark_and_an_article_without_title_are_borne(tmp_path: Path) -> None:
    data = squad(question())
    del data["data"][0]["title"]
    (tmp_path / "dev.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(data).encode())
    assert [article.title for article in read_squad(tmp_path / "dev.json")] == ["data[0]"]


def test_articles_without_questions_are_left_out(tmp_path: Path) -> None:
    data = squad(question())
    data["data"].append({"title": "Bob", "paragraphs": []})
    assert len(read_squad(written(tmp_path, data))) == 1


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
        ("dev.json", b'{"data": "\xff"}', "not JSON in UTF-8"),
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


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
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
    assert (len(found), len(set(rows.contexts))) == (articles, paragraphs)
    assert (len(rows), rows.answers.count(())) == (questions, impossible)
