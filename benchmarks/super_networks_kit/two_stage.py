"""Whether it pays to train the largest design first: LightHuBERT's two stages against one, on spoken digits.

Settings, fixed before the first result:

- The Free Spoken Digit Dataset (official test recordings), the space `lighthubert-nano`, seeds 0, 1 and 2.
- Two stages: in the first 500 of 1,500 steps the largest design learns from labels, in the others one random design a
  step learns from labels, answers and layers of the largest, as the recipe `lighthubert` has it. One stage: 1,500 steps
  of one random design each, from labels. The steps are equal; those of the largest design cost more.
- Scores: test accuracy of the smallest design, of the largest, and the median over 20 random ones. Intervals of 95 %
  resample seeds (and designs for the median), paired.
"""

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
from super_networks_kit.units import RESAMPLES, Row, Units, interval, shown, table

SPACE, DESIGNS = "lighthubert-nano", 20
ARMS = ("two stages", "one stage")


def pipeline(arm: str, task: TaskChoice, steps: int, seed: int) -> Pipeline:
    if arm == "one stage":
        return Pipeline(TrainShared(SPACE, task, Uniform(), steps=steps, seed=seed))
    rule = Phases((Largest(), Uniform()), (1.0, 2.0))
    lesson = TwoStage(first=Labels(), then=HiddenStates(labels=0.5, scores=0.5), share=1 / 3)
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
    rows = {arm: [units.rows[f"{arm}-{seed}"] for seed in done] for arm in ARMS}

    def scores(row: Row, some: np.ndarray) -> tuple[float, float, float]:
        return row["smallest"], float(np.median(np.array(row["random"])[some])), row["largest"]

    def means(picked: list[int], some: np.ndarray) -> np.ndarray:
        return np.array([np.mean([scores(rows[arm][seed], some) for seed in picked], axis=0) for arm in ARMS])

    rng, every = derive(0, "bootstrap"), np.arange(DESIGNS)
    whole = means(list(range(len(done))), every)
    samples = np.array(
        [
            means(rng.integers(len(done), size=len(done)).tolist(), rng.integers(DESIGNS, size=DESIGNS))
            for _ in range(RESAMPLES)
        ]
    )
    names = ("smallest", "median of 20", "largest")
    return {
        "seeds": done,
        "scores": {
            name: {
                **{arm: interval(float(whole[row, place]), samples[:, row, place]) for row, arm in enumerate(ARMS)},
                "gain": interval(float(whole[0, place] - whole[1, place]), samples[:, 0, place] - samples[:, 1, place]),
            }
            for place, name in enumerate(names)
        },
    }


def page(found: Row) -> str:
    rows = [(name, *(shown(one[key], 3) for key in (*ARMS, "gain"))) for name, one in found["scores"].items()]
    return f"{table(('design', *ARMS, 'gain of two stages'), rows)}\n\n{len(found['seeds'])} seeds."
