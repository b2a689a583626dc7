"""Whole compressions of other families than BERT, and of pairs of texts."""

from pathlib import Path

import pytest
from tests.cli.compressing import line
from tests.cli.conftest import Run
from tests.cli.test_compress import check
from tests.pipeline.compressions import CHANNELS, HEADS, LAYERS, VOCABULARY, WIDTH, tokeniser
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from formwright.core.rng import derive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.usefixtures("one_process")]


FAMILIES = ("roberta", "distilbert", "electra")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def family(name: str, folder: Path) -> Path:
    """Write a model with random weights and the tokeniser that its family has."""
    import transformers

    sizes = {"vocab_size": VOCABULARY, "max_position_embeddings": 34}
    usual = {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": CHANNELS,
    }
    made = {
        "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**sizes, **usual)),
        "distilbert": lambda: transformers.DistilBertModel(
            transformers.DistilBertConfig(**sizes, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=CHANNELS)
        ),
        "electra": lambda: transformers.ElectraModel(transformers.ElectraConfig(**sizes, **usual, embedding_size=8)),
    }
    transformers.set_seed(0)
    made[name]().save_pretrained(folder / name)
    words = _robertas() if name == "roberta" else tokeniser().tokenizer
    words.save(str(folder / name / "tokenizer.json"))
    return folder / name


def _robertas() -> Tokenizer:
    """Number special tokens as RoBERTa does, whose places are counted from behind the number of the padding."""
    known = ["<s>", "<pad>", "</s>", "<unk>", *_LETTERS]
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(known)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return words


def pairs(folder: Path) -> tuple[object, ...]:
    """Write pairs of letters that are alike or not, and give the options that name them."""
    rng, lines = derive(0, "pairs"), ["first,second,alike"]
    for _ in range(100):
        first, second = ("abcdef"[index] for index in rng.integers(6, size=2))
        lines.append(f"{first} a {first},{second} b,{'yes' if first == second else 'no'}")
    path = folder / "pairs.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ("--task", path, "--text", "first,second", "--label", "alike")


@pytest.mark.parametrize("name", FAMILIES)
def test_other_families_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    check(run(*line(tmp_path, "--json", model=family(name, tmp_path))).data, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bert", "roberta"])  # which tell two texts apart by types, or by separators alone
def test_pairs_of_texts_are_compressed(name: str, run: Run, tmp_path: Path) -> None:
    model = None if name == "bert" else family(name, tmp_path)
    facts = run(*line(tmp_path, "--json", model=model, task=pairs(tmp_path))).data
    check(facts, tmp_path)
