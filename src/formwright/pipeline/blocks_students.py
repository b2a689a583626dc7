"""The stage that trains the chosen students as wholes, and delivers them as model folders."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formwright.core.errors import IllegalInput
from formwright.core.files import read_json, write_json
from formwright.core.options import Stage, option
from formwright.cost import LATENCY
from formwright.pipeline.blocks_choose import BlockFacts, ChooseChains, ChosenChain, StudentFacts, block_facts, least_of
from formwright.pipeline.blocks_source import LoadTeacher, Source
from formwright.pipeline.conclusion import Summary
from formwright.pipeline.plan import Planned, WorkAmount
from formwright.pipeline.run import PipelineRun, StageRun
from formwright.pipeline.units import Unit, steps_amount, train_units, turns
from formwright.search.chain_costs import PARAMS, Size, exceeded
from formwright.space.zoo.chains import chain_card

if TYPE_CHECKING:
    from formwright.pipeline.delivered import Delivered
    from formwright.supernet.blockwise import DistilledStudent
    from formwright.train.fit import Run

MODELS = "models"
_HELD = 8  # batches of held-out text
Facts = dict[str, Any]


@dataclass(frozen=True)
class TeachStudents(Stage, Planned):
    """Train each chosen student as a whole with the teacher, and write it to the models of the run."""

    NAME = "students"
    PANELS = ("block-sizes", "block-models")
    TIMED_ANEW = True

    source: LoadTeacher
    choices: ChooseChains
    steps: int = option(1000, "training steps of each student", extent=True, least=0)
    learning_rate: float = option(5e-4, "peak learning rate")

    def make(self, run: StageRun) -> None:
        """Train the students that are not delivered yet; then measure all of them, with nothing else under way."""
        chosen: Mapping[str, ChosenChain] = run.artifact(self.choices)
        left = [name for name in chosen if not self._is_delivered(run, name)]
        units = [Unit(f"{name}@{self.steps}", self.steps, partial(self._training, run, name)) for name in left]
        train_units(run, "students", units)
        self._measure(run)

    def reaches(self, run: StageRun) -> bool:
        names = [size.name for size in self.choices.asked]
        return all(self._is_delivered(run, name) and LATENCY in (read_facts(run, name) or {}) for name in names)

    def load(self, run: StageRun) -> list[Facts]:
        found = {facts["name"]: facts for facts in delivered(run)}
        return [found[size.name] for size in self.choices.asked]

    def models(self, run: StageRun) -> "list[Delivered]":
        """Give the students as the models of a search are; their score is how far they are from the teacher."""
        from formwright.pipeline.delivered import Delivered

        found = []
        for one in run.artifact(self):
            own = {name: one[name] for name in ("name", "digest", "path", "params", "steps")}
            costs = {name: float(one[name]) for name in ("macs", LATENCY) if name in one}
            scores = {"distance": one["distance"]}
            found.append(Delivered(role="best", validation=scores, test=None, trial=None, costs=costs, **own))
        return found

    def page_facts(self, run: StageRun) -> BlockFacts | None:
        """Give what the page shows of the blocks and models; None before the blocks are trained."""
        try:
            found = block_facts(self.choices, run.run)
        except IllegalInput:
            return None
        models = [
            StudentFacts(
                one["name"],
                one[PARAMS],
                one[LATENCY],
                one["chosen"]["costs"][LATENCY],
                before=one["chosen"]["distance"],
                after=one["distance"],
            )
            for one in delivered(run)
            if LATENCY in one
        ]
        return replace(found, models=tuple(models))

    def summary(self, run: StageRun) -> Summary | None:
        found = {facts["name"]: facts for facts in delivered(run) if LATENCY in facts}
        models = [found[size.name] for size in self.choices.asked if size.name in found]
        if not models:
            return None
        heads = ("model", ">parameters", ">ms", ">distance before", ">after", "folder")
        lengths = " or ".join(str(length) for length in sorted({model["length"] for model in models}))
        lines = [f"ms: one row of {lengths} tokens, measured in turns on one thread"]
        lines += [
            f"{model['name']} takes {model[LATENCY]:.2f} ms, more than was asked for: measure it again on an idle "
            f"machine (formwright measure {model['path']} --length {model['length']}), or ask for fewer milliseconds"
            for model in models
            if model.get("exceeded")
        ]
        lines.append("next: formwright train FOLDER --task TASK --distil-from TEACHER")
        rows = [
            (
                model["name"],
                f"{model[PARAMS]:,}",
                f"{model[LATENCY]:.2f}",
                f"{model['chosen']['distance']:.4f}",
                f"{model['distance']:.4f}",
                model["path"],
            )
            for model in models
        ]
        return Summary(heads, rows, lines, {"models": models})

    def _training(self, run: StageRun, name: str) -> "StudentTraining":
        from formwright.train.hyperparameters import Hyperparameters

        source: Source = run.artifact(self.source)
        choice: ChosenChain = run.artifact(self.choices)[name]
        recipe = Hyperparameters(
            self.steps, source.stage.batch, self.learning_rate, decay="cosine", seed=source.seed("student", name)
        )
        student = run.artifact(self.choices.blocks).student(choice.table, choice.blocks)
        return StudentTraining(source, student, recipe, name, choice, _model(run.run, name), _facts(run, name))

    def _is_delivered(self, run: StageRun, name: str) -> bool:
        """Tell whether a size was delivered, trained for as many steps, and its files are still there and whole."""
        from formwright.nn.hf.checkpoint_files import is_whole

        facts = read_facts(run, name)
        return facts is not None and facts["steps"] == self.steps and is_whole(_model(run.run, name))

    def _measure(self, run: StageRun) -> None:
        """Measure the models that were not measured yet, in turns, and note the limits that they exceed."""
        source: Source = run.artifact(self.source)
        new = [facts for facts in delivered(run) if LATENCY not in facts]
        chosen = [ChosenChain.from_json(facts["chosen"]) for facts in new]
        times = least_of(source.timer, [chain_card(source.menu, one.table, one.blocks) for one in chosen])
        for facts, time in zip(new, times, strict=True):
            plain = {name: value for name, value in facts.items() if name != "path"} | {LATENCY: time}
            over = exceeded(Size.parse(facts["name"]), plain)
            write_json(_facts(run, facts["name"]), plain | {"exceeded": over})

    # --- the plan of time --------------------------------------------------------------------------------------------

    def amounts(self, run: StageRun) -> dict[str, WorkAmount]:
        return {"steps": steps_amount(self.steps, "steps of each student")}

    def speeds(self, run: StageRun) -> dict[str, float]:
        from formwright.pipeline.model_times import student_seconds

        return {"step": student_seconds(run.artifact(self.source))}

    def seconds(self, amounts: Mapping[str, int], speeds: Mapping[str, float], run: StageRun) -> float:
        return amounts["steps"] * speeds["step"] * turns(len(self.choices.asked), run.options.workers)

    def describe(self, amounts: Mapping[str, int], run: StageRun) -> str:
        return f"{len(self.choices.asked)} students, {amounts['steps']:,} steps each"

    def planned(self, amounts: Mapping[str, int], run: StageRun) -> "TeachStudents":
        return replace(self, steps=amounts["steps"])


@dataclass(frozen=True, eq=False)
class StudentTraining:
    """The training of one student, which is written to `folder`, with what is known of it in the file `facts`."""

    source: Source
    student: "DistilledStudent"
    recipe: Any
    name: str
    choice: ChosenChain
    folder: Path
    facts: Path

    def __call__(self, run: "Run") -> None:
        """Train the student and write it; resume where an earlier run was stopped."""
        from formwright.cost import input_size, macs, params
        from formwright.nn.hf.save import save_pretrained_folder
        from formwright.supernet.blockwise import given
        from formwright.train.device import threads
        from formwright.train.loop import train

        source, length = self.source, self.source.longest
        with threads(1):
            train(self.student, source.stream(self.recipe.seed), given, self.recipe, run.saving, run.after_step)
            distance = self.student.distance(source.held_batches(_HELD))
        model = self.student.model.cpu().eval()
        size = input_size(model.card, length)
        costs = {PARAMS: params(model.card), "macs": macs(model.card, length), "length": length}
        save_pretrained_folder(
            model,
            self.folder,
            tokenizer=source.tokeniser.tokenizer,
            scores={"distance to the teacher on held-out text": distance},
            costs={"parameters": costs[PARAMS], f"multiply-accumulates at {size}": costs["macs"]},
            lineage={"taught by": source.name, "size": self.name},
            force=True,
        )
        facts = {"name": self.name, "digest": model.card.digest, **costs}
        chosen = {"chosen": asdict(self.choice), "distance": distance, "steps": self.recipe.steps}
        write_json(self.facts, facts | chosen)


def delivered(run: StageRun) -> list[Facts]:
    """Read what is known of all models that were delivered, the smallest first."""
    names = [path.stem for path in run.folder.glob("*.json") if path.name != "done.json"]
    found = [facts for name in names if (facts := read_facts(run, name)) is not None]
    return sorted(found, key=lambda facts: (facts[PARAMS], facts["name"]))


def read_facts(run: StageRun, name: str) -> Facts | None:
    """Read what is known of a delivered model; None where that is missing or damaged."""
    try:
        facts = read_json(_facts(run, name))
        ChosenChain.from_json(facts["chosen"])
        if not {"name", PARAMS, "macs", "distance", "steps"} <= facts.keys():
            return None
    except (IllegalInput, AttributeError, KeyError, TypeError):
        return None
    return {**facts, "path": str(_model(run.run, name))}  # which may have moved


def _facts(run: StageRun, name: str) -> Path:
    return run.folder / f"{name}.json"


def _model(run: PipelineRun, name: str) -> Path:
    return run.out / MODELS / name
