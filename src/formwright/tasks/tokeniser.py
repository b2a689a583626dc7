"""WordPiece tokenisers, trained on a task's own text."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import PlainText, Rows, TextRows, TranslationRows

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = range(len(SPECIAL))
_INSIDE = "##"


@dataclass(frozen=True)
class WordPiece:
    """Cut text into pieces of words, in lower case; the first five tokens are `SPECIAL`."""

    vocabulary: tuple[str, ...]

    @property
    def size(self) -> int:
        """Count the tokens."""
        return len(self.vocabulary)

    @cached_property
    def digest(self) -> str:
        """Give the SHA-256 of the vocabulary, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.vocabulary).encode()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Give the same tokeniser as an object of the `tokenizers` library, for saving it with a model."""
        vocabulary = {token: index for index, token in enumerate(self.vocabulary)}
        tokenizer = _plain(models.WordPiece(vocabulary, unk_token=SPECIAL[UNKNOWN]))
        tokenizer.add_special_tokens(list(SPECIAL))
        tokenizer.decoder = decoders.WordPiece(prefix=_INSIDE)
        return tokenizer

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn each text into token ids, without special tokens around them."""
        return [found.ids for found in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn token ids into text, leaving special tokens out."""
        return str(self.tokenizer.decode([int(index) for index in ids], skip_special_tokens=True))


@dataclass(frozen=True)
class _Corpus:
    """Texts that count as equal when their digests are."""

    digest: str
    texts: tuple[str, ...] = field(compare=False, repr=False)


def texts_of(rows: Rows) -> tuple[str, ...]:
    """List all texts of some rows, for training a tokeniser."""
    match rows:
        case TextRows():
            return tuple(text for row in rows.texts for text in row)
        case PlainText():
            return rows.texts
        case TranslationRows():
            return (*rows.sources, *rows.targets)
        case _:
            raise IllegalInput("images have no text to train a tokeniser on")


def train_wordpiece(rows: Rows, size: int = 1_000) -> WordPiece:
    """Train a tokeniser of at most `size` tokens on the texts of training rows.

    The same rows and size give the same tokeniser, in every process; it is kept in memory by the digest of the texts.
    """
    texts = texts_of(rows)
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    return _train(_Corpus(digest, texts), size)


@lru_cache(maxsize=32)
def _train(corpus: _Corpus, size: int) -> WordPiece:
    tokenizer = _plain(models.WordPiece(unk_token=SPECIAL[UNKNOWN]))
    inside = [_INSIDE + letter for letter in _letters(tokenizer, corpus.texts)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(size, len(SPECIAL) + 2 * len(inside)),
        # The trainer numbers inner letters in the order of a randomly seeded hash table, and breaks ties between
        # merges by these numbers. Naming the letters beforehand fixes both.
        special_tokens=[*SPECIAL, *inside],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus.texts, trainer)
    vocabulary = tokenizer.get_vocab()
    return WordPiece(tuple(sorted(vocabulary, key=lambda token: vocabulary[token])))


def _plain(model: models.WordPiece) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _letters(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    letters = {letter for text in texts for letter in tokenizer.normalizer.normalize_str(text)}
    return sorted(letter for letter in letters if not letter.isspace())
