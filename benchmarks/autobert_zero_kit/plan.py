"""Which runs each part needs; later ones follow from what earlier ones found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from autobert_zero_kit.real import contestants
from autobert_zero_kit.runs import Job, Results, Row
from autobert_zero_kit.searches import ARMS, OP_NAS, RANDOM, RANDOM_SHARED
from autobert_zero_kit.setting import LAYERS, Setting, nano_space
from autobert_zero_kit.summary import best_trial
from autobert_zero_kit.variants import comparisons, deepened
from formwright.arch.card import Card

PARTS = ("sharing", "searches", "designs", "real")
# CPU seconds of a step, and of all that a training takes beside its steps; measured on a busy machine of two cores
PRETRAINING, TUNING, JUDGING, REAL = 0.05, 0.034, 1.8, 0.088
COMPARED = 10  # designs of the part `designs`, or two more, each in twice the depth
APART = (
    100  # between the seeds of a search and those of long trainings: the same weights and rows would flatter a score
)


def arms_of(parts: Iterable[str]) -> list[str]:
    """List the searches that parts need."""
    wanted = {"sharing": (RANDOM, RANDOM_SHARED), "searches": tuple(ARMS), "designs": (OP_NAS,), "real": (OP_NAS,)}
    needed = {arm for part in parts for arm in wanted[part]}
    return [arm for arm in ARMS if arm in needed]


def searches(parts: Iterable[str], seeds: Sequence[int]) -> list[Job]:
    return [Job("search", arm, seed) for seed in seeds for arm in arms_of(parts)]


def curves(setting: Setting, seeds: Sequence[int]) -> list[Job]:
    return [Job("curve", str(number), seed) for seed in seeds for number in range(setting.curves)]


def ranked_trials(setting: Setting, results: Results, seed: int) -> list[tuple[Row, Row]]:
    """Pair the last trials of random search, with sharing and without: the same designs, as the seed draws them."""
    rows = results.rows()
    shared, scratch = (rows["search", arm, seed]["trials"] for arm in (RANDOM_SHARED, RANDOM))
    both = [(one, other) for one, other in zip(shared, scratch, strict=True) if "score" in one and "score" in other]
    assert all(one["card"] == other["card"] for one, other in both), "random search ignores scores"
    return both[-setting.ranked :]


def ranked(setting: Setting, results: Results, seeds: Sequence[int]) -> list[Job]:
    pairs = [(one, seed) for seed in seeds for one, _ in ranked_trials(setting, results, seed)]
    return [Job.of("long", Card.from_json(one["card"]), APART + seed) for one, seed in pairs]


def best_card(results: Results, arm: str, seed: int) -> Card:
    """Give the design that a search found."""
    return Card.from_json(best_trial(results.rows()["search", arm, seed])["card"])


def retrained(setting: Setting, results: Results, arms: Iterable[str], seeds: Sequence[int]) -> list[Job]:
    cards = [best_card(results, arm, seed) for arm in arms for seed in seeds]
    return [Job.of("long", card, seed) for card in cards for seed in seeds_again(setting)]


def seeds_again(setting: Setting) -> range:
    """Give the seeds with which found designs are trained again."""
    return range(APART, APART + setting.retrained)


def found_card(setting: Setting, results: Results, seeds: Sequence[int]) -> Card:
    """Give the best design that OP-NAS found with any seed, by validation after long training."""
    rows = results.rows()

    def worth(card: Card) -> float:
        jobs = [Job.of("long", card, seed) for seed in seeds_again(setting)]
        return float(np.mean([rows[job.key].get("validation", 0.0) for job in jobs]))

    return max((best_card(results, OP_NAS, seed) for seed in seeds), key=worth)


def compared(found: Card) -> dict[str, Card]:
    """Give all designs of the part `designs` by name; the one found is there as deep as the published pattern."""
    return comparisons(nano_space(2 * LAYERS), deepened(found))


def designs(found: Card, seeds: Sequence[int]) -> list[Job]:
    return [Job.of("long", card, seed) for seed in seeds for card in compared(found).values()]


def for_real(setting: Setting, found: Card) -> dict[str, Card]:
    """Give the designs of the part `real` by name."""
    return contestants(setting.real, deepened(found))


def real(setting: Setting, found: Card, seeds: Sequence[int]) -> list[Job]:
    return [Job.of("real", card, seed) for seed in seeds for card in for_real(setting, found).values()]


def estimate(setting: Setting, parts: Sequence[str], seeds: Sequence[int]) -> dict[str, float]:
    """Give the CPU minutes that parts take in all if nothing is there yet, each with what it needs of earlier ones."""
    nano, many = setting.nano, len(seeds)
    short, long = (PRETRAINING * s.pretraining + TUNING * s.tuning + JUDGING for s in (nano.short, nano.long))
    seconds = {"searches": len(arms_of(parts)) * many * nano.trials * short}
    again = [arm for arm in arms_of(parts) if "searches" in parts or arm == OP_NAS]
    seconds["retrained"] = len(again) * many * setting.retrained * long
    if "sharing" in parts:
        curve = 2 * (PRETRAINING * nano.curve + JUDGING)
        seconds["sharing"] = many * (setting.ranked * long + setting.curves * curve)
    if "designs" in parts:
        seconds["designs"] = 2 * COMPARED * many * long
    if "real" in parts:
        steps = setting.real.steps
        seconds["real"] = 2 * many * REAL * (steps.pretraining + len(setting.real.tasks) * steps.tuning)
    return {name: round(value / 60, 1) for name, value in seconds.items()}
