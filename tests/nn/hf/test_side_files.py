"""Tokenizers, image processors and model cards reach the folder, in whatever form they come."""

import json
from pathlib import Path

import numpy as np
import pytest
import transformers
from PIL import Image
from tests.nn.hf.helpers import DESIGNS
from tests.nn.hf.test_save import word_tokenizer
from transformers import AutoImageProcessor

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.core.errors import IllegalInput
from formwright.nn.build import build
from formwright.nn.hf.readme import Provenance, readme
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.side_files import PREPROCESSOR, leave_open, token_numbers, write_side_files, write_tokenizer
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


def folder_of(path: Path, channels: int) -> Path:
    card = Card(encoder=Stack(PatchEmbedding(8, 4, 16, channels=channels), (Block(16, Attention(2, 8), (32,)),)))
    return save_pretrained_folder(build(card, head=HeadSpec("sequence-classification", 2)), path / "model")


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("side", [8, 20])
def test_pictures_become_pixels(channels: int, side: int, tmp_path: Path) -> None:
    processor = AutoImageProcessor.from_pretrained(folder_of(tmp_path, channels), trust_remote_code=True)
    levels = np.arange(side * side, dtype=np.uint8).reshape(side, side)
    grey = Image.fromarray(levels)
    for picture in (grey, grey.convert("RGB")):  # pipelines hand over every picture in colour
        pixels = np.asarray(processor(picture, return_tensors="np")["pixel_values"])
        assert pixels.shape == (1, channels, 8, 8)
        assert 0 <= pixels.min() <= pixels.max() <= 1
        if side == 8:
            assert np.allclose(pixels[0, 0], levels / 255, atol=1e-6)


def test_a_description_that_came_with_the_model_stays(tmp_path: Path) -> None:
    (tmp_path / PREPROCESSOR).write_text('{"image_processor_type": "ViTImageProcessor", "size": 5}')
    card = Card(encoder=Stack(PatchEmbedding(8, 4, 16), (Block(16, Attention(2, 8), (32,)),)))
    write_side_files(tmp_path, card, None)
    assert json.loads((tmp_path / PREPROCESSOR).read_text())["size"] == 5


CARD = DESIGNS["bert"][0]


def test_facts_stand_in_tables_below_a_header() -> None:
    provenance = Provenance({"accuracy": 0.91234567}, {"parameters": 4_385_920}, {"parent": "bert-base"})
    text = readme(CARD, "sequence-classification", "AutoModelForSequenceClassification", provenance)
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    assert "pipeline_tag: text-classification" in head.splitlines()
    assert "- formwright" in head.splitlines()
    for line in ("| accuracy | 0.9123 |", "| parameters | 4,385,920 |", "| parent | bert-base |"):
        assert line in body.splitlines()
    assert CARD.digest in body
    assert "trust_remote_code=True" in body


def test_unknown_facts_have_no_heading_and_stock_needs_no_code() -> None:
    text = readme(CARD, None, "AutoModel", Provenance({}, {"parameters": 1}, {}))
    assert "## Costs" in text
    assert "## Scores" not in text
    assert "pipeline_tag" not in text
    text = readme(CARD, "masked-lm", "BertForMaskedLM", Provenance({}, {}, {}), stock=True)
    assert "trust_remote_code" not in text
    assert "import formwright" not in text


def test_hostile_names_stay_in_their_cell_and_images_have_a_pipeline() -> None:
    text = readme(CARD, None, "AutoModel", Provenance({"a|b\n---\n<script>": "x\r|y"}, {}, {}))
    (row,) = [line for line in text.splitlines() if "script" in line]
    assert row == "| a\\|b --- &lt;script> | x \\|y |"
    text = readme(
        DESIGNS["viewer"][0], "sequence-classification", "AutoModelForImageClassification", Provenance({}, {}, {})
    )
    assert "pipeline_tag: image-classification" in text
