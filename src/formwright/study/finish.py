"""What comes out of a study: the best designs, trained longer, tested once, and written as models that load."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from formwright.arch.card import Card
from formwright.core.records import Request, Trial
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final
from formwright.nn.hf.folders import CARD
from formwright.nn.hf.save import save_pretrained_folder
from formwright.search.fronts import best_first, front, longest
from formwright.search.scores import score
from formwright.study.assemble import make_trainer
from formwright.study.baseline import plain_design
from formwright.study.identity import own_name
from formwright.study.launch import PAUSE, WorkersDied, end_with_launcher, one_thread_each, without_interruption
from formwright.study.place import Opened, Place
from formwright.study.study import Study
from formwright.train.interrupt import gentle_interruption
from formwright.train.prepare import prepare

Role = Literal["best", "front", "baseline"]
MODELS = "models"


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


def candidates(study: Study, keep: int, *, baseline: bool = True) -> list[Candidate]:
    """Choose the designs to deliver: the best ones or, with several goals, the least crowded of the front."""
    chosen = _best(study, keep)
    several = sum(objective.bound is None for objective in study.objectives) > 1
    role: Role = "front" if several else "best"
    found = [Candidate(f"trial-{trial.number}", role, _card(trial), trial.number) for trial in chosen]
    if baseline and found and len(found[0].card.stacks) == 1:
        found.append(Candidate("baseline", "baseline", plain_design(found[0].card)))
    return found


def _best(study: Study, keep: int) -> list[Trial]:
    history = study.history()
    several = sum(objective.bound is None for objective in study.objectives) > 1
    trials = front(history, study.objectives) if several else longest(history.finished)
    if not trials:
        return []
    scores = score(trials, study.objectives)
    order = [index for index in best_first(scores) if scores.violations[index] == 0]
    return [trials[index] for index in order[:keep]]


def _card(trial: Trial) -> Card:
    assert isinstance(trial.request.card, Card)
    return trial.request.card


def delivered(opened: Opened) -> dict[str, Delivered]:
    """Read from the log which models have been delivered, by name."""
    notes = [event.data["model"] for event in opened.log.read() if event.kind == "note" and "model" in event.data]
    models = opened.place.folder / MODELS  # which may have moved, or be named from elsewhere, since the note was made
    return {note["name"]: Delivered(**note | {"path": str(models / note["name"])}) for note in notes}


def deliver(opened: Opened, candidate: Candidate, after_step: Callable[[int, float], None] | None = None) -> Delivered:
    """Train a design as long as the configuration says, test it, and write it; what was delivered before is kept."""
    earlier = delivered(opened).get(candidate.name)
    if earlier is not None and earlier.digest == candidate.card.digest and Path(earlier.path).is_dir():
        return earlier
    config, folder = opened.config, opened.place.folder
    trainer = make_trainer(config, config.final_steps)
    verdict = Final(trainer).verdict(
        Request(candidate.card),
        Context(config.seed, folder / "final" / candidate.name, after_step=after_step),
        test=trainer.task.has_test,
    )
    scores: dict[str, Any] = {f"validation {name}": value for name, value in verdict.validation.items()}
    scores |= {f"test {name}": value for name, value in (verdict.test or {}).items()}
    prepared = prepare(trainer.task, candidate.card, trainer.training.length)
    tokeniser = prepared.tokeniser
    path = save_pretrained_folder(
        verdict.model.cpu().eval(),
        folder / MODELS / candidate.name,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=trainer.task.labels if verdict.model.spec.labels > 1 else (),
        scores={f"{trainer.task.name} {name}": value for name, value in scores.items()},
        lineage={
            "space": config.space,
            "searcher": config.searcher,
            "trial": candidate.trial,
            "task": trainer.task.name,
        },
        force=True,
    )
    found = Delivered(
        candidate.name,
        candidate.role,
        candidate.card.digest,
        str(path),
        params(candidate.card),
        config.final_steps,
        dict(verdict.validation),
        None if verdict.test is None else dict(verdict.test),
        candidate.trial,
    )
    opened.log.append("note", own_name(), {"model": asdict(found)})
    return found


def deliver_all(opened: Opened, chosen: Sequence[Candidate], workers: int) -> list[Delivered]:
    """Deliver several designs, in as many processes at once as there are workers; Ctrl-C is a KeyboardInterrupt."""
    if not chosen:
        return []
    others = set(multiprocessing.active_children())
    size = min(workers, len(chosen))
    with one_thread_each(), gentle_interruption() as wish, _pool(size) as pool:
        with without_interruption():
            futures = [pool.submit(_deliver_at, opened.place, candidate) for candidate in chosen]
        try:
            while _left(futures):
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


def _left(futures: Sequence[Future[Delivered]]) -> bool:
    """Wait a moment, and tell whether any is left to wait for; raise what one of them raised."""
    done, left = wait(futures, timeout=PAUSE, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return bool(left)


def _deliver_at(place: Place, candidate: Candidate) -> Delivered:
    with place.open() as opened:
        return deliver(opened, candidate)


def card_of_model(model: Delivered) -> Card:
    """Read the card of a delivered model."""
    return Card.loads((Path(model.path) / CARD).read_bytes())
