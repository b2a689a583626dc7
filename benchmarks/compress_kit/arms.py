"""The arms of the benchmark in their order. Several processes may share a task and a seed, each at another arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compress_kit.bench import Bench, Held, Row
from compress_kit.fair import fair_arms
from compress_kit.networks import Arm, run, trained, untrained
from compress_kit.others import HALF, rival, rival_front
from compress_kit.searching import random_models, searches
from compress_kit.speed import speed

PARTS = ("front", "others", "searches", "fronts", "orders", "spaces", "speed", "fair")
NEED_NETWORK = {"front", "searches", "speed"}
USUAL = Arm()
ORDERS = (Arm(order="movement"), Arm(order="l1"), Arm(order="none"))
SPACES = (Arm(space="grid"), Arm(configurations=3), Arm(configurations=7))


@dataclass(frozen=True)
class Work:
    """Something to compute once: how it is called in the results and in its file, and what computes it."""

    name: str
    file: str
    compute: Callable[[], Row]


def arms(bench: Bench, parts: Sequence[str], rivals: Sequence[str]) -> dict[str, Row]:
    """Compute what is not there yet. What another process is at is left to it, and waited for in the end."""
    found = {"teacher": bench.kept("teacher", lambda: bench.judged_design(bench.teacher, "teacher"))}
    listed, held = works(bench, parts, rivals), list[Work]()
    for work in listed:
        try:
            found[work.name] = bench.kept(work.file, work.compute, wait=False)
        except Held:
            held.append(work)
    found |= {work.name: bench.kept(work.file, work.compute) for work in held}
    return {name: found[name] for name in ("teacher", *(work.name for work in listed))}


def works(bench: Bench, parts: Sequence[str], rivals: Sequence[str]) -> list[Work]:
    """List what the parts are made of."""
    found = [Work(arm.name, arm.name, partial(run, bench, arm)) for arm in networks(bench, parts)]
    if "front" in parts:
        found.append(Work("random", "random", partial(_random, bench)))
    if "orders" in parts:
        found.append(Work("untrained", "untrained", partial(untrained, bench)))
    found += _rivals(bench, parts, rivals)
    if "searches" in parts:
        found.append(Work("searches", "searches", partial(_searches, bench)))
    if "speed" in parts:
        found.append(Work("speed", "speed", partial(_speed, bench)))
    if "fair" in parts:
        found += [Work(name, name, compute) for name, compute in fair_arms(bench, rivals).items()]
    return found


def networks(bench: Bench, parts: Sequence[str]) -> list[Arm]:
    """List the super-networks; those of orders and spaces, and the usual one beside them, may be shorter."""
    compared = [*(ORDERS if "orders" in parts else ()), *(SPACES if "spaces" in parts else ())]
    length = bench.setting.ablation
    shorter = [replace(arm, length=length) for arm in (USUAL, *compared)] if compared else []
    whole = [USUAL] if NEED_NETWORK & set(parts) else []
    return list(dict.fromkeys([*whole, *shorter]))


def _random(bench: Bench) -> Row:
    _ = _usual(bench)  # whoever trains it
    return random_models(bench, trained(bench, USUAL))


def _searches(bench: Bench) -> Row:
    raced = _usual(bench)["curve"]
    return searches(bench, trained(bench, USUAL), raced)


def _speed(bench: Bench) -> Row:
    at = _usual(bench)["at"]
    return speed(bench, trained(bench, USUAL), at)


def _usual(bench: Bench) -> Row:
    return bench.kept(USUAL.name, partial(run, bench, USUAL))


def _rivals(bench: Bench, parts: Sequence[str], rivals: Sequence[str]) -> list[Work]:
    steps, found = bench.steps(), list[Work]()
    for name in rivals:
        if "others" in parts:
            found.append(Work(name, f"{name}-{HALF:.0%}-{steps}", partial(rival, bench, name, HALF, steps)))
        if "fronts" in parts:
            found.append(Work(f"front-{name}", f"front-{name}", partial(rival_front, bench, name)))
    return found
