"""Score designs by a function of Python's: of the study of a user's own."""

import hashlib
import inspect
import math
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from formwright.core.errors import EvaluationFailed
from formwright.core.options import PartReader, PartWriter, PythonObject, describe, option
from formwright.core.records import Observation, Request, Spent
from formwright.evaluate.context import Context
from formwright.pipeline.evaluators import EvaluatorPart, Setting

if TYPE_CHECKING:
    from formwright.tasks.task import Task


def source_digest(function: Any) -> str:
    """Give a digest of what a function does: of its source, or of its bytecode where it has none of its own."""
    inner = getattr(function, "func", function)  # below `functools.partial`
    own = inner if inspect.isroutine(inner) else type(inner)
    try:
        text = "" if getattr(own, "__name__", "") == "<lambda>" else textwrap.dedent(inspect.getsource(own))
    except (OSError, TypeError):  # typed into a shell
        text = ""
    code = getattr(own, "__code__", None)
    if not text and code is not None:
        consts = [one for one in code.co_consts if isinstance(one, int | float | str | None)]
        text = f"{code.co_code.hex()} {code.co_names} {consts}"
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class FunctionEvaluator(EvaluatorPart):
    """Score designs by a function of Python: `function(card, budget)` gives a number or a mapping of numbers.

    A single number is the value of the study's first goal, which `goal` names.
    """

    NAME: ClassVar[str] = "function"
    TRAINS: ClassVar[bool] = False
    function: Callable[..., Any] = option(about="what scores a card at a budget")
    goal: str = option("score", "the name of the score where the function gives a single number")
    names: tuple[str, ...] = option((), "scores that the function must give, because objectives and limits name them")

    @classmethod
    def read_options(cls, data: Mapping[str, Any], reader: PartReader, where: str) -> Any:
        function = reader.read(Any, data.get("function"), f"{where}.function")
        return cls(function, str(data.get("goal", "score")), tuple(data.get("names", ())))

    def write_options(self, writer: PartWriter) -> dict[str, Any]:
        source = self.function.source if isinstance(self.function, PythonObject) else describe(self.function)
        return {"function": {"python": source}, "goal": self.goal, "names": list(self.names)}

    def contents(self) -> Mapping[str, Any]:
        return {} if isinstance(self.function, PythonObject) else {"function evaluate": source_digest(self.function)}

    def metrics(self, task: "Task | None") -> None:
        return

    def bind(self, setting: Setting) -> "FunctionEvaluator":
        if isinstance(self.function, PythonObject):
            self.function()  # refuses: only the program that began the study has it
        return self

    def evaluate(self, request: Request, context: Context) -> Observation:
        """Score a request; raise `EvaluationFailed` where the function gives something else than numbers."""
        began = time.perf_counter()
        found = self.function(request.card, request.budget)
        if isinstance(found, Observation):
            return found
        metrics = found if isinstance(found, Mapping) else {self.goal: found}
        for name, value in metrics.items():
            if not _is_number(value):
                raise EvaluationFailed(
                    f"the function gave {value!r} for {name}: return a finite number, or a mapping of numbers by name"
                )
        missing = [name for name in self.names if name not in metrics]
        if missing:
            detail = ", ".join(map(str, metrics)) or "nothing"
            raise EvaluationFailed(f"the function gave {detail}, but no {missing[0]}, which the study names")
        numbers = {str(name): float(value) for name, value in metrics.items()}
        return Observation(numbers, Spent(time.perf_counter() - began, request.budget.steps or 0))


def _is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, also of numpy or a tensor of one element."""
    try:
        return not isinstance(value, str | bytes) and math.isfinite(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return False
