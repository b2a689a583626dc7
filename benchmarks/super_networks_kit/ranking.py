"""How well scores with shared weights rank designs, against designs trained alone and against their size.

Settings, fixed before the first result:

- Two problems. Slices: Fashion-MNIST, 55,000 rows to learn from, 5,000 to validate, 10,000 to test, and the space
  `autoformer-nano-28`. Chains (of the experiment `rules-chains`): mini-glue/sst2 and MAGIC's own space `magic-nano`,
  whose operations have weights of their own at each layer. Batches of 64, the other hyperparameters as
  `formwright train` has them.
- The truth: 30 designs, each choice drawn uniformly, are trained alone for 400 steps with seeds 0, 1 and 2; the mean
  accuracy on test rows.
- A super-network learns in 3,000 forward passes of one design each, with seeds 0, 1 and 2; its designs are judged on
  the validation rows. Arms of the first experiment (uniform sampling): entangled weights, disjoint weights (every value
  of a choice has its own tensors) and paths (every layer as a whole has). Arms of the second (entangled weights):
  uniform sampling, the sandwich of three designs (1,000 steps; the one between drawn among all designs, most of which
  have four layers), a walk, and a walk with an anchor that is tried at each restart of the walk, at as many forward
  passes of designs that learn; the anchor's own are not counted.
- Kendall's tau (b) is the mean over the seeds of the super-network. Controls: tau of the number of parameters, and tau
  inside three bands of size with as many designs each, their mean. Intervals of 95 % resample the designs, 2,000 times.
"""

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formwright.arch.card import Card
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.pipeline.shared_start import fresh_weights
from formwright.pipeline.task_choice import TrainingChoice
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.supernet.hull import find_hull
from formwright.supernet.inner_lessons import Anchor
from formwright.supernet.lessons import Labels, Lesson, LessonContext
from formwright.supernet.network import StepTrackingStream, SuperNetwork
from formwright.supernet.rules import Rule, Sandwich, Uniform, Walk
from formwright.tasks import load_task
from formwright.tasks.row_length import FROM_SCRATCH
from formwright.tasks.task import Task
from formwright.tasks.test_split import open_test
from formwright.train.device import threads
from formwright.train.fit import Training, fit, fresh_model, task_stream
from formwright.train.judge import judge
from formwright.train.loop import train
from formwright.train.prepare import Prepared, prepare, usual_length
from formwright.train.updates import SUM, JoinedLosses
from super_networks_kit.fashion import fashion
from super_networks_kit.sharing import SHARINGS, Sharing, held, network
from super_networks_kit.units import RESAMPLES, Row, Units, interval, shown, table, tau

BANDS, MEASURED = 3, 30  # bands of size; steps whose time and memory are measured


@dataclass(frozen=True)
class Problem:
    """A space, and the task that its designs learn, by the folder of its data."""

    space_name: str
    load: Callable[[Path], Task]

    @property
    def space(self) -> Space:
        return load_space(self.space_name)


def sentences(_: Path) -> Task:
    """Give a builtin task, which reads no files."""
    return load_task("mini-glue/sst2")


SLICES, CHAINS = Problem("autoformer-nano-28", fashion), Problem("magic-nano", sentences)


@dataclass(frozen=True)
class Sizes:
    """How much of everything there is."""

    designs: int = 30
    alone: int = 400
    passes: int = 3_000
    seeds: int = 3


@dataclass(frozen=True)
class Arm:
    """One way to train a super-network; `passes` are those of a step."""

    sharing: Sharing = "entangled"
    rule: Rule = Uniform()
    lesson: Lesson = Labels()
    passes: int = 1
    problem: Problem = SLICES

    def loss(self, task: Task, made: SuperNetwork, prepared: Prepared, how: Training) -> JoinedLosses:
        held_out = task_stream(replace(prepared, train=prepared.validation), replace(how.recipe, batch=128)).batch(0)
        context = LessonContext(made, find_hull(self.problem.space), how.recipe.steps, held_out)
        return JoinedLosses(self.lesson.bind(task.kind, context), SUM)


RULES: dict[str, Arm] = {
    "entangled": Arm(),  # uniform sampling: the arm of the first experiment
    "sandwich": Arm(rule=Sandwich(between=1, by="gene"), passes=3),
    "walk": Arm(rule=Walk()),
    "walk with anchor": Arm(rule=Walk(), lesson=Anchor()),
}
ARMS: dict[str, dict[str, Arm]] = {
    "sharing": {sharing: Arm(sharing) for sharing in SHARINGS},
    "rules": RULES,
    "rules-chains": {f"chains, {name}": replace(arm, problem=CHAINS) for name, arm in RULES.items()},
}


def drawn(space: Space, number: int) -> list[Card]:
    """Draw the designs that are ranked."""
    rng = derive(0, "ranked")
    found: dict[str, Card] = {}
    while len(found) < number:
        card = space.card(space.sample(rng, "gene"))
        found.setdefault(card.digest, card)
    return list(found.values())


def read(problem: Problem, task: Task) -> Prepared:
    """Read the task as the largest design of the space does, and so all others."""
    largest = find_hull(problem.space).largest
    return prepare(task, largest, usual_length(task, largest, FROM_SCRATCH))


def training(prepared: Prepared, steps: int, seed: int) -> Training:
    made = TrainingChoice(steps=steps, device="cpu", length=prepared.length or 1).make()
    return replace(made, recipe=replace(made.recipe, seed=seed))


def alone(problem: Problem, task: Task, card: Card, steps: int, seed: int) -> Row:
    """Train a design alone, and answer the test rows."""
    prepared, began = read(problem, task), time.process_time()
    how = training(prepared, steps, seed)
    model = fit(fresh_model(card, prepared, how), prepared, how).model
    took = time.process_time() - began
    with threads(1):
        score = judge(model, prepared, prepared.part(open_test(task)))["accuracy"]
    return {"params": params(card), "macs": macs(card), "accuracy": score, "seconds": took}


def shared(task: Task, arm: Arm, cards: list[Card], passes: int, seed: int) -> Row:
    """Train a super-network, and judge designs with its weights."""
    steps = passes // arm.passes
    prepared, began = read(arm.problem, task), time.process_time()
    how = training(prepared, steps, seed)
    made = super_network(arm, prepared, how)
    stream = StepTrackingStream(task_stream(prepared, how.recipe), made)
    losses = train(made, stream, arm.loss(task, made, prepared, how), how.recipe)
    took = time.process_time() - began
    scores = [judge(made.extracted(card), prepared, prepared.validation)["accuracy"] for card in cards]
    return {"scores": scores, "last losses": float(np.mean(losses[-50:])), "seconds": took, "steps": steps}


def super_network(arm: Arm, prepared: Prepared, how: Training) -> SuperNetwork:
    """Make an untrained super-network."""
    hull, steps = find_hull(arm.problem.space), how.recipe.steps
    if hull.whole:
        return network(arm.sharing, hull, prepared, how, arm.rule.bind(hull, steps, how.recipe.seed))
    weights, held_hull = fresh_weights(hull, prepared, how, None, print, needed=False)
    return SuperNetwork(weights, arm.rule.bind(held_hull, steps, how.recipe.seed))


def step_costs(data: Path, arm: Arm) -> Row:
    """Measure time and memory of the first steps in a process of their own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (data, arm))


def _measured(data: Path, arm: Arm) -> Row:
    task = arm.problem.load(data)
    prepared = read(arm.problem, task)
    how = training(prepared, MEASURED, 0)
    with threads(1):
        made = super_network(arm, prepared, how)
        stream = StepTrackingStream(task_stream(prepared, how.recipe), made)
        before, ends = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, list[float]()
        loss = arm.loss(task, made, prepared, how)
        train(made, stream, loss, how.recipe, after_step=lambda *_: ends.append(time.process_time()))
    taken = np.diff(ends)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"weights": held(made), "step ms": 1e3 * float(np.median(taken)), "grown MB": grown / 1024}


def work(units: Units, data: Path, sizes: Sizes, arms: dict[str, Arm]) -> None:
    """Do what is not done: seed by seed, so that an early stop leaves whole seeds."""
    problem = next(iter(arms.values())).problem
    task, cards, truth = problem.load(data), drawn(problem.space, sizes.designs), truth_name(arms)
    for name, arm in arms.items():
        units.kept(f"step-{name}", lambda arm=arm: step_costs(data, arm))  # type: ignore[misc]
    for seed in range(sizes.seeds):
        with threads(1):
            for name, arm in arms.items():
                units.kept(f"{name}-{seed}", lambda arm=arm, seed=seed: shared(task, arm, cards, sizes.passes, seed))  # type: ignore[misc]
            for number, card in enumerate(cards):
                units.kept(
                    f"{truth}-{number}-{seed}",
                    lambda card=card, seed=seed: alone(problem, task, card, sizes.alone, seed),  # type: ignore[misc]
                )


def truth_name(arms: dict[str, Arm]) -> str:
    """Name the units of designs that are trained alone; both experiments with slices have them in common."""
    return "alone" if next(iter(arms.values())).problem == SLICES else "chains, alone"


def figures(units: Units, sizes: Sizes, arms: dict[str, Arm]) -> Row:
    """Compare orders of the designs, for as many seeds as are finished."""
    name = truth_name(arms)
    seeds = [seed for seed in range(sizes.seeds) if f"{name}-{sizes.designs - 1}-{seed}" in units.rows]
    alone = np.array(
        [[units.rows[f"{name}-{number}-{seed}"]["accuracy"] for seed in seeds] for number in range(sizes.designs)]
    )
    size = np.array([units.rows[f"{name}-{number}-{seeds[0]}"]["params"] for number in range(sizes.designs)])
    truth, band = alone.mean(1), np.argsort(np.argsort(size)) * BANDS // sizes.designs
    found = {"params": _figures(lambda: [size], truth, band)}
    for name in arms:
        rows = [units.rows[f"{name}-{seed}"] for seed in seeds]
        scores = [np.array(row["scores"]) for row in rows]
        made = _figures(lambda scores=scores: scores, truth, band, size)  # type: ignore[misc]
        costs = units.rows[f"step-{name}"]
        found[name] = {**made, "accuracy": float(np.mean(scores)), **costs}
    between = [tau(alone[:, one], alone[:, other]) for one in range(len(seeds)) for other in range(one)]
    spread = {"between seeds": float(np.mean(between)) if between else None, "mean": float(truth.mean())}
    return {
        "seeds": seeds,
        "alone": {**spread, "least": float(truth.min()), "most": float(truth.max())},
        "orders": found,
    }


def _figures(
    orders: Callable[[], list[NDArray[Any]]],
    truth: NDArray[Any],
    band: NDArray[Any],
    size: NDArray[Any] | None = None,
) -> Row:
    def whole(some: NDArray[Any]) -> float:
        return float(np.mean([tau(order[some], truth[some]) for order in orders()]))

    def inside(some: NDArray[Any]) -> float:
        return float(np.mean([whole(some[band[some] == number]) for number in range(BANDS)]))

    rng, every = derive(0, "bootstrap"), np.arange(len(truth))
    samples = [rng.integers(len(truth), size=len(truth)) for _ in range(RESAMPLES)]
    made = {
        "tau": interval(whole(every), [whole(some) for some in samples]),
        "tau in bands": interval(inside(every), [inside(some) for some in samples]),
        "each seed": [tau(order, truth) for order in orders()],
    }
    if size is not None:
        gained = [whole(some) - tau(size[some], truth[some]) for some in (every, *samples)]
        made["more than size"] = interval(gained[0], gained[1:])
    return made


def page(found: Row) -> str:
    """Write the figures as a Markdown table."""
    columns = (
        "order by",
        "tau",
        "tau inside 3 bands of size",
        "tau less that of size",
        "accuracy",
        "weights",
        "ms a step",
        "memory, MB",
    )
    rows = []
    for name, one in found["orders"].items():
        more = shown(one["more than size"]) if "more than size" in one else "0"
        rest = ("", "", "", "")
        if "weights" in one:
            rest = (f"{one['accuracy']:.3f}", f"{one['weights']:,}", f"{one['step ms']:.0f}", f"{one['grown MB']:.0f}")
        rows.append((name, shown(one["tau"]), shown(one["tau in bands"]), more, *rest))
    alone, seeds = found["alone"], len(found["seeds"])
    between = "" if alone["between seeds"] is None else f"; tau between seeds {alone['between seeds']:.2f}"
    ends = f"mean accuracy {alone['mean']:.3f}, from {alone['least']:.3f} to {alone['most']:.3f}"
    note = f"{seeds} seeds. Alone: {ends}{between}."
    return f"{table(columns, rows)}\n\n{note}"
