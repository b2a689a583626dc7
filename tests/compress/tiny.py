"""A pretrained BERT of two layers in a folder, and tasks of a hundred rows: what a compression begins with."""

import json
from pathlib import Path
from typing import Any

from tests.cli.training import table
from tokenizers import Tokenizer, processors

from formwright.arch.card import Card
from formwright.arch.layers import Block, PatchEmbedding, Stack, TokenEmbedding
from formwright.arch.ops import Attention
from formwright.compress.job import Job
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock
from formwright.nn.seal import SUMS
from formwright.study.config import TaskChoice, TrainingChoice
from formwright.tasks.rows import PlainText
from formwright.tasks.tokeniser import Tokeniser, train_wordpiece

LENGTH, HEADS, CHANNELS, LAYERS, WIDTH = 16, 4, 64, 2, 16
VOCABULARY = 80
_BLOCK = Block(WIDTH, Attention(HEADS, 4), (CHANNELS,))
BERT = Card(encoder=Stack(TokenEmbedding(VOCABULARY, WIDTH, length=32, types=2), (_BLOCK,) * LAYERS), pooler=True)
VIT = Card(encoder=Stack(PatchEmbedding(8, 4, WIDTH, channels=1), (_BLOCK,) * LAYERS, final_norm=True))
_TEXT = PlainText(("a b c d e f g h 0 1 2 3 4 5 6 7 8 9", "what colour has the house", "my car is today and red"))


def tokeniser(size: int = VOCABULARY) -> Tokeniser:
    return train_wordpiece(_TEXT, size)


def _as_berts(found: Tokeniser) -> Tokenizer:
    """Let the library put special tokens around sentences, as the tokenisers of pretrained models do."""
    tokenizer = Tokenizer.from_str(found.tokenizer.to_str())
    special = found.special
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", special.separator), ("[CLS]", special.begin))
    return tokenizer


def bert(folder: Path, name: str = "bert", spec: HeadSpec | None = None, **more: Any) -> Path:
    """Write a BERT with random weights, as transformers itself would write it."""
    model = build(BERT, head=spec, seed=3)
    made = export_stock(model, folder / name, **{"tokenizer": _as_berts(tokeniser()), **more})
    (made / SUMS).unlink()  # models of others have none
    return made


def vit(folder: Path) -> Path:
    """Write a vision model, as this package writes it."""
    return save_pretrained_folder(build(VIT, seed=3), folder / "vit")


def squad(folder: Path, questions: int = 60) -> Path:
    """Write a folder with questions in SQuAD's layout: which colour has the house?"""
    colours = ("red", "blue", "green", "white")
    for name, shift in (("train-v1.1.json", 0), ("dev-v1.1.json", 1)):
        articles = []
        for number in range(questions if shift == 0 else questions // 2):
            house, car = colours[(number + shift) % 4], colours[(number // 4) % 4]
            context = f"my house is {house} and my car is {car} today"
            answer = {"text": house, "answer_start": len("my house is ")}
            entry = {"id": f"{shift}-{number}", "question": "which colour has the house", "answers": [answer]}
            articles.append({"title": str(number), "paragraphs": [{"context": context, "qas": [entry]}]})
        (folder / name).write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return folder


def job(folder: Path, *, scored: bool = False, model: Path | None = None, **changes: Any) -> Job:
    """Give a job that takes a second or two: `folder` gets the model and the rows."""
    values: dict[str, Any] = {
        "model": str(model or bert(folder)),
        "task": TaskChoice(str(table(folder, scored=scored)), text=("words",), label="b"),
        "targets": ("macs=75%", "macs=50%"),
        "configurations": 3,
        "hours": None,
        "teacher_epochs": 1.0,
        "epochs": 1.0,
        "evaluations": 5,
        "finetune": 0.0,
        "training": TrainingChoice(batch=16, length=LENGTH, learning_rate=1e-3, dropout=0.1),
        "network_rate": 1e-3,
        "between": 1,
        "labels": 0.1,
        "temperature": 2.0,
        "order": "first-order",
        "whole": True,
        "hidden": (),
        "searcher": "linas",
        "options": {},
        "threads": 1,
        "device": "cpu",
        "seed": 0,
    }
    return Job(**{**values, **changes})
