"""Pretrained encoders of other families than BERT, each two layers deep, as transformers itself writes them."""

from pathlib import Path

from tests.compress.tiny import CHANNELS, HEADS, LAYERS, VOCABULARY, WIDTH, tokeniser
from tokenizers import Tokenizer, models, pre_tokenizers, processors

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
