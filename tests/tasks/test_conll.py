"""Tasks of column files, the tokens of their words, and predictions in the same form."""

from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks import load_task
from formwright.tasks.conll import has_tags, read_words, unlabelled_words, write_words
from formwright.tasks.encode import IGNORED
from formwright.tasks.rows import PlainText, TaggedRows
from formwright.tasks.tag_tokens import encode_tagged
from formwright.tasks.task_facts import task_facts
from formwright.tasks.tokeniser import train_subwords, train_wordpiece

SENTENCE = "EU\tB-org\nrejects\tO\nGerman\tB-misc\ncall\tO\n"


def written(path: Path, sentences: int = 30) -> Path:
    path.write_text("\n".join(SENTENCE.replace("call", f"call{number}") for number in range(sentences)))
    return path


def test_a_column_file_is_divided_and_its_kind_is_guessed(tmp_path: Path) -> None:
    task = load_task(str(written(tmp_path / "news.conll")))
    view = task.search_view()
    assert (task.kind, task.metric, task.labels) == ("token-classification", "entity-f1", ("O", "B-misc", "B-org"))
    assert (len(view.train), len(view.validation), task.has_test) == (24, 3, True)
    assert view.train.words[0][:3] == ("EU", "rejects", "German")
    assert view.train.tags[0] == (2, 0, 1, 0)
    assert "tags" in task.guess
    assert task.chance == 0.0
    facts = task_facts(task)
    assert facts["examples"][0]["tags"] == ("B-org", "O", "B-misc", "O")
    assert {label["name"]: label["train"] for label in facts["labels"]} == {"O": 48, "B-misc": 24, "B-org": 24}


def test_folders_other_columns_and_plain_tags(tmp_path: Path) -> None:
    lines = ["-DOCSTART- X O", "", *["the DET O", "dog NOUN B-pet"], ""] * 3
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / name).write_text("\n".join(lines))
    task = load_task(str(tmp_path))
    assert task.labels == ("O", "B-pet")
    assert [len(rows) for rows in (task.search_view().train, task.search_view().validation)] == [3, 3]
    parts = load_task(str(tmp_path), label="2", kind="tags")
    assert (parts.labels, parts.metric) == (("DET", "NOUN"), "tag-accuracy")
    assert parts.chance == 0.5
    assert parts.splits.read != task.splits.read


def test_chance_is_the_tag_that_is_commonest_in_training(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("the DET\ndog NOUN\n\nthe DET\n\na DET\n")
    for name in ("dev.txt", "test.txt"):
        (tmp_path / name).write_text("the DET\ndog NOUN\ncat NOUN\nowl NOUN\n")
    assert load_task(str(tmp_path), kind="tags").chance == 0.25


def test_what_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "odd.conll"
    path.write_text("a\tO\nb\nc\tB-x\n")
    with pytest.raises(IllegalInput, match=r"odd\.conll, line 2: 1 column"):
        load_task(str(path))
    path.write_text("a DT O\nb VB\nc NN B-x\n")
    with pytest.raises(IllegalInput, match=r"odd\.conll, line 2: 2 columns, and 3"):
        load_task(str(path))
    path.write_text("a\tO\nb\tO\n")
    (tmp_path / "none.conll").write_text("\n")
    with pytest.raises(IllegalInput, match="no words"):
        load_task(str(tmp_path / "none.conll"))
    with pytest.raises(IllegalInput, match="same tag"):
        load_task(str(path))
    (tmp_path / "train.conll").write_text(SENTENCE)
    (tmp_path / "dev.conll").write_text("a\tB-orgs\n")
    with pytest.raises(IllegalInput, match=r"dev\.conll, line 1.*Nearest: 'B-org'"):
        load_task(str(tmp_path))
    with pytest.raises(IllegalInput, match="--label"):
        load_task(str(written(path)), label="tag")


def test_an_empty_column_between_tabs_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "gaps.conll"
    path.write_text("".join(f"w{row}\t\tB-x\nw1\tDET\tO\n\t\t\n" for row in range(20)))
    task = load_task(str(path))
    assert (task.labels, len(task.search_view().train)) == (("O", "B-x"), 16)  # a line of tabs is blank
    with pytest.raises(IllegalInput, match=r"gaps\.conll .*\n.*line 1: column 2 is empty"):
        load_task(str(path), label="2")
    path.write_text("\tDET\tO\n")
    for read in (lambda: load_task(str(path)), lambda: read_words(path, ())):
        with pytest.raises(IllegalInput, match=r"line 1: column 1 is empty"):
            read()
    path.write_text("".join(f"w{row}   DET  B-x \nw1 DET O\n\n" for row in range(20)))  # spaces only separate
    assert load_task(str(path), label="3").labels == ("O", "B-x")


def test_sentences_in_several_files_are_counted(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        written(tmp_path / f"{name}.conll")
    with (tmp_path / "train.conll").open("a") as file:
        file.write("\n" + SENTENCE.replace("call", "call3").replace("B-misc", "O") + "\nnew\tB-per\n")
    found = {warning.kind: warning for warning in load_task(str(tmp_path)).warnings}
    assert {kind: warning.count for kind, warning in found.items()} == {
        "shared-rows": 90,  # 30 of validation, and 30 of test that are in train and in validation
        "contradictory-labels": 4,  # call3 in each file, and once more in train
        "rare-classes": 1,
    }
    assert "30 of 30 validation rows" in found["shared-rows"].message
    assert "sentences" in found["shared-rows"].message


def test_a_text_or_a_table_is_no_column_file(tmp_path: Path) -> None:
    (tmp_path / "prose.txt").write_text("This is prose.\nIt has two words O\n")
    (tmp_path / "table.csv").write_text("sentence,label\na,O\n")
    assert not has_tags(tmp_path / "prose.txt")
    assert not has_tags(tmp_path / "table.csv")
    assert not has_tags(tmp_path / "missing.conll")
    assert has_tags(written(tmp_path / "annotated"))


@pytest.mark.parametrize("train", [train_wordpiece, train_subwords])
def test_the_tag_of_a_word_is_that_of_its_first_token(train: object) -> None:
    rows = TaggedRows((("unbelievable", "news", "!?"), ("\u200b", "yes")), ((1, 0, 2), (1, 2)))
    tokeniser = train(PlainText(("unbel ievable news ! ? yes",)), 60)
    examples = encode_tagged(rows, tokeniser, 32)
    for row, words in enumerate(rows.words):
        numbers, tags = examples.words[row].tolist(), examples.tags[row].tolist()
        assert len(numbers) == len(tags) == len(examples.tokens[row])
        assert (numbers[0], numbers[-1]) == (-1, -1)
        first = [number for number in numbers if number >= 0]
        assert first == sorted(set(first))
        assert set(first) <= set(range(len(words)))
        assert [tag for tag in tags if tag != IGNORED] == [rows.tags[row][word] for word in first]
    assert [number for number in examples.words[0].tolist() if number >= 0] == [0, 1, 2]
    assert len(examples.tokens[0]) > 5  # words of several pieces
    short = encode_tagged(rows, tokeniser, 8)
    assert short.tokens.lengths.max() <= 8
    assert short.uncut.tolist() == examples.uncut.tolist()


def test_predictions_are_written_as_columns_and_read_again(tmp_path: Path) -> None:
    rows = [{"text": "EU rejects", "prediction": ["B-org", "O"]}, {"text": "no", "prediction": ["O"]}]
    path = tmp_path / "out.conll"
    path.write_text(write_words(rows, ["text", "prediction"], "conll"))
    assert path.read_text() == "EU\tB-org\nrejects\tO\n\nno\tO\n"
    table = read_words(path, ())
    assert table.texts == (("EU rejects",), ("no",))
    assert unlabelled_words(table.texts).words == (("EU", "rejects"), ("no",))
    assert '"[""B-org"", ""O""]"' in write_words(rows, ["text", "prediction"], "csv")


def test_words_with_spaces_are_predicted_as_they_were_learned(tmp_path: Path) -> None:
    path = tmp_path / "cities.conll"
    path.write_text("New York\tB-city\nsleeps\tO\n\nLos Angeles\tB-city\n\nBerlin\tB-city\n")
    table = read_words(path, ())
    words = (("New York", "sleeps"), ("Los Angeles",), ("Berlin",))
    assert unlabelled_words(table.texts).words == words
    rows = [{**row, "prediction": ["O"] * len(own)} for row, own in zip(table.rows, words, strict=True)]
    assert write_words(rows, ["text", "prediction"], "conll") == (
        "New York\tO\nsleeps\tO\n\nLos Angeles\tO\n\nBerlin\tO\n"
    )
    assert "New York sleeps," in write_words(rows, ["text", "prediction"], "csv")


UNIVERSAL = """\
# sent_id = {number}
# text = Vámonos al mar {number}
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tv{number}\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tp\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\ti\t_\t5\tcase\t_\t_
4\tel\tel\tDET\td\t_\t5\tdet\t_\t_
5\tmar{number}\tmar\tNOUN\tn\t_\t1\tobl\t_\t_
5.1\tvamos\tir\tVERB\tv\t_\t_\t_\t0:root\t_
6\t20 000\t20000\tNUM\tm\t_\t5\tnummod\t_\t_
7\t#\t#\tSYM\ts\t_\t5\tdep\t_\t_
"""


def test_the_words_of_a_universal_treebank_are_its_second_column_and_the_tags_its_fourth(tmp_path: Path) -> None:
    path = tmp_path / "es.conllu"
    path.write_text("\n".join(UNIVERSAL.format(number=number) for number in range(30)), encoding="utf-8")
    task = load_task(str(path))
    train = task.search_view().train
    assert (task.kind, task.metrics, len(train)) == ("token-classification", ("tag-accuracy",), 24)
    assert train.words[0] == ("Vamos", "nos", "a", "el", "mar0", "20 000", "#")
    assert [task.labels[tag] for tag in train.tags[0]] == ["VERB", "PRON", "ADP", "DET", "NOUN", "NUM", "SYM"]
    relations = load_task(str(path), label="8", kind="tags")
    assert set(relations.labels) == {"root", "obj", "case", "det", "obl", "nummod", "dep"}
    tokens = encode_tagged(train, train_wordpiece(train, 60), 64)
    assert sum(tag != IGNORED for tag in tokens.tags[0].tolist()) == 7
    words = unlabelled_words(read_words(path, ()).texts).words
    assert words[0] == train.words[0], "predicted words are those that were learned"


def test_lines_of_a_universal_treebank_without_ten_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "es.conllu"
    path.write_text(UNIVERSAL.format(number=0) + "8\tfin\n")
    with pytest.raises(IllegalInput, match=r"es\.conllu, line 13"):
        load_task(str(path))
    path.write_text("word\n")
    with pytest.raises(IllegalInput, match=r"es\.conllu, line 1"):
        read_words(path, ())


def test_a_hash_begins_a_word_where_there_are_no_comments(tmp_path: Path) -> None:
    path = tmp_path / "tweets.conll"
    path.write_text("\n".join(f"#tag{number}\tB-tag\nis\tO\n" for number in range(30)))
    assert load_task(str(path)).search_view().train.words[0] == ("#tag0", "is")
