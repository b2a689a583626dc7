"""Small designs and files for `formwright train`: the published ones have 30,000 words, and take seconds a step."""

import json
from pathlib import Path

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention, CrossAttention
from formwright.core.rng import derive

_BLOCK = Block(16, Attention(2, 8), (32,))
_ABOVE = Block(16, Attention(2, 8), (32,), cross=CrossAttention(2, 8))
_TABLE = TokenEmbedding(512, 16, length=32, types=2)
ENCODER = Card(encoder=Stack(_TABLE, (_BLOCK,)))
DEEPER = Card(encoder=Stack(_TABLE, (_BLOCK, _BLOCK)))
DECODER = Card(decoder=Stack(_TABLE, (_BLOCK,), causal=True))
BOTH = Card(Stack(_TABLE, (_BLOCK,)), Stack(_TABLE, (_ABOVE,), causal=True), share_embedding=True)
VISION = Card(encoder=Stack(PatchEmbedding(8, 4, 16, channels=1), (_BLOCK,)))
QUICK = ("--batch", 8, "--length", 16)
TRAINING_ROWS = 80  # of a file of 100


def card_file(folder: Path, card: Card = ENCODER, name: str = "small.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(card.to_json()), encoding="utf-8")
    return path


def table(folder: Path, name: str = "mine.csv", *, scored: bool = False) -> Path:
    """Write 100 different sentences of letters, with the column `b` that says whether, or how often, b is there."""
    rng = derive(0, "sentences")
    lines = ["words,b"]
    for number in range(100):
        letters = [*(f"{number:02d}"), *("abcdef"[index] for index in rng.integers(6, size=6))]
        count = letters.count("b")
        lines.append(f"{' '.join(letters)},{count / 2 + 0.25 if scored else ('yes' if count else 'no')}")
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def on_table(path: Path) -> tuple[object, ...]:
    return ("--task", path, "--text", "words", "--label", "b", *QUICK)
