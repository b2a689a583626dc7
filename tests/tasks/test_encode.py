import numpy as np
import pytest

from formwright.core.errors import IllegalInput
from formwright.tasks.encode import Ragged, encode_rows, frame
from formwright.tasks.rows import ImageRows, PlainText, TextRows, TranslationRows
from formwright.tasks.tokeniser import CLASS, SEPARATOR, train_wordpiece

ROWS = TextRows((("one two", "three"), ("four", "five six seven")), (0, 1))
TOKENISER = train_wordpiece(ROWS)


def words(ids) -> list[str]:
    return [TOKENISER.vocabulary[index] for index in ids]


def test_pairs_are_framed_and_their_types_tell_them_apart() -> None:
    encoded = encode_rows(ROWS, TOKENISER, 16)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "[SEP]", "three", "[SEP]"]
    assert encoded.types[0].tolist() == [0, 0, 0, 0, 1, 1]
    assert encoded.labels is not None
    assert encoded.labels.dtype == np.int64


def test_single_sentences() -> None:
    encoded = encode_rows(TextRows((("one two",),), (0.5,)), TOKENISER, 16)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "[SEP]"]
    assert encoded.types[0].tolist() == [0] * 4
    assert encoded.labels is not None
    assert encoded.labels.dtype == np.float32


def test_the_longer_sentence_is_cut_first() -> None:
    rows = TextRows((("one two three four five six", "seven six"),), (0,))
    encoded = encode_rows(rows, TOKENISER, 8)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "three", "[SEP]", "seven", "six", "[SEP]"]
    assert encoded.types[0].tolist() == [0] * 5 + [1] * 3


def test_plain_text_is_cut_into_pieces_and_none_is_lost() -> None:
    text = " ".join(["one", "two", "three", "four", "five"] * 5)
    encoded = encode_rows(PlainText((text, "six")), TOKENISER, 8)
    assert max(encoded.tokens.lengths) == 8
    assert all(piece[0] == CLASS and piece[-1] == SEPARATOR for piece in map(encoded.tokens.__getitem__, range(6)))
    assert TOKENISER.decode(encoded.tokens.values.tolist()) == text + " six"
    assert encoded.labels is None


def test_translations_have_targets() -> None:
    encoded = encode_rows(TranslationRows(("one two",), ("three",)), TOKENISER, 8)
    assert encoded.targets is not None
    assert words(encoded.targets[0]) == ["[CLS]", "three", "[SEP]"]


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(IllegalInput, match="at least 8"):
        encode_rows(ROWS, TOKENISER, 7)
    with pytest.raises(IllegalInput, match="not 3 of them"):
        encode_rows(TextRows((("one", "two", "three"),), (0,)), TOKENISER, 8)
    with pytest.raises(IllegalInput, match="no tokens"):
        encode_rows(ImageRows(np.zeros((1, 1, 2, 2), np.float32), np.zeros(1, np.int64)), TOKENISER, 8)


def test_ragged_rows_are_padded_on_the_right() -> None:
    ragged = Ragged.of([[7], [], [8, 9, 6]])
    assert len(ragged) == 3
    assert ragged.lengths.tolist() == [1, 0, 3]
    matrix, mask = ragged.padded(np.array([2, 0]))
    assert matrix.tolist() == [[8, 9, 6], [7, 0, 0]]
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    assert ragged.padded(np.array([2, 0]), 5)[0].tolist() == [[8, 9, 6], [7, 5, 5]]


@pytest.mark.parametrize("texts", [("a good film",), ("a good film", "not a bad one")])
def test_a_loaded_tokenizer_frames_texts_as_training_does(texts: tuple[str, ...]) -> None:
    tokeniser = train_wordpiece(PlainText(("a good film", "not a bad one")))
    loaded = tokeniser.tokenizer.encode(*texts)
    tokens, types = frame(tokeniser.encode(texts), tokeniser)
    assert (loaded.ids, loaded.type_ids) == (tokens, types)
