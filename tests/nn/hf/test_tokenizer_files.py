"""A tokenizer reaches the folder in whatever form it comes."""

import json
from pathlib import Path

import pytest
import transformers
from tests.nn.hf.test_save import word_tokenizer

from formwright.core.errors import IllegalInput
from formwright.nn.hf.tokenizer_files import leave_open, token_numbers, write_tokenizer
from formwright.tasks.encode import frame
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import train_wordpiece

TEXT = "w5 w6 [MASK] w49 unknown"


def numbers(folder: Path) -> list[int]:
    return list(transformers.AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"])


def test_every_form_gives_the_same_numbers(tmp_path: Path) -> None:
    plain, wrapped, copied = (tmp_path / name for name in ("plain", "wrapped", "copied"))
    for folder in (plain, wrapped, copied):
        folder.mkdir()
    wanted = word_tokenizer().encode(TEXT).ids
    assert write_tokenizer(word_tokenizer(), plain, 20) == 0
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=word_tokenizer(), pad_token="[PAD]")
    assert write_tokenizer(fast, wrapped, 20) == 0
    assert write_tokenizer(tuple(plain.iterdir()), copied, 20) == 0
    assert numbers(plain) == numbers(wrapped) == numbers(copied) == wanted


@pytest.mark.parametrize("types", [0, 1, 2])
def test_sentences_of_a_pair_are_told_apart_where_the_model_does_so(types: int, tmp_path: Path) -> None:
    trained = train_wordpiece(PlainText(("a good film", "not a bad one")), 60)
    write_tokenizer(trained.tokenizer, tmp_path, None, types)
    found = transformers.AutoTokenizer.from_pretrained(tmp_path)("a good film", "not a bad one")
    tokens, kinds = frame(trained.encode(("a good film", "not a bad one")), trained)
    wanted = {"input_ids": tokens, "attention_mask": [1] * len(tokens)}
    assert dict(found) == wanted | ({"token_type_ids": kinds} if types > 1 else {})


def test_the_padding_token_is_found_where_it_is_described(tmp_path: Path) -> None:
    write_tokenizer(word_tokenizer(), tmp_path, None)
    file = tmp_path / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    assert "model_max_length" not in config
    (tmp_path / "copy").mkdir()
    file.write_text(json.dumps(config | {"pad_token": {"content": "[MASK]"}}), encoding="utf-8")
    assert write_tokenizer([path for path in tmp_path.iterdir() if path.is_file()], tmp_path / "copy", None) == 4


def test_no_padding_token_and_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n", encoding="utf-8")
    (tmp_path / "copy").mkdir()
    assert write_tokenizer([tmp_path / "vocab.txt"], tmp_path / "copy", None) is None
    with pytest.raises(IllegalInput, match="a str is no tokenizer"):
        write_tokenizer("bert-base", tmp_path, None)
    with pytest.raises(IllegalInput, match=r"cannot copy the tokenizer's .*absent\.json"):
        write_tokenizer([tmp_path / "absent.json"], tmp_path, None)


def test_a_tokenizer_left_open_begins_texts_and_does_not_end_them(tmp_path: Path) -> None:
    write_tokenizer(train_wordpiece(PlainText(("some words of a text",)), 60).tokenizer, tmp_path, None)
    assert token_numbers(tmp_path) == {
        f"{role}_token": place for place, role in enumerate(("pad", "unk", "cls", "sep", "mask"))
    }
    closed = transformers.AutoTokenizer.from_pretrained(tmp_path)("some words")["input_ids"]
    leave_open(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("some words")["input_ids"] == closed[:-1]
    assert tokenizer("some", "words")["input_ids"] == [*closed[:2], closed[-1], *closed[2:-1]]
    before = (tmp_path / "tokenizer.json").read_bytes()
    leave_open(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() == before
