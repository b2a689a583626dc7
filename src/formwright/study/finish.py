"""How one design is delivered: trained longer, tested once, and written as a model that loads."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from formwright.core.errors import EvaluationFailed
from formwright.core.records import Request
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.evaluation_file import evaluation_of
from formwright.evaluate.final import Final, Verdict, as_it_is
from formwright.evaluate.training import Trainer
from formwright.nn.hf.files import is_whole
from formwright.nn.hf.save import save_pretrained_folder
from formwright.study.alone import alone_in
from formwright.study.assemble import make_final_trainer, make_teaching, make_trainer, shared_weights
from formwright.study.candidates import Candidate
from formwright.study.conclusion import score_facts
from formwright.study.delivered import MODELS, UNDELIVERED, Delivered, Undelivered, delivered, undelivered
from formwright.study.final_start import final_start, from_store
from formwright.study.identity import own_name
from formwright.study.in_time import measured_in_time, refuse_slow
from formwright.study.limits import LATENCY
from formwright.study.measured import cost_facts, counted_costs
from formwright.study.place import Opened
from formwright.study.proof import refuse_another
from formwright.train.device import choose_device
from formwright.train.prepare import prepare

FINAL = "final"  # the folder of the trainings


def deliver(opened: Opened, candidate: Candidate, after_step: Callable[[int, float], None] | None = None) -> Delivered:
    """Train a design as long as the configuration says, test it, and write it; what was delivered before is kept.

    Where another process delivers the same one, wait for it and return what it made. Raise `EvaluationFailed`, and note
    it, where the design cannot be trained that long, or misses a target that it has to keep when it is measured.
    """
    folder = opened.place.folder / FINAL / candidate.name
    if (earlier := made_before(opened, candidate)) is not None:
        refuse_slow(opened, candidate, earlier.costs)
        return earlier
    with alone_in(folder):
        context = Context(opened.config.seed, folder, after_step=after_step)
        return made_before(opened, candidate) or _train_and_write(opened, candidate, context)


def made_before(opened: Opened, candidate: Candidate) -> Delivered | None:
    """Give the model that was made of a candidate before, if any; raise `EvaluationFailed` where that failed.

    A design within several targets is the same model whichever of them it was made for.
    """
    known = undelivered(opened.log).get(candidate.card.digest)
    if known is not None:
        raise EvaluationFailed(known.reason)
    models = delivered(opened)
    earlier = [models[candidate.name]] if candidate.name in models else []
    if opened.config.targets:
        earlier += [model for model in models.values() if model.role == candidate.role]
    # a folder that somebody emptied is no model, nor is one whose configuration or weights are cut short
    same = (one for one in earlier if one.digest == candidate.card.digest and is_whole(Path(one.path)))
    return next(same, None)


def _train_and_write(opened: Opened, candidate: Candidate, context: Context) -> Delivered:
    config = opened.config
    began, trainer = time.perf_counter(), make_final_trainer(config) if config.final_steps else make_trainer(config)
    latency_ms = measured_in_time(opened, candidate)  # before it is trained and tested in vain
    try:
        verdict = _verdict(opened, candidate, trainer, context)
        verdict.model.cpu().eval()
        costs = counted_costs(opened.config, candidate.card)
        costs |= {} if latency_ms is None else {LATENCY: latency_ms}
        folder = _write(opened, candidate, trainer, verdict, costs)
        if not opened.config.final_steps:
            _prove(folder, opened, candidate)
    except EvaluationFailed as error:
        failed = Undelivered(candidate.name, candidate.role, candidate.card.digest, str(error), candidate.trial)
        _note(opened, {UNDELIVERED: asdict(failed)}, began)
        raise
    found = Delivered(
        candidate.name,
        candidate.role,
        candidate.card.digest,
        str(folder),
        params(candidate.card),
        verdict.spent.steps,
        dict(verdict.validation),
        None if verdict.test is None else dict(verdict.test),
        candidate.trial,
        costs,
        verdict.best_step,
        verdict.evidence,
    )
    _note(opened, {"model": asdict(found)}, began)
    return found


def _verdict(opened: Opened, candidate: Candidate, trainer: Trainer, context: Context) -> Verdict:
    if opened.config.final_steps:
        assert context.folder is not None
        start = final_start(opened, candidate, context.folder)
        final = Final(trainer, start, make_teaching(opened.config))
        return final.verdict(Request(candidate.card), context, test=trainer.task.has_test)
    network = shared_weights(opened.config)
    model = network.extracted(candidate.card).to(choose_device(opened.config.training.device))
    return as_it_is(model, network.prepared, context)


def _prove(folder: Path, opened: Opened, candidate: Candidate) -> None:
    """Leave nothing of a model that is not the sub-network that was judged."""
    try:
        refuse_another(folder, shared_weights(opened.config), candidate.card)
    except EvaluationFailed:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _note(opened: Opened, facts: dict[str, Any], began: float) -> None:
    opened.log.append("note", own_name(), {**facts, "spent": {"seconds": time.perf_counter() - began}})


def _write(
    opened: Opened, candidate: Candidate, trainer: Trainer, verdict: Verdict, measured: Mapping[str, float]
) -> Path:
    task, known = without_folder(trainer.task.name), verdict.evidence
    scores = score_facts(task, "validation", verdict.validation, known.get("validation"))
    scores |= score_facts(task, "test", verdict.test or {}, known.get("test"))
    prepared = prepare(trainer.task, candidate.card, trainer.training.length, trainer.tokeniser)
    tokeniser = prepared.tokeniser
    return save_pretrained_folder(
        verdict.model,
        opened.place.folder / MODELS / candidate.name,
        tokenizer=None if tokeniser is None else tokeniser.tokenizer,
        labels=trainer.task.labels if verdict.model.spec.labels > 1 else (),
        scores=scores,
        costs=cost_facts(opened, candidate.name, candidate.card, measured),
        lineage={
            "space": without_folder(opened.config.space),
            "searcher": opened.config.searcher,
            "trial": candidate.trial,
            "task": task,
            **_began(opened, candidate),
        },
        evaluation=evaluation_of(prepared, verdict.validation, verdict.test, known),
        force=True,
    )


def _began(opened: Opened, candidate: Candidate) -> dict[str, str]:
    """Tell where a model that was not begun with fresh weights has them from."""
    return {"began with": "the weights that the trials shared"} if from_store(opened, candidate) else {}


def without_folder(name: str) -> str:
    """Give a name as a model that goes out may show it: not where on this machine a file of the user's own lies."""
    return Path(name).name if Path(name).is_absolute() else name
