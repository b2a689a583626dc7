"""SPOS (Guo et al., 2020): one super-network trained one random design a step, searched by evolution.

"Single Path One-Shot Neural Architecture Search with Uniform Sampling". What differs from the paper, and why:

- Designs are vision transformers of the nano size, whose smaller versions are slices of the largest, as in AutoFormer
  (Chen et al. 2021); the paper's choice blocks are separate convolutions of a ShuffleNet.
- Depth is a choice too, and is drawn uniformly like the others.
- There are 2,000 steps of the super-network and 100 trials, with a population of a tenth of them; the paper has 120
  epochs of ImageNet and 20 generations of 50 designs.
- Evolution rebuilds its population at each proposal, so that workers need not wait for a generation. A child is crossed
  and mutated; in the paper it is one of both. A design's evaluation stops early once a finished one is significantly
  better.
- Statistics of batch normalisation are not recomputed before a design is judged: these designs have none.
- Designs are judged on validation rows that are held out of training, and the winner on test rows once.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import OF_PICTURES, chosen_space, search_subnetworks, with_start
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform


@recipe(
    "spos",
    "one super-network by uniform sampling, evolution with its weights, retraining (SPOS, Guo et al. 2020)",
    paper="Guo et al. 2020, Single Path One-Shot NAS",
    needs="a task that the designs of the space can read",
    meanings={"space": OF_PICTURES},
    takes="1 minute of one core for the builtin task digits",
)
@with_start
def spos(
    task: TaskChoice,
    *,
    space: Any = None,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    seed: int = 0,
) -> Pipeline:
    """Train shared weights one random design a step, search with them, and train the winner from scratch."""
    shared = TrainShared(chosen_space(space, task), task, Uniform(), Labels(), steps, seed=seed)
    return search_subnetworks(shared, trials, limits, weights="fresh")
