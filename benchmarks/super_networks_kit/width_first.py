"""Whether widths should be trained before depths: DynaBERT's two stages against one, on Fashion-MNIST.

Settings, fixed before the first result:

- Fashion-MNIST (20,000 training rows, official test rows) and seeds 0, 1 and 2. The teacher is the largest design of
  `autoformer-nano-28`, trained alone for 1,500 steps. Its heads and channels are put in first-order order. Versions
  have 25, 50, 75 and 100 % of the width and 50, 75 and 100 % of the layers: twelve, as in the paper.
- `widths, then depths`: 400 steps of the four widths, then 400 of all twelve versions, taught by what the first stage
  left, as the recipe `dynabert` has it. `together`: 880 steps of all twelve, taught by the teacher, which are as many
  multiply-accumulates. `without order`: the two stages, and heads and channels as the training left them. Control that
  learns nothing: `cut only`, the teacher's versions as they are cut.
- Scores: test accuracy, for each version and as the mean of the eleven that are smaller than the teacher. Intervals of
  95 % resample seeds and versions, paired.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from formwright.api import run
from formwright.core.options import Stage
from formwright.core.rng import derive
from formwright.cost import macs
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline.draw_multiples import DrawMultiples
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import ScoreParts
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.multiples import multiples
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.rules import Largest, Sandwich
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.judge import judge
from super_networks_kit.units import RESAMPLES, Row, Units, interval, shown, table

SPACE, ROWS, ALONE, STEPS, TOGETHER = "autoformer-nano-28", 20_000, 1_500, 400, 880
ARMS = ("widths, then depths", "together", "without order", "cut only")
_USUAL = TrainingChoice(batch=64, learning_rate=1e-3, warmup=0.1, decay="cosine", device="cpu")


def pipeline(arm: str, task: TaskChoice, seed: int) -> Pipeline:
    """Compose an arm; its last stage is the super-network that is judged."""
    teacher = TrainShared(SPACE, task, Largest(), steps=ALONE, training=_USUAL, seed=seed)
    ordered = arm in ("widths, then depths", "together")
    scores = ScoreParts(teacher, "first-order") if ordered or arm == "cut only" else None
    wide, both = DrawMultiples(teacher, depths=(1.0,)), DrawMultiples(teacher)
    first = TrainShared(
        wide, task, Sandwich(2), HiddenStates(hidden=0.1), STEPS, None, 5e-4, _USUAL, teacher, scores, seed
    )
    last = replace(first, space=both, lesson=HiddenStates(), depth="even")
    stages: tuple[Stage, ...] = (teacher,) if scores is None else (teacher, scores)
    if arm == "together":
        return Pipeline(*stages, both, replace(last, steps=TOGETHER))
    if arm == "cut only":  # one step too small to change anything
        return Pipeline(*stages, both, replace(last, steps=1, learning_rate=1e-12))
    return Pipeline(*stages, wide, first, both, replace(last, teacher=first, order=None))


def judged(arm: str, task: TaskChoice, seed: int, out: Path) -> Row:
    """Train an arm, and judge its twelve versions on test rows."""
    done = run(pipeline(arm, task, seed), out).run
    network: SharedWeights = done.artifact(done.pipeline.stages[-1])
    space, prepared = multiples(network.card), network.prepared
    rows = prepared.part(open_test(prepared.task))
    designs = [space.to_json(design) for design in space.enumerate()]
    cards = [space.card(space.from_json(design)) for design in designs]
    with threads(1):
        accuracies = [judge(network.extracted(card), prepared, rows)["accuracy"] for card in cards]
    return {"designs": designs, "macs": [macs(card, 1) for card in cards], "accuracies": accuracies}


def work(units: Units, data: Path, seeds: int) -> None:
    task = TaskChoice("fashion-mnist", data=str(data), rows=ROWS)
    for seed in range(seeds):
        for arm in ARMS:
            out = units.folder / "runs" / f"{arm.replace(', ', '-').replace(' ', '-')}-{seed}"
            units.kept(f"{arm}-{seed}", lambda arm=arm, seed=seed, out=out: judged(arm, task, seed, out))  # type: ignore[misc]


def figures(units: Units, seeds: int) -> Row:
    done = [seed for seed in range(seeds) if all(f"{arm}-{seed}" in units.rows for arm in ARMS)]
    rows = {arm: np.array([units.rows[f"{arm}-{seed}"]["accuracies"] for seed in done]) for arm in ARMS}
    designs = units.rows[f"{ARMS[0]}-{done[0]}"]["designs"]
    smaller = [place for place, one in enumerate(designs) if (one["width"], one["depth"]) != (1.0, 1.0)]
    rng = derive(0, "bootstrap")
    draws = [(rng.integers(len(done), size=len(done)), rng.choice(smaller, len(smaller))) for _ in range(RESAMPLES)]
    whole = {arm: float(rows[arm][:, smaller].mean()) for arm in ARMS}
    samples = {arm: np.array([rows[arm][np.ix_(some, few)].mean() for some, few in draws]) for arm in ARMS}
    best = ARMS[0]
    return {
        "seeds": done,
        "designs": designs,
        "accuracies": {arm: rows[arm].mean(axis=0).tolist() for arm in ARMS},
        "mean": {arm: interval(whole[arm], samples[arm]) for arm in ARMS},
        "gain of the two stages": {
            arm: interval(whole[best] - whole[arm], samples[best] - samples[arm]) for arm in ARMS[1:]
        },
    }


def page(found: Row) -> str:
    gains = found["gain of the two stages"]
    means = [(arm, shown(one, 3), shown(gains[arm], 3) if arm in gains else "") for arm, one in found["mean"].items()]
    each = [
        (f"{one['width']:g}", f"{one['depth']:g}", *(f"{found['accuracies'][arm][place]:.3f}" for arm in ARMS))
        for place, one in enumerate(found["designs"])
    ]
    return "\n\n".join(
        (
            table(("arm", "mean of 11 versions", "what the first arm gains"), means),
            table(("width", "depth", *ARMS), each),
            f"{len(found['seeds'])} seeds.",
        )
    )
