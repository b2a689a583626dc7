"""What comes out of a study: the best designs, trained longer, tested once, and written as models that load."""

import multiprocessing
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.core.records import Request, Trial
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final, Verdict
from formwright.evaluate.training import Trainer
from formwright.nn.hf.folders import CARD
from formwright.nn.hf.save import save_pretrained_folder
from formwright.search.fronts import best_of
from formwright.search.scores import goals_of
from formwright.study.alone import alone_in
from formwright.study.assemble import assemble, make_trainer
from formwright.study.baseline import plain_design
from formwright.study.identity import own_name
from formwright.study.launch import PAUSE, WorkersDied, end_with_launcher, one_thread_each, without_interruption
from formwright.study.log import Log
from formwright.study.place import Opened, Place
from formwright.study.steps import step_writer
from formwright.study.study import Study
from formwright.train.interrupt import gentle_interruption
from formwright.train.prepare import prepare

Role = Literal["best", "front", "baseline"]
MODELS = "models"
FINAL = "final"  # the folder of their trainings
UNDELIVERED = "undelivered"  # the notes of final trainings that failed


@dataclass(frozen=True)
class Candidate:
    """A design to deliver, what to call it, and why it was chosen."""

    name: str
    role: Role
    card: Card
    trial: int | None = None


@dataclass(frozen=True)
class Delivered:
    """A model that was trained, tested and written."""

    name: str
    role: Role
    digest: str
    path: str
    params: int
    steps: int
    validation: Mapping[str, float]
    test: Mapping[str, float] | None
    trial: int | None


@dataclass(frozen=True)
class Undelivered:
    """A design whose final training failed, and why; it would fail again, and is not tried again."""

    name: str
    role: Role
    digest: str
    reason: str
    trial: int | None


def candidates(study: Study, keep: int, *, baseline: bool = True) -> list[Candidate]:
    """Choose the designs to deliver: the best ones or, with several goals, those of the front.

    Of a front the first is the best in the first goal, and the others are the least crowded. Designs that are known to
    fail are left out.
    """
    failed = undelivered(study.log)
    chosen = [trial for trial in best_of(study.history(), study.objectives) if trial.request.card.digest not in failed]
    role: Role = "front" if len(goals_of(study.objectives)) > 1 else "best"
    found = [Candidate(f"trial-{trial.number}", role, _card(trial), trial.number) for trial in chosen[:keep]]
    if baseline and found and len(found[0].card.stacks) == 1:
        plain = plain_design(found[0].card)
        found += [Candidate("baseline", "baseline", plain)] if plain.digest not in failed else []
    return found


def _card(trial: Trial) -> Card:
    assert isinstance(trial.request.card, Card)
    return trial.request.card


def delivered(opened: Opened) -> dict[str, Delivered]:
    """Read from the log which models have been delivered, by name."""
    notes = [event.data["model"] for event in opened.log.read() if event.kind == "note" and "model" in event.data]
    models = opened.place.folder / MODELS  # which may have moved, or be named from elsewhere, since the note was made
    return {note["name"]: Delivered(**note | {"path": str(models / note["name"])}) for note in notes}


def undelivered(log: Log) -> dict[str, Undelivered]:
    """Read from the log which designs could not be delivered, by digest."""
    notes = [event.data.get(UNDELIVERED) for event in log.read() if event.kind == "note"]
    return {note["digest"]: Undelivered(**note) for note in notes if note is not None}


def deliver(opened: Opened, candidate: Candidate, after_step: Callable[[int, float], None] | None = None) -> Delivered:
    """Train a design as long as the configuration says, test it, and write it; what was delivered before is kept.

    Where another process delivers the same one, wait for it and return what it made. Raise `EvaluationFailed`, and note
    it, where the design cannot be trained that long.
    """
    folder = opened.place.folder / FINAL / candidate.name
    if (earlier := _kept(opened, candidate)) is not None:
        return earlier
    with alone_in(folder):
        context = Context(opened.config.seed, folder, after_step=after_step)
        return _kept(opened, candidate) or _train_and_write(opened, candidate, context)


def _kept(opened: Opened, candidate: Candidate) -> Delivered | None:
    """Give the model that was made of a candidate before, if any; raise what was raised before."""
    known = undelivered(opened.log).get(candidate.card.digest)
    if known is not None:
        raise EvaluationFailed(known.reason)
    earlier = delivered(opened).get(candidate.name)
    same = earlier is not None and earlier.digest == candidate.card.digest and Path(earlier.path).is_dir()
    return earlier if same else None


def _train_and_write(opened: Opened, candidate: Candidate, context: Context) -> Delivered:
    began, trainer = time.perf_counter(), make_trainer(opened.config, opened.config.final_steps)
    try:
        verdict = Final(trainer).verdict(Request(candidate.card), context, test=trainer.task.has_test)
    except EvaluationFailed as error:
        failed = Undelivered(candidate.name, candidate.role, candidate.card.digest, str(error), candidate.trial)
        _note(opened, {UNDELIVERED: asdict(failed)}, began)
        raise
    found = Delivered(
        candidate.name,
        candidate.role,
        candidate.card.digest,
        str(_write(opened, candidate, trainer, verdict)),
        params(candidate.card),
        opened.config.final_steps,
        dict(verdict.validation),
        None if verdict.test is None else dict(verdict.test),
        candidate.trial,
    )
    _note(opened, {"model": asdict(found)}, began)
    return found


def _note(opened: Opened, facts: dict[str, Any], began: float) -> None:
    opened.log.append("note", own_name(), {**facts, "spent": {"seconds": time.perf_counter() - began}})


def _write(opened: Opened, candidate: Candidate, trainer: Trainer, verdict: Verdict) -> Path:
    scores = {f"validation {name}": value for name, value in verdict.validation.items()}
    scores |= {f"test {name}": value for name, value in (verdict.test or {}).items()}
    task = _without_folder(trainer.task.name)
    tokeniser = prepare(trainer.task, candidate.card, trainer.training.length).tokeniser
    return save_pretrained_folder(
        verdict.model.cpu().eval(),
        opened.place.folder / MODELS / candidate.name,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=trainer.task.labels if verdict.model.spec.labels > 1 else (),
        scores={f"{task} {name}": value for name, value in scores.items()},
        lineage={
            "space": _without_folder(opened.config.space),
            "searcher": opened.config.searcher,
            "trial": candidate.trial,
            "task": task,
        },
        force=True,
    )


def _without_folder(name: str) -> str:
    """Give a name as a model that goes out may show it: not where on this machine a file of the user's own lies."""
    return Path(name).name if Path(name).is_absolute() else name


def deliver_all(opened: Opened, chosen: Sequence[Candidate], workers: int) -> list[Delivered]:
    """Deliver several designs, in as many processes at once as there are workers; Ctrl-C is a KeyboardInterrupt.

    One whose training fails is noted, said on standard error, and replaced by the next best. Baselines come last.
    """
    models: list[Delivered] = []
    tried: set[str] = set()
    while chosen:
        found = _side_by_side(opened, chosen, workers)
        models += [model for model in found if model is not None]
        tried |= {candidate.name for candidate in chosen}
        lost = [each for each, model in zip(chosen, found, strict=True) if model is None and each.role != "baseline"]
        chosen = _next_best(opened, tried, len(lost)) if lost else []
    return sorted(models, key=lambda model: model.role == "baseline")


def _next_best(opened: Opened, tried: Collection[str], number: int) -> list[Candidate]:
    study = assemble(opened.config, opened.log, opened.place.folder)
    ranked = candidates(study, len(tried) + number, baseline=False)
    return [candidate for candidate in ranked if candidate.name not in tried][:number]


def _side_by_side(opened: Opened, chosen: Sequence[Candidate], workers: int) -> list[Delivered | None]:
    others = set(multiprocessing.active_children())
    with one_thread_each(), gentle_interruption() as wish, _pool(min(workers, len(chosen))) as pool:
        with without_interruption():
            futures = [pool.submit(_deliver_at, opened.place, candidate) for candidate in chosen]
        try:
            while _left(futures) and not wish.asked:
                pass
            if wish.asked:
                raise KeyboardInterrupt
            return [future.result() for future in futures]
        except BaseException as error:
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            if isinstance(error, BrokenProcessPool):
                raise WorkersDied("a process that trained a model died; is memory short?") from None
            raise


def _pool(size: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(size, multiprocessing.get_context("spawn"), initializer=end_with_launcher)


def _left(futures: Sequence[Future[Delivered | None]]) -> bool:
    """Wait a moment, and tell whether any is left to wait for; raise what one of them raised."""
    done, left = wait(futures, timeout=PAUSE, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return bool(left)


def _deliver_at(place: Place, candidate: Candidate) -> Delivered | None:
    with place.open() as opened:
        try:
            return deliver(opened, candidate, step_writer(place.folder / FINAL / candidate.name))
        except EvaluationFailed as error:
            print(f"{candidate.name} cannot be delivered: {error}", file=sys.stderr, flush=True)
            return None


def card_of_model(model: Delivered) -> Card:
    """Read the card of a delivered model."""
    return Card.loads((Path(model.path) / CARD).read_bytes())
