"""A tokeniser of which every text comes back as it was, for models that write."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from formwright.tasks.rows import Rows
from formwright.tasks.spans import SpanRows
from formwright.tasks.tokeniser import (
    SPECIAL,
    UNKNOWN,
    Corpus,
    Trained,
    commonest_letters,
    corpus_of,
    framed,
    numbered,
)

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # stands for a space, as in SentencePiece


@dataclass(frozen=True)
class Subwords(Trained):
    """Cut text into byte-pair-encoded pieces of words, cased."""

    merges: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        """Give the SHA-256 of vocabulary and merges, in hexadecimal."""
        return hashlib.sha256(json.dumps([self.vocabulary, self.merges]).encode()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Give the same tokeniser as an object of the `tokenizers` library, for saving it with a model."""
        return framed(_plain(models.BPE(numbered(self.vocabulary), list(self.merges), unk_token=SPECIAL[UNKNOWN])))


def train_subwords(rows: Rows | SpanRows, size: int = 1_000) -> Subwords:
    """Train a tokeniser of at most `size` tokens on the texts of training rows, of all languages together.

    The same rows and size give the same tokeniser, in every process; it is kept in memory by the digest of the texts.
    """
    return _train(corpus_of(rows), size)


@lru_cache(maxsize=8)
def _train(corpus: Corpus, size: int) -> Subwords:
    tokenizer = _plain(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    letters = [_SPACE, *commonest_letters(tokenizer, corpus.texts, max(size - len(SPECIAL) - 1, 0))]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus.texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocabulary = model["vocab"]
    merges = tuple((first, second) for first, second in model["merges"])
    return Subwords(tuple(sorted(vocabulary, key=lambda token: vocabulary[token])), merges)


def _plain(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    spaces = pre_tokenizers.Metaspace(_SPACE, "always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spaces, pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.Metaspace(_SPACE, "always")
    return tokenizer
