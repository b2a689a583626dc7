"""What the training of one model came to: the facts that are reported, and the folder of the model."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from formwright.cost import params
from formwright.evaluate.final import Tested
from formwright.evaluate.row_tables import evidence_of
from formwright.pipeline.conclusion import score_line
from formwright.pipeline.start_model import StartModel
from formwright.pipeline.task_models import write_task_model
from formwright.tasks.bootstrap import Evidence
from formwright.train.fit import Trained
from formwright.train.hyperparameters import Hyperparameters
from formwright.train.prepare import Prepared, cut_rows
from formwright.train.streams import Shuffled, lengths_of


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """A trained model with its scores on validation and, where it was tested, on the test rows."""

    start: StartModel
    prepared: Prepared
    recipe: Hyperparameters
    trained: Trained
    tested: Tested | None

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """Say for each split how sure the scores are."""
        validation = self.prepared.validation
        found = {"validation": evidence_of(self.trained.metrics, self.trained.tables, self.prepared, validation)}
        return found | ({} if self.tested is None else {"test": self.tested.evidence})

    def facts(self) -> dict[str, Any]:
        """Give everything as JSON data."""
        start, trained, tested = self.start, self.trained, self.tested
        metric, cut = start.task.metric, cut_rows(self.prepared, start.card)
        split, scores = ("validation", trained.metrics) if tested is None else ("test", tested.metrics)
        return {
            "name": start.name,
            "digest": start.card.digest,
            "params": params(start.card),
            "card": start.card.to_json(),
            "task": start.task.name,
            "steps": len(trained.losses),
            "best_step": trained.best_step,
            "losses": trained.losses,
            "metrics": dict(trained.metrics),
            "test": None if tested is None else dict(tested.metrics),
            "evidence": {name: asdict(known) for name, known in self.evidence.items()},
            "conclusion": [f"{start.name}: {score_line(metric, split, scores[metric], self.evidence[split])}"],
            "beams": self.prepared.beams,
            "padding": Shuffled(lengths_of(self.prepared.train.examples), self.recipe.batch, self.recipe.seed).padding,
            "length": self.prepared.length,
            "cut": 0.0 if cut is None else cut.share,
            "recipe": asdict(self.recipe),
            "seconds": trained.seconds,
        }

    def save(self, folder: Path) -> None:
        """Write the model as a folder that loads, with its scores."""
        scores = {"validation": self.trained.metrics} | ({} if self.tested is None else {"test": self.tested.metrics})
        lineage = {"trained from": self.start.name}
        write_task_model(self.trained.model, self.prepared, folder, lineage, scores, self.evidence)
