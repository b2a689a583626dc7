"""How all designs of a study are delivered, several at once."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial

from formwright.core.errors import EvaluationFailed
from formwright.core.text import printable
from formwright.pipeline.candidates import Candidate, TooSlow, candidates, within_targets
from formwright.pipeline.delivered import Delivered
from formwright.pipeline.delivery import deliver
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import FINAL, Opened, Place
from formwright.pipeline.training_steps import step_writer
from formwright.study.processes import Link, Supervisor
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
    study = opened.study()
    if opened.deliver.targets:
        # what was too slow for one target may do for others
        before = {(candidate.card.digest, candidate.keeps) for candidate in tried}
        within = within_targets(study, opened.deliver.targets)
        return [each for each in within if (each.card.digest, each.keeps) not in before]
    names = {candidate.name for candidate in tried}
    ranked = candidates(study, len(tried) + number, baseline=False)
    return [candidate for candidate in ranked if candidate.name not in names][:number]


def _place(opened: Opened, model: Delivered) -> tuple[bool, int]:
    """Put baselines last, and what is made for targets in their order."""
    targets = list(opened.deliver.targets)
    return model.role == "baseline", targets.index(model.name) if model.name in targets else 0


def _side_by_side(
    opened: Opened, chosen: Sequence[Candidate], workers: int, wish: Interruption
) -> list[Delivered | None]:
    def look() -> None:
        if wish.asked:
            raise KeyboardInterrupt

    run = opened.run.for_process()
    payloads = [partial(_deliver_at, opened.place, run, candidate) for candidate in chosen]
    found = dict(Supervisor(workers, look=look).results(payloads))
    return [found[number] for number in range(len(chosen))]


def _deliver_at(place: Place, run: PipelineRun, candidate: Candidate, _: Link) -> Delivered | None:
    with place.open(wait=True, run=run) as opened:
        try:
            return deliver(opened, candidate, step_writer(place.folder / FINAL / candidate.name))
        except TooSlow as error:
            print(printable(f"{candidate.name}: {error}; another design is tried"), file=sys.stderr, flush=True)
            return None
        except EvaluationFailed as error:
            print(printable(f"{candidate.name} cannot be delivered: {error}"), file=sys.stderr, flush=True)
            return None
