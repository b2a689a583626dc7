"""A study while it runs: a live table on a terminal, a line for each event elsewhere."""

import sys
from typing import TYPE_CHECKING, Any

from formwright.cli.output import cell, note
from formwright.core.records import Objective, Trial
from formwright.core.text import clock

if TYPE_CHECKING:
    from formwright.pipeline.study_place import Opened
    from formwright.study.events import Event


class StudyView:
    """Follow the log of a study and show it on standard error; `look` reads what is new."""

    def __init__(self, opened: "Opened") -> None:
        from formwright.study.replay import Replay
        from formwright.study.stop import Clock

        self._opened = opened
        self._goals = [Objective.parse(text) for text in opened.search.objectives]
        self._limits = [Objective.parse(text) for text in opened.search.limits]
        self._replay, self._clock = Replay(opened.space), Clock()
        self._live: Any = None
        self._quiet = True  # what was in the log before is not news

    def __enter__(self) -> "StudyView":
        self.look()
        self._quiet = False
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._table(), console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def look(self) -> None:
        """Read what is new in the log, and show it."""
        events = self._opened.log.read(self._replay.seen)
        for event in events:
            self._replay.feed([event])
            self._clock.feed([event])
            if self._live is None and not self._quiet:
                self._print(event)
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _print(self, event: "Event") -> None:
        if event.kind not in ("told", "failed") or event.number is None:
            return
        trial = self._replay.history.trials[event.number]
        detail = trial.reason if event.kind == "failed" else self._scores(trial)
        total, history = self._opened.search.stop.trials, self._replay.history
        count = f"{len(history.trials) - len(history.pending)}" + (f" of {total}" if total else "")
        left = self.seconds_left()
        note(f"trial {event.number} ({count} done): {detail}" + ("" if left is None else f"; {clock(left)} left"))

    def _scores(self, trial: Trial) -> str:
        metrics = trial.observation.metrics if trial.observation else {}
        return ", ".join(f"{goal.name} {metrics[goal.name]:.6g}" for goal in self._goals if goal.name in metrics)

    def seconds_left(self) -> float | None:
        """Estimate how long the study will take; None where that is unknown."""
        stop, history = self._opened.search.stop, self._replay.history
        elapsed = self._clock.elapsed(self._opened.log.now())
        done = len(history.trials) - len(history.pending)
        guesses = []
        if stop.seconds is not None:
            guesses.append(stop.seconds - elapsed)
        if stop.trials is not None and done:
            guesses.append(elapsed / done * (stop.trials - done))
        return max(min(guesses), 0.0) if guesses else None

    def _table(self) -> Any:
        from rich.table import Table

        from formwright.search.scores import front

        history = self._replay.history
        finished, pending = history.finished, history.pending
        best = front(history, [*self._goals, *self._limits]) if finished else ()
        failed = len(history.trials) - len(finished) - len(pending)
        left, elapsed = self.seconds_left(), clock(self._clock.elapsed(self._opened.log.now()))
        shown = "; ".join(f"trial {trial.number}: {self._scores(trial)}" for trial in best[:3]) or "none yet"
        shown += " ..." if len(best) > 3 else ""
        rows = [
            ("trials", f"{len(finished)} done, {len(pending)} running, {failed} failed"),
            ("time", elapsed + ("" if left is None else f", {clock(left)} left")),
            ("best so far" if len(self._goals) == 1 else f"front of {len(best)}", shown),
            ("latest", self._scores(finished[-1]) if finished else "none yet"),
        ]
        table = Table.grid(padding=(0, 2))
        for name, value in rows:
            table.add_row(cell(name, style="bold"), cell(value))
        return table
