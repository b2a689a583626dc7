"""AutoFormer (Chen et al., 2021): vision transformers of all sizes in one set of entangled weights.

"AutoFormer: Searching Transformers for Visual Recognition". What differs from the paper, and why:

- Designs have the nano sizes, so that the super-network is trained in minutes on a CPU: heads are 8 or 16 wide, not 64,
  and images have 8, 28 or 32 pixels a side. `formwright search autoformer-tiny --recipe autoformer` has the published
  sizes.
- There are 3,000 steps of 64 images; the paper has 500 epochs of ImageNet with the augmentations of DeiT, none of which
  are made here.
- Evolution rebuilds its population of 50 at each proposal, so that workers need not wait for a generation. Parents win
  binary tournaments in it; nine children of ten are crossed, and all have one choice mutated. The authors' code keeps
  the best 10 as parents of 25 crossed and 25 mutated children in each of 20 generations, and mutates layers with a
  probability of 0.2, depth and width with 0.4. There are 200 trials; the paper has 1,000. A design's evaluation stops
  early once a finished one is significantly better.
- Designs are judged on validation rows that are held out of training; the authors' code judges them on the test set.
- Queries, keys and values of a head lie side by side, so that a design with fewer heads reads whole heads. The rows of
  the authors' weights are interleaved, but not those of the biases.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import OF_PICTURES, chosen_space, search_subnetworks, with_start
from formwright.search import searcher
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform


@recipe(
    "autoformer",
    "vision transformers of all sizes in entangled weights, evolution within a size (AutoFormer, Chen et al. 2021)",
    paper="Chen et al. 2021, AutoFormer",
    needs="a task of pictures: `digits`, `fashion-mnist` with its files, or a folder of your own",
    meanings={"space": OF_PICTURES},
    takes="1 minute of one core for the builtin task digits",
)
@with_start
def autoformer(
    task: TaskChoice,
    *,
    space: Any = None,
    limits: tuple[str, ...] = (),
    steps: int = 3_000,
    trials: int = 200,
    finetune: int = 0,
    seed: int = 0,
) -> Pipeline:
    """Train one random design a step as a slice of one network, and deliver the best that evolution finds as it is.

    `limits` hold the size, such as params<=20000. `finetune` trains what is delivered.
    """
    shared = TrainShared(chosen_space(space, task), task, Uniform(), Labels(), steps, seed=seed)
    by = searcher("nsga2", population=50)
    return search_subnetworks(shared, trials, limits, by=by, steps=finetune, weights="shared")
