"""How designs of a study are delivered: trained, tested, proven and written, several at once."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.core.records import Request
from formwright.core.text import printable
from formwright.evaluate.context import Context
from formwright.evaluate.final import Final, Verdict, score_without_training
from formwright.evaluate.shared import SharedWeights
from formwright.evaluate.training import Trainer
from formwright.nn.build import skeleton
from formwright.nn.hf.checkpoint_files import is_whole
from formwright.nn.hf.save import load_folder
from formwright.nn.inherit import run
from formwright.nn.task_model import TaskModel
from formwright.pipeline.chosen_designs import Candidate, candidates, within_targets
from formwright.pipeline.delivered import MODELS, UNDELIVERED, Delivered, Undelivered, delivered, undelivered
from formwright.pipeline.evaluators import Weights
from formwright.pipeline.measure_models import (
    TargetMissed,
    check_targets,
    cost_facts,
    counted_costs,
    measured_before,
    measured_limits,
)
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import FINAL
from formwright.pipeline.study_place import Opened, Place
from formwright.pipeline.task_models import name_without_folder, write_task_model
from formwright.pipeline.units import step_writer
from formwright.study.folder_lock import alone_in
from formwright.study.identity import own_name
from formwright.study.processes import Link, Supervisor
from formwright.train.device import choose_device
from formwright.train.interrupt import Interruption
from formwright.train.judge import batch_of
from formwright.train.loop import inputs_of, scores_of
from formwright.train.prepare import prepare

_ROWS = 32  # validation rows on which a written model is compared with its sub-network
LARGEST_DIFFERENCE = 1e-5


def deliver(opened: Opened, candidate: Candidate, after_step: Callable[[int, float], None] | None = None) -> Delivered:
    """Train a design as long as the configuration says, test it, and write it; what was delivered before is kept.

    Where another process delivers the same one, wait for it and return what it made. Raise `EvaluationFailed`, and note
    it, where the design cannot be trained that long, or misses a target that it has to keep when it is measured.
    """
    folder = opened.place.folder / FINAL / candidate.name
    if (earlier := made_before(opened, candidate)) is not None:
        check_targets(opened, candidate, earlier.costs)
        return earlier
    with alone_in(folder):
        context = Context(opened.search.seed, folder, after_step=after_step)
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
    if opened.deliver.targets:
        earlier += [model for model in models.values() if model.role == candidate.role]
    # a folder that somebody emptied is no model, nor is one whose configuration or weights are cut short
    same = (one for one in earlier if one.digest == candidate.card.digest and is_whole(Path(one.path)))
    return next(same, None)


def _train_and_write(opened: Opened, candidate: Candidate, context: Context) -> Delivered:
    began, trainer = time.perf_counter(), trainer_of(opened)
    measured = measured_before(opened, candidate)

    def note(facts: dict[str, Any]) -> None:
        opened.log.append("note", own_name(), {**facts, "spent": {"seconds": time.perf_counter() - began}})

    try:
        measured |= measured_limits(opened, candidate)
        verdict = _verdict(opened, candidate, trainer, context)
        costs = counted_costs(opened, candidate.card) | measured
        folder = _write(opened, candidate, trainer, verdict, costs)
    except EvaluationFailed as error:
        failed = Undelivered(candidate.name, candidate.role, candidate.card.digest, str(error), candidate.trial)
        note({UNDELIVERED: asdict(failed)})
        raise
    found = Delivered.of(verdict, candidate.name, candidate.role, folder, costs, candidate.trial)
    note({"model": asdict(found)})
    return found


def trainer_of(opened: Opened) -> Trainer:
    """Give what trains a delivered design: longer, judged in between, and the best weights are kept."""
    steps = opened.deliver.steps
    setting = opened.search.setting(opened.here, quickly=not steps)
    if not steps:
        return setting.trainer
    trainer = setting.for_steps(steps).trainer
    rows = len(trainer.task.search_view().validation)
    return replace(trainer, training=trainer.training.stopping_early(rows))


def _network(opened: Opened) -> SharedWeights:
    """Give the shared weights of a search whose designs are sub-networks, read once."""
    found: SharedWeights = opened.here.artifact(opened.search.evaluator.weights)  # type: ignore[union-attr]
    return found


def _begins_shared(opened: Opened, candidate: Candidate) -> bool:
    """Tell whether a candidate begins with what trials shared; a baseline is not from the space, and cannot."""
    return opened.deliver.weights == "shared" and candidate.role != "baseline"


def _verdict(opened: Opened, candidate: Candidate, trainer: Trainer, context: Context) -> Verdict:
    stage, search = opened.deliver, opened.search
    if not stage.steps:
        network = _network(opened)
        model = network.extracted(candidate.card).to(choose_device(search.training.device))
        return score_without_training(model, network.prepared, context)
    assert context.folder is not None
    assert search.evaluator is not None
    setting, history = search.setting(opened.here, quickly=False), opened.study().history()
    weights: Weights = "shared" if _begins_shared(opened, candidate) else "fresh"
    start = search.evaluator.start(setting, stage.steps, weights, context.folder, history)
    final = Final(trainer, start, stage.teaching(opened.here))
    return final.verdict(Request(candidate.card), context, test=trainer.task.has_test)


def _write(
    opened: Opened, candidate: Candidate, trainer: Trainer, verdict: Verdict, measured: Mapping[str, float]
) -> Path:
    """Write a model; leave nothing of one that was not trained and is not the sub-network that was judged."""
    search, folder = opened.search, opened.place.folder / MODELS / candidate.name
    space = search.space if isinstance(search.space, str) else getattr(search.space, "name", None) or search.space.NAME
    lineage = {
        "space": name_without_folder(str(space)),
        "searcher": "" if search.searcher is None else search.searcher.name,
        **({} if candidate.trial is None else {"trial": candidate.trial}),
    }
    if _begins_shared(opened, candidate):
        lineage["began with"] = "the weights that the trials shared"
    prepared = prepare(trainer.task, candidate.card, trainer.training.length, trainer.tokeniser)
    scores = {"validation": verdict.validation} | ({} if verdict.test is None else {"test": verdict.test})
    costs = cost_facts(opened, candidate.name, candidate.card, measured)
    write_task_model(verdict.model, prepared, folder, lineage, scores, verdict.evidence, costs)
    if not opened.deliver.steps:
        try:
            refuse_another(folder, _network(opened), candidate.card)
        except EvaluationFailed:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def refuse_another(folder: Path, network: SharedWeights, card: Card) -> float:
    """Compare what a folder's model and the sub-network say to some validation rows; give the largest difference.

    The sub-network answers through views of the super-network's weights, the model through weights of its own.
    """
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    prepared = network.prepared
    rows = np.arange(min(_ROWS, len(prepared.validation.examples)))
    batch = batch_of(prepared, prepared.validation, rows)
    part = skeleton(card, network.model.settings, network.model.spec).eval()
    with torch.inference_mode():
        wanted = run(part, network.views(card), *inputs_of(batch))
        found = scores_of(model.eval(), batch)
    difference = float((found - wanted).abs().max())
    if not difference <= LARGEST_DIFFERENCE * max(1.0, float(wanted.abs().max())):  # also refuses what is no number
        raise EvaluationFailed(f"the model in {folder} differs from its sub-network by {difference:g}")
    return difference


def deliver_all(
    opened: Opened, chosen: Sequence[Candidate], workers: int, interruption: Interruption | None = None
) -> list[Delivered]:
    """Deliver several designs, in as many processes at once as there are workers.

    A request to stop, which is checked all the while, raises KeyboardInterrupt. A design whose training fails is
    noted, said on standard error, and replaced by the next best: by that within the same target, where there are
    targets. So is one that is measured beyond its target, a few times. Baselines come last.
    """
    done: dict[Candidate, Delivered] = {}
    tried: list[Candidate] = []
    while chosen:
        found = _side_by_side(opened, chosen, workers, interruption or Interruption())
        done |= {each: model for each, model in zip(chosen, found, strict=True) if model is not None}
        tried += chosen
        lost = [each for each, model in zip(chosen, found, strict=True) if model is None and each.role != "baseline"]
        chosen = [*(_next_best(opened, tried, len(lost)) if lost else []), *_overwritten(done)]
    targets = list(opened.deliver.targets)
    models = {model.name: model for model in done.values()}.values()
    return sorted(models, key=lambda one: (one.role == "baseline", one.name in targets and targets.index(one.name)))


def _overwritten(done: Mapping[Candidate, Delivered]) -> list[Candidate]:
    """List the designs whose model was found in the folder of another target, which has a new model by now."""
    inside = {(model.name, model.digest) for model in done.values()}
    names = [name for name, _ in inside]
    return [each for each, model in done.items() if model.name != each.name and names.count(model.name) > 1]


def _next_best(opened: Opened, tried: Sequence[Candidate], number: int) -> list[Candidate]:
    study = opened.study()
    if opened.deliver.targets:
        # what misses one target may do for others
        before = {(candidate.card.digest, candidate.keeps) for candidate in tried}
        within = within_targets(study, opened.deliver.targets)
        return [each for each in within if (each.card.digest, each.keeps) not in before]
    names = {candidate.name for candidate in tried}
    ranked = candidates(study, len(tried) + number, baseline=False)
    return [candidate for candidate in ranked if candidate.name not in names][:number]


def _side_by_side(
    opened: Opened, chosen: Sequence[Candidate], workers: int, interruption: Interruption
) -> list[Delivered | None]:
    def look() -> None:
        if interruption.asked:
            raise KeyboardInterrupt

    def here(candidate: Candidate) -> Delivered | None:
        look()
        return deliver_or_say(opened, candidate)

    if not opened.deliver.steps:  # nothing is trained: all are cut out of the super-network that this process has read
        return [here(candidate) for candidate in chosen]
    run = opened.run.for_process()
    payloads = [partial(_deliver_at, opened.place, run, candidate) for candidate in chosen]
    found = dict(Supervisor(workers, look=look).results(payloads))
    return [found[number] for number in range(len(chosen))]


def _deliver_at(place: Place, run: PipelineRun, candidate: Candidate, _: Link) -> Delivered | None:
    with place.open(wait=True, run=run) as opened:
        return deliver_or_say(opened, candidate)


def deliver_or_say(opened: Opened, candidate: Candidate) -> Delivered | None:
    """Deliver a design; where that fails, say why on standard error."""
    try:
        return deliver(opened, candidate, step_writer(opened.place.folder / FINAL / candidate.name))
    except EvaluationFailed as error:
        detail = f"{candidate.name} cannot be delivered: {error}"
        if isinstance(error, TargetMissed):
            detail = f"{candidate.name}: {error}; another design is tried"
        print(printable(detail), file=sys.stderr, flush=True)
        return None
