from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.encode import Ragged, encode_rows, frame, padding_share, plan_batches
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import PlainText, TaggedRows, TextRows, TranslationRows
from formwright.tasks.text_kinds import SEQUENCE_CLASSIFICATION
from formwright.tasks.tokeniser import CLASS, SEPARATOR, train_wordpiece

ROWS = TextRows((("one two", "three"), ("four", "five six seven")), (0, 1))
TOKENISER = train_wordpiece(ROWS)


def words(ids) -> list[str]:
    return [TOKENISER.vocabulary[index] for index in ids]


def test_plain_text_is_cut_into_pieces_and_none_is_lost() -> None:
    text = " ".join(["one", "two", "three", "four", "five"] * 5)
    encoded = encode_rows(PlainText((text, "six")), TOKENISER, 8)
    assert max(encoded.tokens.lengths) == 8
    assert all(piece[0] == CLASS and piece[-1] == SEPARATOR for piece in map(encoded.tokens.__getitem__, range(6)))
    assert TOKENISER.decode(encoded.tokens.values.tolist()) == text + " six"
    assert encoded.labels is None


def test_sentences_and_pairs_are_framed_and_cut() -> None:
    encoded = encode_rows(ROWS, TOKENISER, 16)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "[SEP]", "three", "[SEP]"]
    assert (encoded.types[0].tolist(), encoded.labels.dtype) == ([0, 0, 0, 0, 1, 1], np.int64)
    encoded = encode_rows(TextRows((("one two",),), (0.5,)), TOKENISER, 16)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "[SEP]"]
    assert (encoded.types[0].tolist(), encoded.labels.dtype) == ([0] * 4, np.float32)
    rows = TextRows((("one two three four five six", "seven six"),), (0,))
    encoded = encode_rows(rows, TOKENISER, 8)
    assert words(encoded.tokens[0]) == ["[CLS]", "one", "two", "three", "[SEP]", "seven", "six", "[SEP]"]
    assert encoded.types[0].tolist() == [0] * 5 + [1] * 3
    encoded = encode_rows(TranslationRows(("one two",), ("three",)), TOKENISER, 8)
    assert words(encoded.targets[0]) == ["[CLS]", "three", "[SEP]"]


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(IllegalInput, match="at least 8"):
        encode_rows(ROWS, TOKENISER, 7)
    with pytest.raises(IllegalInput, match="not 3 of them"):
        encode_rows(TextRows((("one", "two", "three"),), (0,)), TOKENISER, 8)


def test_rows_of_another_package_need_examples_of_their_own() -> None:
    kind = replace(SEQUENCE_CLASSIFICATION, name="acme-lines")
    with pytest.raises(IllegalInput, match=r"TaggedRows.*examples"):
        kind.examples(TaggedRows((("one",),), ((0,),)), TOKENISER, 16)


def test_ragged_rows_are_padded_on_the_right() -> None:
    ragged = Ragged.of([[7], [], [8, 9, 6]])
    assert (len(ragged), ragged.lengths.tolist()) == (3, [1, 0, 3])
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
    library = Tokenizer.from_str(train_wordpiece(PlainText(("a b c d e f g h",)), 60).tokenizer.to_str())
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


LENGTHS = derive(0, "lengths").integers(5, 40, size=1000)


@given(st.lists(st.integers(1, 30), max_size=70), st.integers(1, 20), st.booleans(), st.booleans())
def test_every_row_comes_exactly_once(lengths, size, random, bucketed) -> None:
    plan = plan_batches(np.array(lengths, np.int64), size, derive(1) if random else None, bucketed)
    assert sorted(row for batch in plan for row in batch) == list(range(len(lengths)))
    assert sum(len(batch) < size for batch in plan) <= 1


def test_padding_is_that_of_the_masks_and_bucketing_saves_most() -> None:
    plain = padding_share(LENGTHS, plan_batches(LENGTHS, 32, derive(0), bucketed=False))
    bucketed = padding_share(LENGTHS, plan_batches(LENGTHS, 32, derive(0)))
    assert plain > 0.35
    assert bucketed < 0.1
    ragged, plan = Ragged.of([[7] * length for length in LENGTHS]), plan_batches(LENGTHS, 32, derive(3))
    masks = [ragged.padded(rows)[1] for rows in plan]
    real, computed = sum(mask.sum() for mask in masks), sum(mask.size for mask in masks)
    assert padding_share(LENGTHS, plan) == pytest.approx(1 - real / computed)


def test_batches_come_in_random_order_by_the_generator_alone() -> None:
    first, again, other = (plan_batches(LENGTHS, 32, derive(seed)) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(first, other, strict=True))
    longest = [int(LENGTHS[rows].max()) for rows in plan_batches(LENGTHS, 32, derive(0))]
    assert longest != sorted(longest)


def test_plans_without_rows() -> None:
    with pytest.raises(IllegalInput, match="at least one row"):
        plan_batches(LENGTHS, 0)
    assert padding_share(np.array([], np.int64), plan_batches(np.array([], np.int64), 4)) == 0.0
