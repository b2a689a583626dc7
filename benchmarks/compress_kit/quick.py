"""A setting that takes seconds: a BERT of two narrow layers with random weights, and a builtin task of few rows."""

from __future__ import annotations

from pathlib import Path

from compress_kit.bench import Setting
from formwright.arch.card import Card
from formwright.arch.embeddings import TokenEmbedding
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.nn.build import build
from formwright.nn.hf.stock import export_stock
from formwright.tasks import load_task
from formwright.tasks.tokeniser import train_wordpiece

TASK, WORDS, LENGTH = "mini-glue/sst2", 200, 16


def quick(folder: Path) -> Setting:
    """Write the model, unless it is there, and give the setting."""
    model = folder / "model"
    if not model.is_dir():
        block = Block(32, Attention(8, 4), (256,))
        card = Card(encoder=Stack(TokenEmbedding(WORDS, 32, length=32, types=2), (block,) * 4), pooler=True)
        tokeniser = train_wordpiece(load_task(TASK).search_view().train, WORDS)
        export_stock(build(card, seed=0), model, tokenizer=tokeniser.tokenizer)
    rates = (3e-3, 3e-3)  # so that a hundred steps teach it something
    return Setting(TASK, None, 1024, LENGTH, 0, epochs=1, model=str(model), evaluations=8, many=20, rates=rates)
