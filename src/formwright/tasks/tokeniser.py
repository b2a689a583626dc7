"""Tokenisers, and those that are trained on a task's own text."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from formwright.core.errors import IllegalInput
from formwright.tasks.rows import RowsOfText

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = range(len(SPECIAL))
_INSIDE = "##"
_MOST = 1 << 20  # tokens; the trainer takes memory for all that are asked for, and dies where there is not enough


@dataclass(frozen=True)
class Special:
    """The ids of special tokens: a row starts with `begin`, and `separator` ends each of its sentences."""

    begin: int
    separator: int
    pad: int | None = None
    unknown: int | None = None
    mask: int | None = None


OURS = Special(CLASS, SEPARATOR, PAD, UNKNOWN, MASK)  # as `SPECIAL` orders them


@dataclass(frozen=True)
class Placed:
    """A text in tokens, and the character range (start, end) of each token."""

    ids: list[int]
    places: list[tuple[int, int]]


class Tokeniser(ABC):
    """Turn text into tokens and back, with the `tokenizers` library. Token ids are below `size`.

    `separators` stand between the two sentences of a pair. `types` counts the kinds of sentences that the model tells
    apart: 2 where the second sentence of a pair has a type of its own. `tokenizer` is the same tokeniser as an object
    of the library, for saving it with a model. Equal tokenisers have equal digests.
    """

    special: Special
    separators: int
    types: int

    @property
    @abstractmethod
    def size(self) -> int: ...
    @property
    @abstractmethod
    def digest(self) -> str: ...
    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer: ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn each text into token ids, without special tokens around them."""
        # the fast way keeps no track of characters
        return [found.ids for found in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def offsets(self, texts: Sequence[str]) -> list[Placed]:
        """Turn each text into token ids, without special tokens, and say where in the text each token stands."""
        found = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Placed(one.ids, one.offsets) for one in found]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn token ids into text, leaving special tokens out."""
        return str(self.tokenizer.decode([int(index) for index in ids], skip_special_tokens=True))


@dataclass(frozen=True)
class TrainedTokeniser(Tokeniser):
    """A tokeniser trained by this package; the first five tokens are `SPECIAL`."""

    vocabulary: tuple[str, ...]
    special = OURS
    separators = 1
    types = 2

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    @property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.vocabulary)}


@dataclass(frozen=True)
class WordPiece(TrainedTokeniser):
    """Cut text into pieces of words, in lower case."""

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.vocabulary).encode()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        tokenizer = _plain(models.WordPiece(self._ids, unk_token=SPECIAL[UNKNOWN]))
        tokenizer.decoder = decoders.WordPiece(prefix=_INSIDE)
        return _framed(tokenizer)


def _framed(tokenizer: Tokenizer) -> Tokenizer:
    """Make a tokenizer of the library add the same special tokens as `frame`."""
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.BertProcessing(*((SPECIAL[place], place) for place in (SEPARATOR, CLASS)))
    return tokenizer


def train_wordpiece(rows: RowsOfText, size: int = 1_000) -> WordPiece:
    """Train a tokeniser of at most `size` tokens on the texts of training rows; little text gives fewer.

    If not even all letters fit, the commonest are kept; the special tokens are always there. The same rows and size
    give the same tokeniser in every process; it is cached by the digest of the texts.
    """
    return _train(TrainingText.of(rows), size)


@dataclass(frozen=True)
class TrainingText:
    """All texts of some rows; they count as equal when their digests are."""

    digest: str
    texts: tuple[str, ...] = field(compare=False, repr=False)

    @classmethod
    def of(cls, rows: RowsOfText) -> "TrainingText":
        if not hasattr(rows, "all_texts"):
            raise IllegalInput(f"{type(rows).__name__} have no text to train a tokeniser on")
        texts = rows.all_texts
        return cls(hashlib.sha256(json.dumps(texts).encode()).hexdigest(), texts)


@lru_cache(maxsize=32)
def _train(corpus: TrainingText, size: int) -> WordPiece:
    tokenizer = _plain(models.WordPiece(unk_token=SPECIAL[UNKNOWN]))
    size = min(size, _MOST)
    # a letter takes two tokens: one where it begins a word, and one inside
    letters = _commonest_letters(tokenizer, corpus.texts, max(size - len(SPECIAL), 0) // 2)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        # The trainer numbers inner letters in the order of a randomly seeded hash table, and breaks ties between
        # merges by these numbers. Naming the letters beforehand fixes both.
        special_tokens=[*SPECIAL, *(_INSIDE + letter for letter in letters)],
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


def _commonest_letters(tokenizer: Tokenizer, texts: Iterable[str], most: int) -> list[str]:
    """List the commonest letters of texts, as a tokenizer normalises them, in the order of their codes."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(tokenizer.normalizer.normalize_str(text))
    letters = sorted(letter for letter in counts if not letter.isspace())
    return sorted(sorted(letters, key=lambda letter: -counts[letter])[:most])


_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # stands for a space, as in SentencePiece


@dataclass(frozen=True)
class Subwords(TrainedTokeniser):
    """Cut text into byte-pair-encoded pieces of words, cased."""

    merges: tuple[tuple[str, str], ...]

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.vocabulary, self.merges]).encode()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return _framed(_plain_bpe(models.BPE(self._ids, list(self.merges), unk_token=SPECIAL[UNKNOWN])))


def train_subwords(rows: RowsOfText, size: int = 1_000) -> Subwords:
    """Train a tokeniser of at most `size` tokens on the texts of training rows, of all languages together.

    The same rows and size give the same tokeniser, in every process; it is kept in memory by the digest of the texts.
    """
    return _train_bpe(TrainingText.of(rows), size)


@lru_cache(maxsize=8)
def _train_bpe(corpus: TrainingText, size: int) -> Subwords:
    tokenizer = _plain_bpe(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    letters = [_SPACE, *_commonest_letters(tokenizer, corpus.texts, max(size - len(SPECIAL) - 1, 0))]
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


def _plain_bpe(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    spaces = pre_tokenizers.Metaspace(_SPACE, "always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spaces, pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.Metaspace(_SPACE, "always")
    return tokenizer
