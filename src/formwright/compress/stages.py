"""The stages before the search, in their order; what is there is not made again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from formwright.arch.card import Card
from formwright.compress.folders import RECORD, Folders
from formwright.compress.job import Started
from formwright.compress.notes import note_space, note_teacher
from formwright.compress.pacing import Pacing
from formwright.compress.space import search_space
from formwright.compress.trainings import Conduct, Show, Work, super_network, teacher
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.place import Place, create, find, holds_study
from formwright.supernet.automatic import Met


@dataclass(frozen=True)
class Stages:
    """A job that has begun, the pace at which it is done, the costs of its targets by name, and where it is done."""

    started: Started
    pacing: Pacing
    costs: Mapping[str, Callable[[Card], float]]
    folders: Folders

    def teacher(self, conduct: Conduct, show: Show) -> TaskModel:
        """Fine-tune the model, or read what was fine-tuned before."""
        return teacher(self._work(conduct, show))

    def search_space(self) -> tuple[ElasticChoices, list[Met]]:
        """Let the model draw up its space."""
        reaches = self.started.reaches(self.costs)
        return search_space(self.started.begun.card, reaches, self.started.method, self.folders)

    def super_network(self, known: TaskModel, choices: ElasticChoices, conduct: Conduct, show: Show) -> None:
        """Train all sub-networks together."""
        self.pacing.enter("super-network")
        super_network(self._work(conduct, show), known, choices)

    def place(self, choices: ElasticChoices, met: Sequence[Met], limits: Mapping[str, str]) -> Place:
        """Make the study of the search, or find the one that was made before."""
        out = self.folders.out
        if holds_study(out):
            return find(str(out))
        self.pacing.enter("search")
        space = choices.space
        first = [space.to_json(choices.design(one.widths)) for one in met]
        config = self.started.config(self.pacing.plan, self.costs, limits, self.folders, first)
        return create(out, config, beside={path.name for path in out.iterdir()} | {RECORD})

    def note(self, place: Place, known: TaskModel, choices: ElasticChoices, met: Sequence[Met]) -> None:
        """Note in the log of the study what the report shows beside the search."""
        note_teacher(place, self.started.begun, known, self.started.length)
        note_space(place, self.started.begun, choices, met, next(iter(self.costs)))

    def _work(self, conduct: Conduct, show: Show) -> Work:
        return Work(self.started.begun, self.started.method, self.folders, self.pacing, conduct, show)
