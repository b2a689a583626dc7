import gzip
from pathlib import Path

import pytest
from tests.tasks.fake_bleu import without_sacrebleu

from formwright.core.errors import IllegalInput, MissingExtra
from formwright.tasks import catalogue, load_task
from formwright.tasks.metrics import metric
from formwright.tasks.rows import PlainText, TranslationRows
from formwright.tasks.test_split import open_test

DATA = Path(__file__).parents[2] / "../shared/data"


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
    with pytest.raises(IllegalInput, match=r"has none of val\.de, val\.de\.gz"):
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
    without_sacrebleu(monkeypatch)
    with pytest.raises(MissingExtra, match=r"formwright\[translation\]"):
        load_task("multi30k", pairs(tmp_path))


def test_the_catalogue_says_what_they_are_and_that_files_are_needed() -> None:
    entries = {entry.name: entry for entry in catalogue()}
    assert (entries["multi30k"].kind, entries["wikitext-2"].kind) == ("seq2seq-lm", "causal-lm")
    assert metric(entries["multi30k"].metric).direction == "min"
    assert metric("bleu").direction == "max"


@pytest.mark.data
def test_published_files_have_their_published_sizes() -> None:
    view = load_task("multi30k", DATA).search_view()
    assert (len(view.train), len(view.validation)) == (29_000, 1_014)
    assert view.train.targets[0] == "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
    articles = load_task("wikitext-2", DATA).search_view()
    # line ends count as a token in the published figure, also those of the empty lines that are left out here
    assert sum(len(text.split()) for text in articles.validation.texts) == 217_646 - 3_760
