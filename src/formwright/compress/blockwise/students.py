"""The students that are delivered: whole chains, taught on by the teacher, and written as folders that load."""

import shutil
from dataclasses import asdict, dataclass
from typing import Any

from formwright.compress.blockwise.choices import Choice, Selection
from formwright.compress.folders import read_json, write_json
from formwright.core.rng import derive
from formwright.cost import macs, params
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.measure import measure
from formwright.supernet.assembled import Taught
from formwright.supernet.blockwise import given
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.loop import train
from formwright.train.recipe import Recipe

_HELD = 8  # batches of held-out text
_RUNS = 30


@dataclass(frozen=True)
class StudentTraining:
    """One size of a compression whose blocks are trained and chosen."""

    selection: Selection
    name: str
    choice: Choice

    def run(self, run: Run) -> None:
        """Teach the student as a whole and write it; go on where an earlier run was stopped."""
        folders = self.selection.folders
        if folders.facts(self.name).is_file():
            return
        student = self.selection.student(self.choice.table, self.choice.blocks, self.selection.networks())
        with threads(1):
            train(student, self.selection.started.stream(self._seed), given, self.recipe, run.saving, run.after_step)
            distance = student.distance(self.selection.started.held_batches(_HELD))
        self._write(student, distance)
        shutil.rmtree(folders.checkpoints(f"student-{self.name}"), ignore_errors=True)

    @property
    def recipe(self) -> Recipe:
        """Give the recipe of the whole student."""
        method, steps = self.selection.started.job.method, self.selection.plan.student_steps
        return Recipe(steps, method.batch, method.student_rate, decay="cosine", seed=self._seed)

    @property
    def _seed(self) -> int:
        return int(derive(self.selection.started.job.seed, "student", self.name).integers(1 << 31))

    def _write(self, student: Taught, distance: float) -> None:
        started, folders, model = self.selection.started, self.selection.folders, student.model.cpu().eval()
        length = started.held.tokens.lengths.max()
        costs = {
            "params": params(model.card),
            "macs": macs(model.card, int(length)),
            "latency_ms": measure(model, length=int(length), runs=_RUNS, memory=False).median_ms,
        }
        save_pretrained_folder(
            model,
            folders.model(self.name),
            tokenizer=started.tokeniser.tokenizer,
            scores={"distance to the teacher on held-out text": distance},
            lineage={"taught by": started.name, "size": self.name},
            force=True,
        )
        facts = {"name": self.name, "path": str(folders.model(self.name)), "digest": model.card.digest, **costs}
        chosen = {"chosen": asdict(self.choice), "distance": distance, "steps": self.recipe.steps}
        write_json(folders.facts(self.name), facts | chosen)


def delivered(selection: Selection) -> list[dict[str, Any]]:
    """Read what was delivered, in the order of the sizes."""
    return [read_json(selection.folders.facts(size.name)) for size in selection.started.sizes]
