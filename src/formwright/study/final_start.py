"""What the last training of a design begins with: fresh weights, pretrained ones, or those that its study has."""

from dataclasses import replace
from pathlib import Path

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.evaluate.bi_branch import seed_of_words
from formwright.evaluate.context import Context
from formwright.evaluate.from_store import FromStore
from formwright.evaluate.pretrained import Pretraining
from formwright.evaluate.training import Start
from formwright.study.assemble import make_bi_branch, make_pretraining, shared_weights
from formwright.study.candidates import Candidate
from formwright.study.config import Config
from formwright.study.place import Opened
from formwright.study.replay import Replay
from formwright.study.spaces import find_space
from formwright.train.fit import fresh_model

PRETRAINING = "pretraining"  # the folder, beside the runs of a last training


def final_start(opened: Opened, candidate: Candidate, folder: Path) -> Start:
    """Give what the last training of a candidate begins with; its pretraining is saved in `folder`."""
    return _from_store(opened, folder) if from_store(opened, candidate) else make_final_start(opened.config, folder)


def from_store(opened: Opened, candidate: Candidate) -> bool:
    """Tell whether a candidate begins with what trials shared; a baseline is no design of the space, and cannot."""
    return opened.config.final_weights == "store" and candidate.role != "baseline"


def make_final_start(config: Config, folder: Path | None = None) -> Start:
    """Give what the last training of a design begins with where that follows from the configuration alone."""
    if config.evaluator == "shared":
        network = shared_weights(config)
        return lambda card, _, __: network.extracted(card)
    if config.evaluator not in ("pretrained", "bi-branch"):
        return fresh_model
    return final_pretraining(config, folder).start()


def final_pretraining(config: Config, folder: Path | None = None) -> Pretraining:
    """Make what pretrains a design before its last training.

    Designs that share weights are pretrained alone in the end, for as many steps as they are fine-tuned: the few steps
    of a trial are enough only because other trials have pretrained its weights before.
    """
    if config.evaluator == "bi-branch":
        config = replace(config, pretraining=replace(config.pretraining, steps=config.training.steps))
    return replace(
        make_pretraining(config, config.final_steps), folder=None if folder is None else folder / PRETRAINING
    )


def _from_store(opened: Opened, folder: Path) -> FromStore:
    """Give a start from the weights that all finished trials of a study have left."""
    config, replay = opened.config, Replay(find_space(opened.config.space))
    replay.feed(opened.log.read())
    context = Context(config.seed, opened.place.folder, replay.history)
    try:
        store = make_bi_branch(config).store(context)
    except EvaluationFailed as error:  # no fault of the design: the next best one would have the same
        raise IllegalInput(str(error)) from error
    return FromStore(store, final_pretraining(config, folder), seed_of_words(store, context))
