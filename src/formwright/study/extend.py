"""New limits for a study that is resumed."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from formwright.core.errors import IllegalInput
from formwright.core.records import Objective
from formwright.study.ledger import Clock, Ledger
from formwright.study.place import Opened
from formwright.study.replay import Replay
from formwright.study.spaces import readable_space
from formwright.study.stop import Stop


def extended(opened: Opened, wishes: Mapping[str, Any]) -> Stop:
    """Give the end that a study has with further wishes, by the fields of `Stop`; a wish of None is none.

    A wish replaces the limit of its kind and, unless it is about failures alone, those limits that ended the study:
    it would end at once again. Less than what is done already is refused.
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    if not given.keys() - {"failures"}:
        return replace(opened.config.stop, **given)
    replay, ledger = _so_far(opened)
    done = {"trials": len(replay.history.trials), "steps": ledger.spent.steps, "seconds": ledger.elapsed}
    for name, amount in done.items():
        if name in given and given[name] < amount:
            told = f"{amount:,.1f}" if isinstance(amount, float) else f"{amount:,}"
            raise IllegalInput(
                f"the study {opened.place.name} has {told} {name} already, more than the {given[name]:,} asked for; "
                "give at least as many"
            )
    objectives = [Objective.parse(text) for text in (*opened.config.objectives, *opened.config.limits)]
    over = opened.config.stop.reached(replay.history, ledger, objectives)
    changes: dict[str, Any] = dict.fromkeys(over) | given
    return replace(opened.config.stop, **changes)


def noted(stop: Stop) -> dict[str, Any]:
    """Give what the launcher notes when it begins, so that every worker stops at this end."""
    return {"stop": asdict(stop)}


def _so_far(opened: Opened) -> tuple[Replay, Ledger]:
    events, clock = opened.log.read(), Clock()
    replay = Replay(readable_space(opened.config.space))
    replay.feed(events)
    clock.feed(events)
    return replay, replay.ledger(clock.elapsed(clock.last))
