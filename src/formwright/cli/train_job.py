"""What `formwright train` does: everything between its options and its answer."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from formwright.cli.conduct import conducted
from formwright.cli.output import note, report_cut
from formwright.cli.record import Identity
from formwright.cli.task_options import print_warnings
from formwright.core.errors import IllegalInput
from formwright.train.interrupt import Interruption, gentle_interruption

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from formwright.cli.train_start import Start
    from formwright.evaluate.final import Tested
    from formwright.tasks.evidence import Evidence
    from formwright.tasks.task import Task
    from formwright.train.distil import Teaching
    from formwright.train.fit import Trained, Training
    from formwright.train.prepare import Prepared
    from formwright.train.recipe import Decay, Recipe

_USUAL_STEPS = 300
_MOST_EPOCHS = 1e9


@dataclass(frozen=True)
class Finished:
    """What a run came to, as JSON facts."""

    facts: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Hold everything that decides what a run comes to. Two runs with equal jobs are one run.

    `beams` decides only how a model is judged that writes; a run that is finished can be judged with others.
    `length` is None where the data decide it.
    """

    source: str
    task: str
    data: str | None
    text: tuple[str, ...]
    label: str
    official_dev: bool
    rows: int | None
    steps: int | None
    epochs: float | None
    batch: int
    accumulate: int
    length: int | None
    learning_rate: float | None
    warmup: float
    decay: str
    weight_decay: float
    dropout: float | None
    judge_every: int | None
    patience: int | None
    pretrain: str | None
    pretrain_steps: int
    next_sentence: bool
    seed: int
    device: str
    threads: int
    distil_from: str | None = None
    distil_labels: float = 0.5
    distil_hidden: float = 1.0
    beams: int = 1
    task_kind: str = ""

    @property
    def usual_folder(self) -> Path:
        """Name the folder of a run whose user named none."""
        task = Path(self.task)
        words = [Path(self.source).stem, *task.parent.parts, task.stem]
        return Path("trained") / "-".join(word for word in words if word.strip("./\\"))

    def run(self, out: Path, save_every: int, *, test: bool, force: bool) -> Finished:
        """Do the job, going on where an earlier run of the same job was stopped."""
        from formwright.cli.train_start import begin, read_task
        from formwright.tasks.row_length import PIECES
        from formwright.train.device import choose_device
        from formwright.train.prepare import cut_rows

        for name in (self.source, self.task, str(out)):
            _refuse_half_letters(name)
        choose_device(self.device)
        task = read_task(self)
        print_warnings(task)
        start = begin(self, task)
        if test:
            _refuse_untestable(task, out)
        # a number from here on, so that the record says it and a run that is resumed keeps it
        job = self if self.length is not None else replace(self, length=start.prepared.length or PIECES)
        report_cut(cut_rows(start.prepared, start.card), is_default=self.length is None)
        return job._finish(start, out, save_every, test=test, force=force)

    def _finish(self, start: "Start", out: Path, save_every: int, *, test: bool, force: bool) -> Finished:
        from formwright.evaluate.final import RECORD as OPENINGS
        from formwright.evaluate.row_tables import evidence_of
        from formwright.train.fit import fit
        from formwright.train.written import with_beams

        start = replace(start, prepared=with_beams(start.prepared, self.beams))
        training = self._training(start)
        self._tell_shorter(start.prepared.length)
        identity = Identity(self._options, start.digests())
        with gentle_interruption() as wish:
            identity.claim(out, force, kept=OPENINGS)
            check = partial(identity.check, out)
            pretrained = self._pretrained(start, training, out, save_every, wish, check)
            model = start.model(training, pretrained)
            with conducted("training", out / "checkpoints", training.recipe.steps, save_every, wish, check) as run:
                trained = fit(model, start.prepared, training, run, self._teaching(start))
        check()
        name = f"{start.name}-{identity.digest[:16]}" + (f"-{self.beams}-beams" if self.beams > 1 else "")
        tested = _tested(trained.model, start.prepared, name, out, self.threads) if test else None
        prepared = start.prepared
        evidence = {"validation": evidence_of(trained.metrics, trained.tables, prepared, prepared.validation)}
        evidence |= {} if tested is None else {"test": tested.evidence}
        folder = start.save(trained.model, out / "model", trained.metrics, tested, evidence)
        return Finished(self._facts(start, training, trained, tested, evidence, folder))

    @property
    def _options(self) -> dict[str, Any]:
        """Give what decides what is learnt; what is said of a teacher counts only where there is one."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name != "beams" and (self.distil_from or not name.startswith("distil"))
        }

    def _teaching(self, start: "Start") -> "Teaching | None":
        from formwright.train.distil import Mix, Teaching

        if start.teacher is None:
            return None
        return Teaching(start.teacher.model(), Mix(self.distil_labels, 1 - self.distil_labels, self.distil_hidden))

    def recipe(self, prepared: "Prepared", *, from_scratch: bool) -> "Recipe":
        """Turn the options into a recipe."""
        from formwright.train.recipe import FINAL_EPOCHS, Recipe, usual_last_steps, usual_steps
        from formwright.train.streams import lengths_of

        rows, size = len(prepared.train.examples), self.batch * self.accumulate
        steps = self.steps or usual_last_steps(usual_steps(_USUAL_STEPS, rows, size, FINAL_EPOCHS), rows, size)
        if self.epochs is not None:
            if not 0 < self.epochs <= _MOST_EPOCHS:
                raise IllegalInput(f"--epochs must be a number above 0, at most {_MOST_EPOCHS:g}, not {self.epochs}")
            steps = self._updates(self.epochs, lengths_of(prepared.train.examples))
        return Recipe(
            steps,
            self.batch,
            self._usual_rate(from_scratch) if self.learning_rate is None else self.learning_rate,
            self.warmup,
            cast("Decay", self.decay),
            self.weight_decay,
            accumulate=self.accumulate,
            seed=self.seed,
        )

    def _usual_rate(self, from_scratch: bool) -> float:
        # the higher rate of short trainings keeps masked-LM pretraining from learning more than how frequent words are
        return 5e-5 if not from_scratch else 1e-3 if self.pretrain is None else 3e-4

    def _tell_shorter(self, length: int) -> None:
        if self.length is not None and 0 < length < self.length:  # images have no length
            note(f"rows have at most {length} tokens, not {self.length}: the design reads no more")

    def _updates(self, epochs: float, lengths: "NDArray[np.int64]") -> int:
        """Count the updates after which so many epochs are over; the last one may reach into the next epoch."""
        from formwright.train.streams import Shuffled

        batches = epochs * Shuffled(lengths, self.batch, self.seed).batches_per_epoch
        # a share of an epoch that comes to whole batches but for the last digit of a float is no batch more
        return max(math.ceil(round(batches / self.accumulate, 6)), 1)

    def _training(self, start: "Start") -> "Training":
        from formwright.train.fit import Training
        from formwright.train.recipe import FRESH_DROPOUT, PRETRAINED_DROPOUT

        usual = FRESH_DROPOUT if start.from_scratch else PRETRAINED_DROPOUT
        training = Training(
            self.recipe(start.prepared, from_scratch=start.from_scratch),
            self.length or start.prepared.length,
            replace(start.settings, dropout=usual if self.dropout is None else self.dropout),
            device=self.device,
            threads=self.threads,
        )
        if self.judge_every == 0:
            return training
        training = training.stopping_early(len(start.prepared.validation.examples))
        if self.judge_every is not None:
            training = replace(training, judge_every=self.judge_every)
        if self.patience is None:
            return training
        if training.judge_every is None:
            raise IllegalInput(
                "--patience counts evaluations in between, and there are none by default: validation has many rows; "
                "give --judge-every"
            )
        return replace(training, patience=self.patience, least=0)

    def _pretrained(
        self,
        start: "Start",
        training: "Training",
        out: Path,
        save_every: int,
        wish: Interruption,
        check: Callable[[], None],
    ) -> Any:
        """Pretrain where that is wanted, and give the weights."""
        if self.pretrain is None:
            return None
        from formwright.train.pretrain import pretrain

        recipe = replace(training.recipe, steps=self.pretrain_steps)
        training = replace(training, recipe=recipe, judge_every=None)
        with conducted("pretraining", out / "pretraining", recipe.steps, save_every, wish, check) as run:
            weights, _ = pretrain(
                start.card,
                start.pretraining_text,
                start.prepared.text_tokeniser,
                training,
                run,
                next_sentence=self.next_sentence,
            )
        return weights

    def _facts(
        self,
        start: "Start",
        training: "Training",
        trained: "Trained",
        tested: "Tested | None",
        evidence: "dict[str, Evidence]",
        folder: Path,
    ) -> dict[str, Any]:
        from formwright.cost import params
        from formwright.study.conclusion import score_line
        from formwright.train.prepare import cut_rows

        metric = start.prepared.task.metric
        split, scores = ("validation", trained.metrics) if tested is None else ("test", tested.metrics)

        return {
            "name": start.name,
            "digest": start.card.digest,
            "params": params(start.card),
            "card": start.card.to_json(),
            "task": start.prepared.task.name,
            "steps": len(trained.losses),
            "best_step": trained.best_step,
            "losses": trained.losses,
            "metrics": dict(trained.metrics),
            "test": None if tested is None else dict(tested.metrics),
            "evidence": {split: asdict(known) for split, known in evidence.items()},
            "conclusion": [f"{start.name}: {score_line(metric, split, scores[metric], evidence[split])}"],
            "beams": self.beams,
            "padding": start.padding(training.recipe),
            "length": start.prepared.length,
            "cut": 0.0 if (cut := cut_rows(start.prepared, start.card)) is None else cut.share,
            "recipe": asdict(training.recipe),
            "seconds": trained.seconds,
            "model": str(folder),
        }


def _refuse_half_letters(name: str) -> None:
    """Refuse, before any work, a name that neither the model card nor the files of a tokenizer can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise IllegalInput(f"the name {name!r} is not text in UTF-8; give the file or folder another name") from None


def _tested(model: Any, prepared: "Prepared", name: str, out: Path, number: int) -> "Tested":
    from formwright.evaluate.final import test_once
    from formwright.train.device import threads

    with threads(number):
        return test_once(model, prepared, name, out)


def _refuse_untestable(task: "Task", out: Path) -> None:
    from formwright.evaluate.final import refuse_untestable

    refuse_untestable(task, out)
