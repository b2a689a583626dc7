"""Language modelling on the prose of Python's own reference, which every Python carries.

The text differs between versions of Python, and with it the scores: compare only what one version has measured.
"""

import hashlib
import re
from functools import cache
from pydoc_data.topics import topics

from formwright.tasks.rows import PlainText, Splits
from formwright.tasks.task import Task

_FEWEST_WORDS = 6


def _place(topic: str) -> float:
    """Return each topic a fixed place from 0 to 1, which does not depend on the other topics of a Python version."""
    return int.from_bytes(hashlib.sha256(topic.encode()).digest()[:8], "big") / 2**64


def _paragraphs(text: str) -> list[str]:
    found = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text))
    # headings, rules and lone labels are no prose
    return [paragraph for paragraph in found if len(paragraph.split()) >= _FEWEST_WORDS]


@cache
def pydoc_splits() -> Splits[PlainText]:
    """Deal whole topics to the splits, about 80, 10 and 10 percent; a repeated paragraph stays where it was first."""
    dealt: tuple[list[str], list[str], list[str]] = ([], [], [])
    seen: set[str] = set()
    for topic in sorted(topics, key=_place):
        split = sum(_place(topic) >= end for end in (0.8, 0.9))
        fresh = [paragraph for paragraph in _paragraphs(topics[topic]) if paragraph not in seen]
        dealt[split].extend(dict.fromkeys(fresh))
        seen.update(fresh)
    return Splits(*(PlainText(tuple(paragraphs)) for paragraphs in dealt))


MASKED = Task(
    "pydoc/masked", "masked-lm", "perplexity", pydoc_splits, about="fill in masked tokens of Python's reference"
)
CAUSAL = Task(
    "pydoc/causal", "causal-lm", "perplexity", pydoc_splits, about="predict the next token of Python's reference"
)
