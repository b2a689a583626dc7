"""Files of relations, tables with markers, and tokenisers that know the markers."""

import gzip
from pathlib import Path

import pytest
from tests.train.cases import ENCODER, RELATIONS

from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.imported import Imported
from formwright.nn.settings import Settings
from formwright.tasks import load_task
from formwright.tasks.kind import KINDS
from formwright.tasks.pretrained_tokeniser import with_tokens
from formwright.tasks.relations import MARKERS, has_relations, train_marked_wordpiece
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_wordpiece

BLOCK = '{0}\t"The <e1>house {0}</e1> is <e2>red</e2>."\r\n{1}\r\nComment: {0} is a comment\r\n\r\n'
NAMES = ("Colour(e1,e2)", "Colour(e2,e1)", "Other")


def blocks(number: int) -> str:
    return "".join(BLOCK.format(place, NAMES[place % 3]) for place in range(number))


def test_a_file_of_numbered_sentences_is_a_task_of_relations(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(blocks(60))
    task = load_task(str(path))
    view = task.search_view()
    assert (task.kind, task.metric, task.labels) == ("relation-classification", "relation-f1", NAMES)
    assert (len(view.train), len(view.validation)) == (48, 6)
    assert view.train.texts[0] == ("The <e1>house 0</e1> is <e2>red</e2>.",)
    assert "relations" in task.guess
    assert 0 < task.chance < 1  # the commonest relation, which is no worse than nothing


@pytest.mark.parametrize("lost", ["Other\r\n", "Other\r\nComment: 2 is a comment\r\n"])
def test_a_sentence_without_its_relation_is_named(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "mine.txt"
    whole = blocks(60)
    first = whole.index(lost) if lost in whole else 0
    path.write_text(whole[:first] + whole[first + len(lost) :], newline="")
    with pytest.raises(IllegalInput, match=r"mine\.txt, line 9: .*relation"):
        load_task(str(path))


def test_a_last_sentence_without_its_relation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(blocks(60) + BLOCK.format(60, "").partition("\r\n")[0], newline="")
    with pytest.raises(IllegalInput, match=r"line 241: .*relation"):
        load_task(str(path))


def test_the_official_files_are_read_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "semeval2010_task8"
    folder.mkdir()
    (folder / "TRAIN_FILE.TXT.gz").write_bytes(gzip.compress(blocks(60).encode()))
    (folder / "TEST_FILE_FULL.TXT").write_text(blocks(9))
    task = load_task("semeval2010_task8", tmp_path)
    assert (len(task.search_view().train), len(task.search_view().validation), task.has_test) == (54, 6, True)
    with pytest.raises(IllegalInput, match="--data"):
        load_task("semeval2010_task8")


def test_a_table_with_markers_is_one_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"a <e1>b{place}</e1> <e2>c</e2>,{NAMES[place % 3][:3]}" for place in range(40)]
    path.write_text("text,relation\n" + "\n".join(rows))
    task = load_task(str(path), text=("text",), label="relation", kind="relations")
    assert (task.kind, task.metrics) == ("relation-classification", ("relation-f1", "accuracy"))
    path.write_text("text,relation\n" + "\n".join(row.replace("</e2>", "") for row in rows))
    with pytest.raises(IllegalInput, match="</e2>"):
        load_task(str(path), text=("text",), label="relation", kind="relations")
    path.write_text("text,relation\n" + "\n".join(row.replace("</e1>", "</e1> <e1>d</e1>") for row in rows))
    with pytest.raises(IllegalInput, match=r"once.*<e1>"):
        load_task(str(path), text=("text",), label="relation", kind="relations")


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_sentence_without_markers_is_named_with_its_file_and_line(tmp_path: Path, split: str) -> None:
    for name in ("train", "validation", "test"):
        rows = [f"a <e1>b{name}{place}</e1> <e2>c</e2>,{NAMES[place % 3][:3]}" for place in range(12)]
        if name == split:
            rows[3] = f"\n{rows[3].replace('<e1>', '')}"  # behind a blank line
        (tmp_path / f"{name}.csv").write_text("text,relation\n" + "\n".join(rows))
    with pytest.raises(IllegalInput, match=rf"{split}\.csv, line 6: .*<e1>"):
        load_task(str(tmp_path), text=("text",), label="relation", kind="relations")


def test_rows_to_predict_need_their_markers_too() -> None:
    marked, plain = "a <e1>b</e1> <e2>c</e2>", "a b c"
    make = KINDS.get("relation-classification").unlabelled
    assert make is not None
    assert make([(marked,), (marked,)]).texts == ((marked,), (marked,))
    with pytest.raises(IllegalInput, match=r"row 2: .*<e1>"):
        make([(marked,), (plain,)])


def test_a_marker_that_occurs_twice_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(blocks(6).replace("house 1</e1>", "<e1>house 1</e1>"), newline="")
    with pytest.raises(IllegalInput, match=r"mine\.txt, line 5: .*<e1>"):
        load_task(str(path))


def test_what_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(blocks(6) + "no number here\n")
    assert has_relations(path)
    with pytest.raises(IllegalInput, match=r"mine\.txt, line 25"):
        load_task(str(path))
    (tmp_path / "train.txt").write_text(blocks(9))
    (tmp_path / "dev.txt").write_text(BLOCK.format(7, "Coulour(e1,e2)"))
    with pytest.raises(IllegalInput, match=r"dev\.txt, line 1.*Nearest: 'Colour\(e1,e2\)'"):
        load_task(str(tmp_path))


def test_markers_are_tokens_of_every_tokeniser() -> None:
    rows = RELATIONS.search_view().train
    tokeniser = train_marked_wordpiece(rows, 320)
    assert tokeniser.size <= 320
    assert train_marked_wordpiece(rows, 40).size == 40
    (ids,) = tokeniser.encode([rows.texts[0][0]])
    markers = [tokeniser.tokenizer.token_to_id(marker) for marker in MARKERS]
    assert [number for number in ids if number in markers] == markers
    plain = train_wordpiece(PlainText(("a house <e1>",)), 50)
    more = with_tokens(plain, MARKERS)
    assert (more.size, more.special) == (plain.size + 4, plain.special)
    assert more.encode(["a house"]) == plain.encode(["a house"])
    assert with_tokens(more, MARKERS) is more


def test_a_pretrained_model_gets_room_for_new_tokens() -> None:
    model = build(ENCODER, seed=1)
    imported = Imported(ENCODER, Settings(), model.state_dict())
    more = imported.with_room(324)
    name = "encoder.embedding.tokens.weight"
    assert more.card.encoder.embedding.vocabulary == len(more.weights[name]) == 324
    assert more.weights[name][:320].equal(imported.weights[name])
    assert more.weights[name][320:].allclose(imported.weights[name].mean(0).expand(4, -1))
    assert more.checked(Path("here")).model() is not None
    assert imported.with_room(320) is imported


def test_the_label_of_a_row_of_a_table_may_name_a_marker(tmp_path: Path) -> None:
    rows = (f"the <e1>house</e1> {place} is <e2>red</e2>,{('<e1> has <e2>', 'none')[place % 2]}" for place in range(30))
    (tmp_path / "mine.csv").write_text("\n".join(("words,relation", *rows)))
    task = load_task(str(tmp_path / "mine.csv"), text=("words",), label="relation", kind="relations")
    assert task.labels == ("<e1> has <e2>", "none")
