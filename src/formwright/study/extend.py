"""Further limits for a study that is taken up again."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from formwright.core.records import Objective
from formwright.study.ledger import Clock
from formwright.study.place import Opened
from formwright.study.replay import Replay
from formwright.study.spaces import find_space
from formwright.study.stop import Stop


def extended(opened: Opened, wishes: Mapping[str, Any]) -> Stop:
    """Give the end that a study has with further wishes, by the fields of `Stop`; a wish of None is none.

    A wish replaces the limit of its kind and, unless it is about failures alone, those limits that ended the study:
    it would end at once again.
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    over = _reached(opened) if given.keys() - {"failures"} else ()
    changes: dict[str, Any] = dict.fromkeys(over) | given
    return replace(opened.config.stop, **changes)


def noted(stop: Stop) -> dict[str, Any]:
    """Give what the launcher notes when it begins, so that every worker stops at this end."""
    return {"stop": asdict(stop)}


def _reached(opened: Opened) -> tuple[str, ...]:
    config, events = opened.config, opened.log.read()
    replay, clock = Replay(find_space(config.space)), Clock()
    replay.feed(events)
    clock.feed(events)
    objectives = [Objective.parse(text) for text in (*config.objectives, *config.limits)]
    return config.stop.reached(replay.history, replay.ledger(clock.elapsed(clock.last)), objectives)
