from pathlib import Path

import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.word_store import load_words, store_words

WORDS = ("[PAD]", "a", "##é", "日")


def test_words_come_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "words.json"
    store_words(file, WORDS)
    assert load_words(file) == WORDS
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"words": [1]}', b'{"words": ["a"]}', b'{"words": "a"}'])
def test_what_was_not_written_by_us_is_ignored(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "words.json"
    file.write_bytes(content)
    assert load_words(file) is None


def test_any_cut_and_any_changed_word_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "words.json"
    store_words(file, WORDS)
    whole = file.read_bytes()
    for content in [whole[:size] for size in range(len(whole))] + [whole.replace(b'"a"', b'"b"')]:
        file.write_bytes(content)
        assert load_words(file) is None
    store_words(file, WORDS)
    assert load_words(file) == WORDS


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(IllegalInput, match="taken"):
        store_words(tmp_path / "taken" / "words.json", WORDS)


def test_a_folder_in_the_place_of_the_file_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    file = tmp_path / "words.json"
    file.mkdir()
    with pytest.raises(IllegalInput, match=r"words\.json"):
        store_words(file, WORDS)
    assert list(tmp_path.iterdir()) == [file]
