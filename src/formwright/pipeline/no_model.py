"""Why a study came to its end without a model, and what to try."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formwright.core.records import Objective, Trial
from formwright.pipeline.delivered import undelivered
from formwright.pipeline.run_folder import Opened
from formwright.study.replay import Replay

_SHOWN = 3  # reasons that are reported, the most common first
_CHANGE = "change what these reasons name (a limit, the learning rate, the batch), and run again with another --out"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class NoModel:
    """Say why there is no model, the most common reasons of failures with their counts, and what to try."""

    why: str
    failures: tuple[tuple[int, str], ...]
    advice: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"no model was delivered: {self.why}"]
        lines += [f"  {count} times: {reason}" if count > 1 else f"  once: {reason}" for count, reason in self.failures]
        return "\n".join([*lines, "what to try:", *(f"  {line}" for line in self.advice)])


def why_no_model(opened: Opened) -> NoModel:
    """Find out from the log of a study why it delivered nothing."""
    replay = Replay(opened.space)
    replay.feed(opened.log.read())
    history = replay.history
    failed = [trial.reason for trial in history.trials if trial.state == "failed"]
    if lost := undelivered(opened.log):
        why = f"the final training of all {len(lost)} chosen designs failed"
        return NoModel(why, _common(one.reason for one in lost.values()), (_CHANGE, _all_trials(opened)))
    if history.finished:
        limits = [Objective.parse(text) for text in (*opened.search.limits, *opened.deliver.targets.values())]
        broken = [line for limit in limits if (line := _broken(limit, history.finished))]
        why = f"none of the {len(history.finished)} designs that were evaluated keeps all limits"
        return NoModel(why, _common(failed), (*broken, _more_trials(opened)))
    if failed:
        return NoModel(f"all {len(failed)} trials failed", _common(failed), (_CHANGE, _all_trials(opened)))
    return NoModel("no trial was finished", (), (_more_trials(opened), "loosen the limits, if there are any"))


def _common(reasons: Iterable[str]) -> tuple[tuple[int, str], ...]:
    """Give the most common reasons, each by its first wording; reasons that differ in numbers only are one."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for reason in reasons:
        key = _NUMBER.sub("N", reason)
        first.setdefault(key, reason)
        counts[key] += 1
    return tuple((count, first[key]) for key, count in counts.most_common(_SHOWN))


def _broken(limit: Objective, trials: Sequence[Trial]) -> str:
    """Say how many designs break a limit and how near the nearest comes; empty where all keep it."""
    values = [trial.observation.metrics.get(limit.name) for trial in trials if trial.observation is not None]
    missed = [value for value in values if value is not None and not limit.meets(value)]
    if not missed:
        return ""
    near = min(missed) if limit.direction == "min" else max(missed)
    return f"loosen {limit}: {len(missed)} of {len(trials)} designs miss it, the nearest has {near:.4g}"


def _more_trials(opened: Opened) -> str:
    return f"evaluate more designs: formwright resume {shlex.quote(str(opened.place.folder))} --trials N"


def _all_trials(opened: Opened) -> str:
    return f"look at all trials and their reasons: formwright show {shlex.quote(str(opened.place.folder))}"
