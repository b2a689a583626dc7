"""The students that are delivered: whole chains, taught on by the teacher, and written as folders that load."""

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from formwright.compress.blockwise.choices import Choice, Selection, least_of
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.sizes import LATENCY, PARAMS, Size, exceeded
from formwright.compress.folders import read_json, write_json
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.cost import input_size, macs, params
from formwright.nn.hf.files import is_whole
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.latency_table import Measured
from formwright.space.zoo.chains import chain_card
from formwright.supernet.assembled import Taught
from formwright.supernet.blockwise import given
from formwright.train.device import threads
from formwright.train.fit import Run
from formwright.train.loop import train
from formwright.train.recipe import Recipe

_HELD = 8  # batches of held-out text


@dataclass(frozen=True)
class StudentTraining:
    """One size of a compression whose blocks are trained and chosen."""

    selection: Selection
    name: str
    choice: Choice

    def run(self, run: Run) -> None:
        """Teach the student as a whole and write it; go on where an earlier run was stopped."""
        folders = self.selection.folders
        if is_delivered(folders, self.name, self.selection.plan.student_steps):
            return
        student = self.selection.student(self.choice.table, self.choice.blocks, self.selection.networks())
        with threads(1):
            train(student, self.selection.started.stream(self._seed), given, self.recipe, run.saving, run.after_step)
            distance = student.distance(self.selection.started.held_batches(_HELD))
        self._write(student, distance)
        for folder in folders.student(self.name, 0).parent.glob(f"student-{self.name}@*"):
            shutil.rmtree(folder, ignore_errors=True)

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
        length = started.longest
        costs = {PARAMS: params(model.card), "macs": macs(model.card, length), "length": length}
        size = input_size(model.card, length)
        save_pretrained_folder(
            model,
            folders.model(self.name),
            tokenizer=started.tokeniser.tokenizer,
            scores={"distance to the teacher on held-out text": distance},
            costs={"parameters": costs[PARAMS], f"multiply-accumulates at {size}": costs["macs"]},
            lineage={"taught by": started.name, "size": self.name},
            force=True,
        )
        facts = {"name": self.name, "digest": model.card.digest, **costs}
        chosen = {"chosen": asdict(self.choice), "distance": distance, "steps": self.recipe.steps}
        write_json(folders.facts(self.name), facts | chosen)


def is_delivered(folders: Folders, name: str, steps: int) -> bool:
    """Tell whether a size was delivered, taught for so many steps, and its files are still there and whole."""
    try:
        taught = read_json(folders.facts(name))["steps"]
    except (IllegalInput, KeyError, TypeError):
        return False
    return bool(taught == steps) and is_whole(folders.model(name))


def delivered(selection: Selection, measured: Measured) -> list[dict[str, Any]]:
    """Read all that was delivered, the smallest first, each with its milliseconds and the limits that it exceeds.

    What was not measured yet is measured now, when nothing is trained beside it.
    """
    folders, menu = selection.folders, selection.started.menu
    found = [facts for facts in map(_told, folders.delivered) if facts is not None]
    new = [facts for facts in found if LATENCY not in facts]
    chosen = [Choice.from_json(facts["chosen"]) for facts in new]
    times = least_of(measured, [chain_card(menu, choice.table, choice.blocks) for choice in chosen])
    for facts, time in zip(new, times, strict=True):
        facts[LATENCY] = time
        facts["exceeded"] = exceeded(Size.parse(facts["name"]), facts)
        write_json(folders.facts(facts["name"]), facts)
    return sorted(found, key=lambda facts: (facts[PARAMS], facts["name"]))


def _told(path: Path) -> dict[str, Any] | None:
    """Read what a file says of the model beside it, which may have been moved; None where it says nothing of one."""
    try:
        facts = read_json(path)
        Choice.from_json(facts["chosen"])
        if not {"name", PARAMS, "macs", "distance"} <= facts.keys():
            return None
    except (IllegalInput, KeyError, TypeError):
        return None
    return {**facts, "path": str(path.with_suffix(""))}
