"""What a method is made of, in the words of a study's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from formwright.recipes.summary import Summary
from formwright.study.config import PretrainingChoice, TrainingChoice


@dataclass(frozen=True)
class Recipe:
    """Name the parts of a method; all of them can be said otherwise when a study is begun.

    The parts of the empty recipe are chosen as every study's. `minimise` are costs to lower beside the task's own goal.
    `length` is the maximum number of tokens in a row, None to take it from the data.
    `trials` is how many designs are evaluated where nothing else ends the search. `first` are, by the name of a space,
    designs as that space writes them, that are judged first. `paper`, `needs` and `takes` are for lists of methods, as
    `Summary` says.
    """

    about: str = ""
    space: str = ""
    searcher: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    evaluator: str = ""
    training: TrainingChoice = field(default_factory=TrainingChoice)
    length: int | None = None
    pretraining: PretrainingChoice = field(default_factory=PretrainingChoice)
    minimise: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    trials: int = 30
    first: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    paper: str = ""
    needs: str = ""
    takes: str = ""

    @property
    def summary(self) -> Summary:
        """Say what a list of methods says of it."""
        return Summary(self.about, self.paper, "search", self.needs, self.takes)

    def options_of(self, searcher: str, said: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Give the settings of a searcher, those that are said before the recipe's own.

        A searcher that is not the recipe's own has none of its settings. The same goes for one inside it: its `options`
        are replaced one by one, or all of them where what is said names another `searcher`.
        """
        own, said = dict(self.options) if searcher == self.searcher else {}, dict(said or {})
        inner, others = own.get("options"), said.get("options")
        if said.get("searcher", own.get("searcher")) != own.get("searcher"):
            own.pop("options", None)
        elif isinstance(inner, Mapping) and isinstance(others, Mapping):
            said["options"] = {**inner, **others}
        return own | said

    def first_of(self, space: str) -> tuple[Any, ...]:
        """Give the designs that are judged first: none in a space that the recipe says nothing of."""
        return self.first.get(space, ())
