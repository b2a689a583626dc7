"""Dropout and early stopping in the last training of small designs on few rows, judged on test rows.

    python benchmarks/dropout.py --data GLUE_FOLDER [--tasks glue/sst2 mini-glue/sst2] [--seeds 0 1 2] [--json FILE]

Arms: the last step of a training without dropout, and the best judged step with a dropout of 0, 0.1 and 0.3. Every seed
is another random design of flexibert-nano. Tasks, arms and seeds were fixed before the first run.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import mean, stdev

from formwright.core.records import Request
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final
from formwright.evaluate.training import Trainer
from formwright.nn.settings import Settings
from formwright.space.zoo import load_space
from formwright.tasks import load_task
from formwright.tasks.task import shortened
from formwright.train.fit import Training
from formwright.train.hyperparameters import Hyperparameters

TASKS = {"glue/sst2": 1000, "glue/rte": 1000, "glue/cola": 1000, "mini-glue/sst2": 1000}  # and how many training rows
STEPS, BATCH = 450, 32  # about 14 epochs
ARMS = {"last step, dropout 0": None, "best step, dropout 0": 0.0, "best step, 0.1": 0.1, "best step, 0.3": 0.3}


def run(name: str, data: Path, seed: int, dropout: float | None) -> dict[str, float]:
    """Train one design on one task, and score it on test."""
    task = shortened(load_task(name, data if name.startswith("glue/") else None), TASKS[name])
    space, view = load_space("flexibert-nano"), task.search_view()
    training = Training(Hyperparameters(STEPS, BATCH, 2e-3, warmup=0.3), settings=Settings(dropout=dropout or 0.0))
    if dropout is not None:
        training = training.stopping_early(len(view.validation))
    with tempfile.TemporaryDirectory() as folder:
        found = Final(Trainer(task, training)).verdict(
            Request(space.card(space.sample(derive(seed)))), Context(seed, Path(folder))
        )
    assert found.test is not None
    return {
        "test": found.test[task.metric],
        "validation": found.validation[task.metric],
        "steps": found.spent.steps,
        "best": found.best_step,
    }


def main() -> None:
    """Run all arms, and print the table of docs/training.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {arm: [] for arm in ARMS} for name in options.tasks}
    for seed in options.seeds:
        for name in options.tasks:
            for arm, dropout in ARMS.items():
                found[name][arm].append(run(name, options.data, seed, dropout))
                print(seed, name, arm, found[name][arm][-1], flush=True)
                if options.json is not None:
                    options.json.write_text(json.dumps(found, indent=1))
    for name, arms in found.items():
        for arm, runs in arms.items():
            scores = [one["test"] for one in runs]
            spread = stdev(scores) if len(scores) > 1 else 0.0
            print(f"| {name} | {arm} | {mean(scores):.3f} ± {spread:.3f} | {mean(one['steps'] for one in runs):.0f} |")


if __name__ == "__main__":
    main()
