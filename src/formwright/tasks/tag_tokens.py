"""Words with tags as tokens: a word's tag belongs to its first token."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from formwright.core.errors import IllegalInput
from formwright.tasks.encode import IGNORED, Encoded, Ragged, frame, row_sizes
from formwright.tasks.rows import TaggedRows
from formwright.tasks.tokeniser import Placed, Tokeniser


@dataclass(frozen=True, eq=False, kw_only=True)
class TaggedTokens(Encoded):
    """Sentences as tokens; `tags` has the tag of the word that each token begins, and `words` the number of that word.

    For other tokens they are -100 and -1. A word that has no token, or whose first one is cut off, is not among them.
    """

    tags: Ragged
    words: Ragged


def encode_tagged(rows: TaggedRows, tokeniser: Tokeniser, length: int) -> TaggedTokens:
    """Encode sentences in at most `length` tokens each, special ones included.

    They are encoded as texts with spaces between words, as the pipelines of transformers do.
    """
    if length < 8:
        raise IllegalInput(f"rows need at least 8 tokens for words and special tokens, not {length}")
    placed = tokeniser.offsets(rows.texts)
    framed = [frame([one.ids[: length - 2]], tokeniser) for one in placed]
    words, tags = [], []
    for sentence, given, one, (tokens, _) in zip(rows.words, rows.tags, placed, framed, strict=True):
        starts = _first_tokens(sentence, one)[: len(tokens) - 2]
        words.append([-1, *starts, -1])
        tags.append([IGNORED if word < 0 else given[word] for word in words[-1]])
    return TaggedTokens(
        Ragged.of([tokens for tokens, _ in framed]),
        Ragged.of([types for _, types in framed]),
        pad=tokeniser.special.pad or 0,
        uncut=row_sizes([[one.ids] for one in placed], tokeniser),
        tags=Ragged.of(tags),
        words=Ragged.of(words),
    )


def _first_tokens(words: Sequence[str], placed: Placed) -> list[int]:
    """Return for each token of a sentence the number of the word that it begins, -1 if it begins none."""
    starts = list(accumulate((len(word) + 1 for word in words), initial=0))[:-1]
    found, last = [], -1
    for begin, end in placed.places:
        # by its last letter: in some tokenisers a token begins with the space before its word
        word = bisect_right(starts, end - 1) - 1 if end > begin else last
        found.append(word if word > last else -1)
        last = max(last, word)
    return found
