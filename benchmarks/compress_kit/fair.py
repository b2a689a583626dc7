"""A comparison of equal cost: every arm has the same processor time for its whole front.

Settings, fixed before the first result:

- The budget is processor time of the process, one thread, because the machine is shared: what other processes do then
  costs an arm hardly any of its budget. Every arm has the same budget for its front of four models (75, 50, 35 and
  25 % of the teacher's MACs). The teacher and its answers to the training rows are the same for all arms, and free.
- Ours: scores of heads and channels on 64 batches, the space, the training of the super-network for 80 % of the budget,
  and a search that judges sub-networks on validation with the rest. No sub-network is trained on afterwards.
- Rivals: fewer layers, Torch-Pruning by Taylor scores and by magnitude. Each of the four models is trained for a
  quarter of the budget; they share the teacher and its answers, and nothing else. Cutting them is free.
- All are distilled with the same mix of labels and teacher, batch (32), peak learning rate (1e-4), warm-up (10 %) and
  cosine. The learning rate follows the share of the time that is used, and training ends when the time is used.
- Control: three sub-networks of our super-network for each share, drawn at random within 10 % below it; their mean.
  They have our training and no search.
- 8,000 rows of SST-2 are trained on. Seeds 0 and 1, 10 minutes for each arm, 5,000 held-out rows: what two hours of a
  core allow. Of these, docs/methods/eftnas.md has seed 0; seed 1 was not completed.
- Models are judged on rows of the task's training file that nobody trains on or chooses by. Intervals are of 95 %,
  by bootstrap over these rows; those of differences are paired. They know nothing of the noise between seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from torch import nn

from compress_kit.bench import SHARES, Bench, Row
from compress_kit.others import RIVALS
from compress_kit.searching import Network, best_models, points_of, random_models, searched
from formwright.compress.folders import Folders, write_importance
from formwright.compress.models import save
from formwright.compress.space import ordering, space_scores
from formwright.compress.trainings import make_network, network_recipe
from formwright.evaluate.race import Rules
from formwright.evaluate.shared import SharedWeights
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.supernet.automatic import Met, Thresholds, automatic, targets_between
from formwright.supernet.importance import first_order
from formwright.supernet.network import sandwich_loss
from formwright.train.device import threads
from formwright.train.distil import Taught, distilled
from formwright.train.fit import task_stream
from formwright.train.loop import train
from formwright.train.losses import Loss, loss_of
from formwright.train.recipe import Recipe

TRAINING = 0.8  # of our budget; the rest is for the search
SCHEDULED = 1_000_000  # more steps than any budget has; the learning rate follows the time
DRAWN = 3  # sub-networks of the control for each share
OURS, RANDOM, MAJORITY = "fair-ours", "fair-random", "fair-majority"


class BudgetUsed(Exception):
    """Say, from within a training, that its time is used."""


@dataclass(frozen=True)
class Clock:
    """Processor seconds since it was made, against a budget."""

    budget: float
    began: float = field(default_factory=time.process_time)

    @property
    def used(self) -> float:
        return time.process_time() - self.began

    @property
    def is_over(self) -> bool:
        return self.used >= self.budget

    def stop(self, step: int, loss: float) -> None:
        if self.is_over:
            raise BudgetUsed


@dataclass(frozen=True)
class TimedRecipe(Recipe):
    """A recipe whose learning rate follows the share of a clock's time that is used since the training began."""

    clock: Clock = field(default_factory=lambda: Clock(0.0))
    start: float = 0.0

    def rate(self, step: int) -> float:
        share = (self.clock.used - self.start) / max(self.clock.budget - self.start, 1e-9)
        return super().rate(min(int(share * self.steps), self.steps - 1))


def fair_arms(bench: Bench, rivals: Sequence[str]) -> dict[str, Callable[[], Row]]:
    """List the arms by the names of their files, in the order in which they run."""
    mine = {MAJORITY: bench.judged_majority, OURS: partial(ours, bench), RANDOM: partial(random, bench)}
    return mine | {f"fair-{name}": partial(rival_front, bench, name) for name in rivals}


def ours(bench: Bench) -> Row:
    """Score, train and search within the budget, and judge the best model within each share."""
    known, heard, folders = bench.teacher, bench.heard, _folders(bench)
    clock = Clock(_budget(bench))
    _write_scores(bench, folders)
    choices, met = _space(bench, folders)
    network = make_network(known, choices, ordering(known, bench.method, folders), bench.method, heard)
    training = replace(clock, budget=TRAINING * clock.budget)
    steps = _train(bench, network, sandwich_loss(bench.started.begun.prepared.task.kind, bench.method.mix), training)
    spent = clock.used
    save(network.model, bench.started.begun, folders.network, {"super-network of": bench.started.begun.name})
    found = _network(bench, folders, choices, met)
    clock = replace(clock, began=time.process_time() - spent)  # writing and reading files is nobody's budget
    history = searched(bench, found, "linas", bench.setting.evaluations, Rules(), lambda: clock.is_over)
    facts = {"processor seconds": clock.used, "training seconds": spent, "training steps": steps}
    at = best_models(bench, found, history, OURS)
    points = points_of(bench, history)
    return {"at": at, "hypervolume": bench.volumes(at), "evaluations": len(points), "front": points, **facts}


def random(bench: Bench) -> Row:
    """Judge the control: random sub-networks of the super-network that our arm trained."""
    _ = bench.kept(OURS, partial(ours, bench))  # whoever trains it
    folders = _folders(bench)
    return random_models(bench, _network(bench, folders, *_space(bench, folders)), DRAWN)


def rival_front(bench: Bench, name: str) -> Row:
    """Make and train a rival for each share, with a quarter of the budget each."""
    at = {}
    for share in SHARES:
        arm = f"fair-{name}-{share:.0%}"
        at[f"{share:.0%}"] = bench.kept(arm, partial(_rival, bench, name, share))
    total = sum(row["processor seconds"] for row in at.values())
    return {"at": at, "hypervolume": bench.volumes(at), "processor seconds": total}


def _rival(bench: Bench, name: str, share: float) -> Row:
    heard = bench.heard
    model, facts = RIVALS[name](bench, share)
    clock = Clock(_budget(bench) / len(SHARES))
    assert facts["macs"] <= 1.01 * share, f"{name} has {facts['macs']:.1%} of the MACs, not {share:.0%}"
    loss = distilled(bench.started.begun.prepared.task.kind, bench.method.mix)
    steps = _train(bench, Taught(model, heard), loss, clock)
    facts |= {"processor seconds": clock.used, "steps": steps}
    return bench.judged(model.eval(), f"fair-{name}-{share:.0%}") | facts


def _train(bench: Bench, model: nn.Module, loss: Loss, clock: Clock) -> int:
    """Train until the time is used, and give the number of steps."""
    recipe = network_recipe(bench.method.training.recipe, SCHEDULED, bench.method)
    timed = TimedRecipe(**vars(recipe), clock=clock, start=clock.used)
    losses: list[float] = []

    def after_step(step: int, value: float) -> None:
        losses.append(value)
        if len(losses) % 200 == 0:
            print(f"    step {step + 1}, {clock.used:.0f} of {clock.budget:.0f} s, loss {value:.4f}", flush=True)
        clock.stop(step, value)

    with threads(bench.setting.threads):
        try:
            train(model, task_stream(bench.started.begun.prepared, timed), loss, timed, None, after_step)
        except BudgetUsed:
            return len(losses)
    raise AssertionError("a training ended before its time was used")


def _write_scores(bench: Bench, folders: Folders) -> None:
    prepared, recipe = bench.started.begun.prepared, bench.method.training.recipe
    with threads(bench.setting.threads):
        stream = task_stream(prepared, recipe)
        batches = (stream.batch(step) for step in range(bench.plan.scored))
        write_importance(folders.importance, first_order(bench.teacher, batches, loss_of(prepared.task.kind)))


def _space(bench: Bench, folders: Folders) -> tuple[ElasticChoices, list[Met]]:
    (reach,) = bench.started.reaches({"macs": bench.cost})
    goals = targets_between(reach.low, reach.high, bench.method.configurations)
    return automatic(Thresholds(bench.card, space_scores(bench.method, folders), bench.cost), goals, whole=True)


def _network(bench: Bench, folders: Folders, choices: ElasticChoices, met: list[Met]) -> Network:
    task, length = bench.started.begun.prepared.task, bench.started.length
    return Network(SharedWeights.read(folders.network, task, length), choices, tuple(met), folders.out)


def _folders(bench: Bench) -> Folders:
    folders = Folders(bench.out / OURS)
    folders.out.mkdir(parents=True, exist_ok=True)
    return folders


def _budget(bench: Bench) -> float:
    minutes = bench.setting.minutes
    if minutes is None:
        raise SystemExit("the part fair needs a budget for each arm: --minutes 15")
    return 60 * minutes
