"""Texts without labels: published corpora, Python's reference, and pieces of text to learn from."""

import gzip
import sys
from pathlib import Path

import pytest
from tests.pipeline.block_runs import text

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.tasks import load_task
from formwright.tasks.corpora import PYDOC_CAUSAL, PYDOC_MASKED, pydoc_splits, text_pieces
from formwright.tasks.rows import PlainText, TranslationRows
from formwright.tasks.test_split import open_test
from formwright.tasks.tokeniser import train_wordpiece


def pairs(folder: Path, rows: int = 3) -> Path:
    """Write a tiny Multi30k, of which some files are packed."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "val", "test_2016_flickr"):
        for language, word in (("en", "dog"), ("de", "Hund")):
            text = "".join(f"{split} {word} {row} ä.\n" for row in range(rows))
            if split == "train":
                (folder / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


def texts(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text(f" \n = Heading = \n \n Words of {split} . \n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("inner", ["", "multi30k"])
def test_sentences_stand_beside_their_translations(tmp_path: Path, inner: str) -> None:
    pairs(tmp_path / inner)
    task = load_task("multi30k", tmp_path)
    view = task.search_view()
    assert view.train == TranslationRows(
        tuple(f"train dog {row} ä." for row in range(3)), tuple(f"train Hund {row} ä." for row in range(3))
    )
    assert view.validation.sources[0] == "val dog 0 ä."
    assert open_test(task).sources[0] == "test_2016_flickr dog 0 ä."
    assert (task.kind, task.metric, task.metrics) == ("seq2seq-lm", "perplexity", ("perplexity", "bleu"))


def test_paragraphs_are_the_lines_that_are_not_empty(tmp_path: Path) -> None:
    task = load_task("wikitext-2", texts(tmp_path / "wikitext-2").parent)
    assert task.search_view().validation == PlainText(("= Heading =", "Words of valid ."))
    assert (task.kind, task.metrics) == ("causal-lm", ("perplexity",))
    folder = texts(tmp_path)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").rename(folder / f"wiki.{split}.tokens")
    assert len(load_task("wikitext-2", folder).search_view().train) == 2


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="give their folder with --data DIR"):
        load_task("multi30k")
    with pytest.raises(IllegalInput, match=r"nowhere is not there; expected the folder wikitext-2"):
        load_task("wikitext-2", tmp_path / "nowhere")
    (pairs(tmp_path) / "val.de").unlink()
    with pytest.raises(IllegalInput, match=r"expected one of val\.de, val\.de\.gz"):
        load_task("multi30k", tmp_path)
    with pytest.raises(IllegalInput, match="takes no --official-dev"):
        load_task("multi30k", tmp_path, official_dev=True)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    folder = pairs(tmp_path)
    (folder / "val.de").write_text("Hund\n", encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"val\.en has 3 lines and .*val\.de 1"):
        load_task("multi30k", folder).search_view()
    (folder / "val.de").write_text("Hund\n\nHund\n", encoding="utf-8")
    with pytest.raises(IllegalInput, match=r"line 2 of .* is empty"):
        load_task("multi30k", folder).search_view()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(IllegalInput, match="holds no text"):
        load_task("wikitext-2", folder).search_view()


def test_without_its_extra_no_translation_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtra, match=r"formwright\[translation\]"):
        load_task("multi30k", pairs(tmp_path))


@pytest.mark.data
def test_published_files_have_their_published_sizes(data_dir: Path) -> None:
    view = load_task("multi30k", data_dir).search_view()
    assert (len(view.train), len(view.validation)) == (29_000, 1_014)
    assert view.train.targets[0] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
    articles = load_task("wikitext-2", data_dir).search_view()
    # line ends count as a token in the published figure, also those of the empty lines that are left out here
    assert sum(len(text.split()) for text in articles.validation.texts) == 217_646 - 3_760


# --- Python's reference ----------------------------------------------------------------------------------------------


def test_splits_hold_prose_and_no_paragraph_twice() -> None:
    splits = pydoc_splits()
    sizes = [sum(map(len, rows.texts)) for rows in (splits.train, splits.validation, splits.test)]
    assert min(sizes) > 10_000
    assert sizes[0] > 2 * (sizes[1] + sizes[2])
    texts = [*splits.train.texts, *splits.validation.texts, *splits.test.texts]
    assert len(set(texts)) == len(texts)
    assert all(len(text.split()) >= 6 and "\n" not in text for text in texts)
    assert PYDOC_MASKED.search_view() == PYDOC_CAUSAL.search_view()
    assert (PYDOC_MASKED.kind, PYDOC_CAUSAL.kind) == ("masked-lm", "causal-lm")
    tokeniser = train_wordpiece(splits.train, 1_000)
    ids = [index for text in tokeniser.encode(splits.validation.texts) for index in text]
    assert ids.count(1) < 0.001 * len(ids)  # few unknown tokens


# --- pieces of text --------------------------------------------------------------------------------------------------


def test_the_builtin_prose_is_cut_into_pieces() -> None:
    found = text_pieces("", None, 32)
    assert len(found.train) > 5 * len(found.validation) > 500
    assert all(3 <= len(piece.split()) <= 24 for piece in found.train.texts)
    assert not set(found.train.texts[:2000]) & set(found.validation.texts[:50])


def test_a_tenth_of_an_own_file_is_held_out(tmp_path: Path) -> None:
    found = text_pieces(str(text(tmp_path, 100)), None, 64)
    assert (len(found.train), len(found.validation)) == (90, 10)
    assert not set(found.train.texts) & set(found.validation.texts)


@pytest.mark.parametrize("name", ["wikitext", "wikitext-2"])
@pytest.mark.parametrize("folder", ["", "wikitext-2"])
@pytest.mark.parametrize("packed", [False, True])
def test_wikitext_is_found_in_its_folder(tmp_path: Path, name: str, folder: str, packed: bool) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    for part in ("train", "valid"):
        content = "\n".join(f" = Heading = \n the {part} paragraph number {number}" for number in range(30)).encode()
        file = f"{part}.txt{'.gz' if packed else ''}"
        (tmp_path / folder / file).write_bytes(gzip.compress(content) if packed else content)
    found = text_pieces(name, tmp_path, 64)
    assert "the train paragraph number 7" in found.train.texts
    assert "the valid paragraph number 7" in found.validation.texts


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a b c", encoding="utf-8")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "train.txt.gz").write_bytes(b"no gzip")
    for name, data, why in (
        (str(tmp_path / "absent.txt"), None, "cannot read .*absent"),
        (str(tmp_path / "short.txt"), None, "has 1 pieces"),
        (str(tmp_path / "binary.txt"), None, "line 1: UTF-16"),
        ("wikitext", None, "with --data"),
        ("wikitext", tmp_path / "nowhere", "nowhere is not there"),
        ("wikitext", tmp_path, "cannot unpack"),
        ("", tmp_path, "other texts need none"),
    ):
        with pytest.raises(IllegalInput, match=why):
            text_pieces(name, data, 64)


@pytest.mark.data
def test_the_published_wikitext_is_read(data_dir: Path) -> None:
    found = text_pieces("wikitext", data_dir / "wikitext-2", 64)
    assert len(found.train) > 30_000
    assert len(found.validation) > 3_000


def test_a_file_of_text_is_divided_from_beginning_to_end(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("\n\n".join(f"Line {number} of my book." for number in range(50)))
    task = load_task(str(path))
    view = task.search_view()
    assert (task.kind, task.metric, task.has_test) == ("causal-lm", "perplexity", True)
    assert view.train.texts == tuple(f"Line {number} of my book." for number in range(40))
    assert view.validation.texts[0] == "Line 40 of my book."
    assert load_task(str(path), kind="masked-lm").kind == "masked-lm"
    with pytest.raises(IllegalInput, match="no columns"):
        load_task(str(path), text=("a",))
    path.write_text("Too\nshort\n")
    with pytest.raises(IllegalInput, match="2 lines"):
        load_task(str(path))


def test_a_folder_of_texts_may_lack_splits(tmp_path: Path) -> None:
    lines = "\n".join(f"Line {number}" for number in range(20))
    (tmp_path / "train.txt").write_text(lines)
    (tmp_path / "test.txt").write_text("Another line")
    task = load_task(str(tmp_path))
    assert (len(task.search_view().train), len(task.search_view().validation)) == (18, 2)
    with pytest.raises(IllegalInput, match="validation"):
        load_task(str(tmp_path), official_dev=True)
    (tmp_path / "test.txt").unlink()
    (tmp_path / "valid.txt").write_text(lines)
    assert len(load_task(str(tmp_path)).search_view().validation) == 10
    whole = load_task(str(tmp_path), official_dev=True)
    assert (len(whole.search_view().validation), whole.has_test) == (20, False)
