"""Whether it pays to train the largest design first: LightHuBERT's two stages against one, on spoken digits.

Settings, fixed before the first result:

- The Free Spoken Digit Dataset (official test recordings), the space `lighthubert-nano`, seeds 0, 1 and 2.
- Two stages: in the first 500 of 1,500 steps the largest design learns from labels, in the others one random design a
  step learns from labels, answers and layers of the largest (lesson `two-stage`). Two schedules: the same as two
  trainings, each with a warm-up and a decay of its own, so that the teacher is trained to its end, as the recipe
  `lighthubert` has it. One stage: 1,500 steps of one random design each, from labels. The steps are equal; those of the
  largest design cost more.
- Scores: test accuracy of the smallest design, of the largest, and the median over 20 random ones. Intervals of 95 %
  are those of Student's t over the seeds, paired.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from formwright.api import run
from formwright.core.rng import derive
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.lessons import Labels, TwoStage
from formwright.supernet.rules import Largest, Phases, Uniform
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.judge import judge
from super_networks_kit.units import Row, Units, over_seeds, shown, table

SPACE, DESIGNS = "lighthubert-nano", 20
ARMS = ("two stages", "two schedules", "one stage")


def pipeline(arm: str, task: TaskChoice, steps: int, seed: int) -> Pipeline:
    if arm == "one stage":
        return Pipeline(TrainShared(SPACE, task, Uniform(), steps=steps, seed=seed))
    taught = HiddenStates(labels=0.5, scores=0.5)
    if arm == "two schedules":
        first = TrainShared(SPACE, task, Largest(), steps=steps // 3, seed=seed)
        return Pipeline(
            first, TrainShared(SPACE, task, Uniform(), taught, steps - steps // 3, teacher=first, seed=seed)
        )
    rule, lesson = Phases((Largest(), Uniform()), (1.0, 2.0)), TwoStage(first=Labels(), then=taught, share=1 / 3)
    return Pipeline(TrainShared(SPACE, task, rule, lesson, steps, seed=seed))


def trained(arm: str, task: TaskChoice, steps: int, seed: int, out: Path) -> Row:
    result = run(pipeline(arm, task, steps, seed), out)
    network: SharedWeights = result.run.artifact(result.run.pipeline.stages[-1])
    space, prepared = load_space(SPACE), network.prepared
    hull, rows = find_hull(space), prepared.part(open_test(prepared.task))
    rng = derive(0, "judged designs")
    cards = [hull.smallest, hull.largest, *(space.card(space.sample(rng, "gene")) for _ in range(DESIGNS))]
    with threads(1):
        smallest, largest, *others = [judge(network.extracted(card), prepared, rows)["accuracy"] for card in cards]
    return {"smallest": smallest, "largest": largest, "random": others}


def work(units: Units, data: Path, seeds: int, steps: int) -> None:
    task = TaskChoice("fsdd", data=str(data))
    for seed in range(seeds):
        for arm in ARMS:
            out = units.folder / "runs" / f"{arm.replace(' ', '-')}-{seed}"
            units.kept(f"{arm}-{seed}", lambda arm=arm, seed=seed, out=out: trained(arm, task, steps, seed, out))  # type: ignore[misc]


def figures(units: Units, seeds: int) -> Row:
    done = [seed for seed in range(seeds) if all(f"{arm}-{seed}" in units.rows for arm in ARMS)]
    rows = [[units.rows[f"{arm}-{seed}"] for seed in done] for arm in ARMS]
    read: dict[str, Callable[[Row], float]] = {
        "smallest": lambda row: row["smallest"],
        "median of 20": lambda row: float(np.median(row["random"])),
        "largest": lambda row: row["largest"],
    }
    scores = {}
    for name, score in read.items():
        each = np.array([[score(row) for row in own] for own in rows])  # (arm, seed)
        gains = {f"{arm} - one stage": over_seeds(each[place] - each[-1]) for place, arm in enumerate(ARMS[:-1])}
        scores[name] = {**{arm: over_seeds(own) for arm, own in zip(ARMS, each, strict=True)}, **gains}
    return {"seeds": done, "scores": scores}


def page(found: Row) -> str:
    names = list(next(iter(found["scores"].values())))
    rows = [(name, *(shown(one[key], 3) for key in names)) for name, one in found["scores"].items()]
    return f"{table(('design', *names), rows)}\n\n{len(found['seeds'])} seeds."
