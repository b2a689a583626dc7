from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.encode import Ragged, encode_rows, frame
from formwright.tasks.pretrained_tokeniser import read_tokeniser
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


@pytest.mark.parametrize("framing", ["berts", "none"])
def test_rows_are_cut_as_the_library_cuts_them_by_default(framing: str, tmp_path: Path) -> None:
    # `tokenizer(a, b, truncation=True)` of transformers is the library's own truncation
    trained = train_wordpiece(PlainText(("a b c d e f g h",)), 60).tokenizer
    library = Tokenizer.from_str(trained.to_str())
    if framing == "none":
        library.post_processor = None
    library.save(str(tmp_path / "tokenizer.json"))
    tokeniser = read_tokeniser(tmp_path)
    delivered = Tokenizer.from_str(tokeniser.tokenizer.to_str())
    rng = derive(0, "pairs")
    texts = [" ".join("abcdefgh"[place] for place in rng.integers(8, size=rng.integers(1, 24))) for _ in range(400)]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    singles = [(first,) for first, _ in pairs]
    for length in (8, 15, 16, 21):
        delivered.enable_truncation(length)
        for rows in (pairs, singles):
            encoded = encode_rows(TextRows(tuple(rows), (0,) * len(rows)), tokeniser, length)
            for place, row in enumerate(rows):
                wanted = delivered.encode(*row)
                assert encoded.tokens[place].tolist() == wanted.ids, (length, row)
                assert encoded.types[place].tolist() == wanted.type_ids
