"""How all designs of a study are delivered, several at once."""

import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from formwright.core.errors import EvaluationFailed
from formwright.core.text import printable
from formwright.study.assemble import assemble
from formwright.study.candidates import Candidate, candidates, within_targets
from formwright.study.delivered import Delivered
from formwright.study.finish import FINAL, deliver
from formwright.study.launch import PAUSE, WorkersDied, end_with_launcher, one_thread_each, without_interruption
from formwright.study.place import Opened, Place
from formwright.study.steps import step_writer
from formwright.study.too_slow import TooSlow
from formwright.train.interrupt import Interruption


def deliver_all(
    opened: Opened, chosen: Sequence[Candidate], workers: int, wish: Interruption | None = None
) -> list[Delivered]:
    """Deliver several designs, in as many processes at once as there are workers.

    A wish to stop, which is looked at all the while, ends in a KeyboardInterrupt. A design whose training fails is
    noted, said on standard error, and replaced by the next best: by that within the same target, where there are
    targets. So is one that is measured beyond its target, a few times. Baselines come last.
    """
    done: dict[Candidate, Delivered] = {}
    tried: list[Candidate] = []
    while chosen:
        found = _side_by_side(opened, chosen, workers, wish or Interruption())
        done |= {each: model for each, model in zip(chosen, found, strict=True) if model is not None}
        tried += chosen
        lost = [each for each, model in zip(chosen, found, strict=True) if model is None and each.role != "baseline"]
        chosen = [*(_next_best(opened, tried, len(lost)) if lost else []), *_overwritten(done)]
    models = {model.name: model for model in done.values()}
    return sorted(models.values(), key=lambda model: _place(opened, model))


def _overwritten(done: Mapping[Candidate, Delivered]) -> list[Candidate]:
    """List the designs whose model was found in the folder of another target, which has a new model by now."""
    inside = {(model.name, model.digest) for model in done.values()}
    names = [name for name, _ in inside]
    return [each for each, model in done.items() if model.name != each.name and names.count(model.name) > 1]


def _next_best(opened: Opened, tried: Sequence[Candidate], number: int) -> list[Candidate]:
    study = assemble(opened.config, opened.log, opened.place.folder)
    if opened.config.targets:
        # what was too slow for one target may do for others
        before = {(candidate.card.digest, candidate.keeps) for candidate in tried}
        within = within_targets(study, opened.config.targets)
        return [each for each in within if (each.card.digest, each.keeps) not in before]
    names = {candidate.name for candidate in tried}
    ranked = candidates(study, len(tried) + number, baseline=False)
    return [candidate for candidate in ranked if candidate.name not in names][:number]


def _place(opened: Opened, model: Delivered) -> tuple[bool, int]:
    """Put baselines last, and what is made for targets in their order."""
    targets = list(opened.config.targets)
    return model.role == "baseline", targets.index(model.name) if model.name in targets else 0


def _side_by_side(
    opened: Opened, chosen: Sequence[Candidate], workers: int, wish: Interruption
) -> list[Delivered | None]:
    others = set(multiprocessing.active_children())
    with one_thread_each(), _pool(min(workers, len(chosen))) as pool:
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
    with place.open(wait=True) as opened:
        try:
            return deliver(opened, candidate, step_writer(place.folder / FINAL / candidate.name))
        except TooSlow as error:
            print(printable(f"{candidate.name}: {error}; another design is tried"), file=sys.stderr, flush=True)
            return None
        except EvaluationFailed as error:
            print(printable(f"{candidate.name} cannot be delivered: {error}"), file=sys.stderr, flush=True)
            return None
