"""Prove that a folder that was written holds the very sub-network that was judged."""

from pathlib import Path

import numpy as np
import torch

from formwright.arch.card import Card
from formwright.core.errors import EvaluationFailed
from formwright.evaluate.shared import SharedWeights
from formwright.nn.build import skeleton
from formwright.nn.hf.save import load_folder
from formwright.nn.inherit import inherit, run
from formwright.nn.task_model import TaskModel
from formwright.train.judge import batch_of

_ROWS = 32
LARGEST_DIFFERENCE = 1e-5


def refuse_another(folder: Path, network: SharedWeights, card: Card) -> float:
    """Compare what a folder's model and the sub-network say to some validation rows; give the largest difference.

    The sub-network answers through views of the super-network's weights, the model through weights of its own.
    """
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    prepared = network.prepared
    rows = np.arange(min(_ROWS, len(prepared.validation.examples)))
    batch = batch_of(prepared, prepared.validation, rows)
    whole = dict(network.model.named_parameters())
    views = inherit(whole, network.card, card, head=network.model.spec)
    part = skeleton(card, network.model.transformer.settings, network.model.spec).eval()
    with torch.inference_mode():
        wanted = run(part, views, batch.inputs, batch.mask, batch.types)
        found = model.eval()(batch.inputs, batch.mask, batch.types)
    difference = float((found - wanted).abs().max())
    if not difference <= LARGEST_DIFFERENCE * max(1.0, float(wanted.abs().max())):  # also refuses what is no number
        raise EvaluationFailed(f"the model in {folder} differs from its sub-network by {difference:g}")
    return difference
