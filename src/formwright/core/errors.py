"""Errors a user can meet: one root, few children, each also a builtin kind.

Every message says what is wrong, where, and what to do next. The arguments of an error are its `args`, so errors
survive pickling and cross process borders unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class FormwrightError(Exception):
    """Base class of every error that a user, not a bug of ours, causes."""


@dataclass(frozen=True)
class Fault:
    """State one thing that is wrong: `where` is a path such as `layers[3].heads`, `what` a sentence."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


# what `formwright list` knows
_LISTED = {
    "space": "spaces", "card": "cards", "cost": "costs", "task": "tasks", "kind": "kinds", "searcher": "searchers",
    "stage": "stages", "evaluator": "evaluators", "proxy": "proxies", "rule": "rules", "lesson": "lessons",
    "update": "updates", "recipe": "recipes", "observer": "observers",
}  # fmt: skip


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name that looks most like `name`, in a list; an empty one when nothing is close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    # 0.4 rather than difflib's 0.6: people abbreviate ('regevo' means 'regularized_evolution')
    matches = difflib.get_close_matches(name.casefold(), list(by_folded), n=1, cutoff=0.4)
    return [by_folded[match] for match in matches]


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """Return a sentence, after a blank, that gives the nearest known name; nothing when none is close."""
    return "".join(f" Nearest: {close!r}." for close in nearest(name, known))


class UnknownName(FormwrightError, LookupError):
    """Say that no `kind` (a singular noun: space, card, searcher) is called `name`, and which name is nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        super().__init__(kind, name, self.known)

    def __str__(self) -> str:
        listed, every = _LISTED.get(self.kind), f"There are: {', '.join(self.known) or 'none'}"
        if listed is not None:
            every = f"All {len(self.known)}: `formwright list {listed}`"
        return f"no {self.kind} called {self.name!r}.{nearest_hint(str(self.name), self.known)} {every}."


class IllegalDesign(FormwrightError, ValueError):
    """List every fault of a design; `what` names the thing at fault, such as `card` or a file's name."""

    def __init__(self, faults: Sequence[Fault], what: str = "card") -> None:
        assert faults, "an illegal design has at least one fault"
        self.faults = tuple(faults)
        self.what = what
        super().__init__(self.faults, what)

    def __str__(self) -> str:
        number = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return "\n".join([f"illegal {self.what}, {number}:", *(f"  {fault}" for fault in self.faults)])


class IllegalInput(FormwrightError, ValueError):
    """Say that an argument, a file or a value from outside cannot be used, and what would be."""


class Unsuccessful(FormwrightError):
    """Say that a run did its work without the result it was for, why, and what to try: exit code 1, not a fault."""


class EvaluationFailed(FormwrightError):
    """Say why a design could not be scored; a study records the reason and continues."""


class BuildFailed(FormwrightError, RuntimeError):
    """Say for which design the `build` of a space failed, and how: other designs do not make up for a faulty space."""


class NotCountable(FormwrightError, ValueError):
    """Say that a space cannot be counted exactly, and how to estimate its size instead."""


class MissingExtra(FormwrightError, ImportError):
    """Say that an optional `module` is absent, and which line installs the `extra` that brings it."""

    def __init__(self, module: str, extra: str) -> None:
        self.module = module
        self.extra = extra
        super().__init__(module, extra)

    def __str__(self) -> str:
        return f'{self.module} is not installed. Install it with: pip install "formwright[{self.extra}]"'
