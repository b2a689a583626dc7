"""A pretrained BERT of two layers in a folder, and tasks of a hundred rows: what a compression begins with."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.training import table
from tokenizers import Tokenizer, processors

from formwright.arch.card import Card
from formwright.arch.embeddings import PatchEmbedding, TokenEmbedding
from formwright.arch.heads import HeadSpec
from formwright.arch.layers import Block, Stack
from formwright.arch.ops import Attention
from formwright.nn.build import build
from formwright.nn.hf.model_folder import SUMS
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.hf.stock import export_stock
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Display, PipelineRun, Quiet, RunOptions
from formwright.pipeline.run_folder import DONE, mark_done
from formwright.pipeline.runner import prepare
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.recipes.eftnas import eftnas
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


QUICK = TrainingChoice(batch=16, length=LENGTH, learning_rate=1e-3, dropout=0.1, device="cpu", threads=1)
EPOCHS = {"teacher.epochs": 1.0, "super_network.epochs": 1.0, "super_network.learning_rate": 1e-3}
STEPS = 5  # of an epoch: 80 rows in batches of 16


def compression(
    folder: Path, *, scored: bool = False, task: TaskChoice | None = None, model: Path | None = None, **options: Any
) -> Pipeline:
    """Give a compression that takes a second or two: `folder` gets the model and the rows.

    Options with a dot or a double underscore are those of stages, the others those of the recipe.
    """
    stages = {"space.configurations": 3, "teacher.accept_weak": True, **EPOCHS}
    stages |= {name.replace("__", "."): options.pop(name) for name in list(options) if "__" in name}
    task = task or TaskChoice(str(table(folder, scored=scored)), text=("words",), label="b")
    said = {"targets": ("macs=75%", "macs=50%"), "trials": 5, "training": QUICK, **options}
    known = model or (folder / "bert" if (folder / "bert").is_dir() else bert(folder))
    made = eftnas(task, model=str(known), **said)
    return made.with_options([(name.split("."), value) for name, value in stages.items()])


def begun(pipeline: Pipeline, out: Path, display: Display | None = None, **options: Any) -> PipelineRun:
    """Settle and check a compression."""
    run = PipelineRun(pipeline, out, RunOptions(workers=1, **options), display or Quiet())
    prepare(run)
    return run


def made(run: PipelineRun, last: str) -> Any:
    """Make the stages up to one that is named; give its artifact."""
    for name, stage in run.pipeline.named.items():
        here = run.stage(stage)
        if not (here.folder / DONE).is_file():
            stage.make(here)
            mark_done(here, "")
        if name == last:
            return run.artifact(stage)
    raise AssertionError(f"there is no stage {last}")


class Told(Quiet):
    """Note what is told and how far work is; after so many steps, ask the `run` to stop."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.lines: list[str] = []
        self.steps: dict[str, list[int]] = {}
        self.run: PipelineRun | None = None
        self._stop_after = stop_after

    def tell(self, line: str) -> None:
        self.lines.append(line)

    def steps_of(self, what: str) -> list[int]:
        return [step for name, steps in self.steps.items() if name.rpartition(" ")[0] == what for step in steps]

    @property
    def all_steps(self) -> list[int]:
        return [step for steps in self.steps.values() for step in steps]

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Any]:
        noted = self.steps.setdefault(f"{what} {total}", [])

        def note(step: int, _: float | None) -> None:
            noted.append(step)
            if len(self.all_steps) == self._stop_after:
                assert self.run is not None
                self.run.interruption.asked = True

        yield note
