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
from compress_kit.networks import super_network
from compress_kit.others import RIVALS
from compress_kit.searching import Network, best_models, points_of, random_models, searched
from formwright.evaluate.shared import RaceRules, SharedWeights
from formwright.pipeline.draw_space import DrawSpace
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.score_parts import BALANCE, ScoreParts, read_importance, write_importance
from formwright.pipeline.task_models import save_task_model
from formwright.space.elastic import ElasticChoices
from formwright.supernet.automatic import BudgetMatch, Thresholds, automatic, targets_between
from formwright.supernet.importance import Importance, balanced, first_order
from formwright.supernet.network import StepTrackingStream, SuperNetwork
from formwright.train.device import threads
from formwright.train.distil import ScoreStudent, distilled
from formwright.train.fit import task_stream
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.loop import train
from formwright.train.losses import Loss, loss_of
from formwright.train.streams import Stream

TRAINING = 0.8  # of our budget; the rest is for the search
SCHEDULED = 1_000_000  # more steps than any budget has; the learning rate follows the time
DRAWN = 3  # sub-networks of the control for each share
SCORES, NETWORK = "importance.safetensors", "super-network"  # in the folder of our arm
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
class TimedRecipe(Hyperparameters):
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
    heard, folder = bench.heard, bench.out / OURS
    clock = Clock(_budget(bench))
    write_importance(folder / SCORES, balanced(_scores(bench), BALANCE))
    choices, met = _space(bench)
    network = super_network(bench, choices, read_importance(folder / SCORES), heard)
    training = replace(clock, budget=TRAINING * clock.budget)
    steps = _train(bench, network, bench.shared.lesson.bind(bench.prepared.task.kind), training)
    spent = clock.used
    save_task_model(network.model, bench.prepared, folder / NETWORK, {"super-network of": bench.setting.model})
    found = _network(bench, choices, met)
    clock = replace(clock, began=time.process_time() - spent)  # writing and reading files is nobody's budget
    history = searched(bench, found, "linas", bench.setting.evaluations, RaceRules(), lambda: clock.is_over)
    facts = {"processor seconds": clock.used, "training seconds": spent, "training steps": steps}
    at = best_models(bench, found, history, OURS)
    points = points_of(bench, history)
    return {"at": at, "hypervolume": bench.volumes(at), "evaluations": len(points), "front": points, **facts}


def random(bench: Bench) -> Row:
    """Judge the control: random sub-networks of the super-network that our arm trained."""
    _ = bench.kept(OURS, partial(ours, bench))  # whoever trains it
    return random_models(bench, _network(bench, *_space(bench)), DRAWN)


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
    loss = distilled(bench.prepared.task.kind, bench.mix)
    steps = _train(bench, ScoreStudent(model, heard), loss, clock)
    facts |= {"processor seconds": clock.used, "steps": steps}
    return bench.judged(model.eval(), f"fair-{name}-{share:.0%}") | facts


def _train(bench: Bench, model: nn.Module, loss: Loss, clock: Clock) -> int:
    """Train until the time is used, and give the number of steps."""
    timed = TimedRecipe(**vars(bench.recipe(SCHEDULED)), clock=clock, start=clock.used)
    stream: Stream = task_stream(bench.prepared, timed)
    stream = StepTrackingStream(stream, model) if isinstance(model, SuperNetwork) else stream
    losses: list[float] = []

    def after_step(step: int, value: float) -> None:
        losses.append(value)
        if len(losses) % 200 == 0:
            print(f"    step {step + 1}, {clock.used:.0f} of {clock.budget:.0f} s, loss {value:.4f}", flush=True)
        clock.stop(step, value)

    with threads(bench.setting.threads):
        try:
            train(model, stream, loss, timed, None, after_step)
        except BudgetUsed:
            return len(losses)
    raise AssertionError("a training ended before its time was used")


def _scores(bench: Bench) -> Importance:
    teacher = bench.stage(FineTune)
    recipe = teacher.training_of(bench.run.stage(teacher)).recipe
    with threads(bench.setting.threads):
        stream = task_stream(bench.prepared, recipe)
        batches = (stream.batch(step) for step in range(bench.stage(ScoreParts).batches))
        return first_order(bench.teacher, batches, loss_of(bench.prepared.task.kind))


def _space(bench: Bench) -> tuple[ElasticChoices, list[BudgetMatch]]:
    goals = targets_between(*bench.low_and_high(), bench.stage(DrawSpace).configurations)
    scores = read_importance(bench.out / OURS / SCORES)
    return automatic(Thresholds(bench.card, scores, bench.cost), goals, whole=True)


def _network(bench: Bench, choices: ElasticChoices, met: list[BudgetMatch]) -> Network:
    folder = bench.out / OURS
    weights = SharedWeights.read(folder / NETWORK, bench.prepared.task, bench.length)
    return Network(weights, choices, tuple(met), folder)


def _budget(bench: Bench) -> float:
    minutes = bench.setting.minutes
    if minutes is None:
        raise SystemExit("the part fair needs a budget for each arm: --minutes 15")
    return 60 * minutes
