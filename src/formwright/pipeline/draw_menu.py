"""The stage that measures the operations of a space of chains, and leaves the space of those worth their time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from formwright.arch.card import Card
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.core.files import read_json, unreadable, write_json
from formwright.core.options import Stage, describe, option
from formwright.pipeline.run import StageRun
from formwright.pipeline.task_choice import TaskChoice
from formwright.space import Choice, Fields, Record, Repeat
from formwright.space.space import Space
from formwright.space.zoo.chains import kind_of

_MENU = "menu.json"


@dataclass(frozen=True)
class DrawMenu(Stage):
    """Profile every operation of a space of chains on this machine, and keep the share `keep` of them, fastest first.

    An operation is measured as the chain that has it in every layer. Of each kind, such as attention or convolution,
    the fastest is always kept.
    """

    NAME: ClassVar[str] = "menu"

    space: str | Any = option(about="name of a space whose layers choose between operations, or FILE.py:NAME")
    task: TaskChoice = option(about="the task that says how many tokens a row has")
    keep: float = option(0.6, "share of the operations that are kept, the fastest ones", least=0, most=1)
    length: int | None = option(None, "tokens of a row; null: as many as cover 95 % of the training rows")

    def example(self, run: StageRun) -> Space:
        """Give the whole space, for checks before operations are left out."""
        return run.space(self.space)

    def resolved(self, run: StageRun) -> "DrawMenu":
        from formwright.tasks.row_length import FROM_SCRATCH
        from formwright.train.prepare import usual_length

        space, task = self.example(run), self.task.absolute()
        length = self.length or usual_length(run.task(task), _chain(space, operations_of(space)[0]), FROM_SCRATCH)
        return replace(self, task=task, length=length)

    def check(self, run: StageRun) -> None:
        operations_of(self.example(run))

    def contents(self, run: StageRun) -> Mapping[str, Any]:
        return {"operations": list(operations_of(self.example(run)))}

    def make(self, run: StageRun) -> None:
        times = self._times(run)
        kept = fastest(times, self.keep)
        write_json(run.folder / _MENU, {"milliseconds": times, "kept": kept})
        shown = ", ".join(f"{name} {time:.3g}" for name, time in sorted(times.items(), key=lambda one: one[1]))
        run.tell(f"milliseconds of chains of one operation: {shown}")
        run.tell(f"the menu has {', '.join(kept)}")

    def _times(self, run: StageRun) -> dict[str, float]:
        from formwright.nn.latency import ROUNDS, least_times, quick

        space, measured = self.example(run), quick(self.length or 1)
        cards = {operation: _chain(space, operation) for operation in operations_of(space)}
        with run.progress("measuring operations", ROUNDS * len(cards)) as tell:
            return least_times(cards, measured, lambda number: tell(number, None))

    def load(self, run: StageRun) -> Space:
        path, whole = run.folder / _MENU, self.example(run)
        try:
            kept = tuple(read_json(path)["kept"])
            if not kept or set(kept) - set(operations_of(whole)):
                raise IllegalInput(f"the menu has operations that {describe(self.space)} lacks")
        except (ValueError, TypeError, KeyError, FormwrightError) as error:
            raise unreadable(path, error) from None
        layers = _layers(whole)
        return replace(whole, root=Record.of(layers=replace(layers, part=Choice(kept))))


def operations_of(space: Space) -> tuple[str, ...]:
    """List the operations that the layers of a chain may have; refuse another kind of space."""
    part: Any = getattr(_layers(space), "part", None)
    options = part.options if isinstance(part, Choice) else ()
    operations = tuple(one for one in options if isinstance(one, str))
    if not operations or len(operations) < len(options):
        raise IllegalInput(
            f"the designs of space {space.name!r} are not chains whose layers choose between operations, and nothing "
            "else: name a space that has such (`formwright list spaces`)"
        )
    return operations


def fastest(times: Mapping[str, float], keep: float) -> list[str]:
    """Give the fastest operations, so large a share of all, and the fastest of each kind, in the order of the menu."""
    order = sorted(times, key=lambda name: times[name])
    first = {kind_of(name): name for name in reversed(order)}
    kept = {*order[: math.ceil(keep * len(order))], *first.values()}
    return [name for name in times if name in kept]


def _layers(space: Space) -> Any:
    found = dict(space.root.fields) if isinstance(space.root, Record) else {}
    layers = found.get("layers")
    return layers if len(found) == 1 and isinstance(layers, Repeat) else None


def _chain(space: Space, operation: str) -> Card:
    length = max(_layers(space).lengths)
    return space.card(Fields.of(layers=(operation,) * length))
