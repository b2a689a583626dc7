"""OFA (Cai et al., 2020): one network that is trained once and holds many that need no more training.

"Once-for-All: Train One Network and Specialize it for Efficient Deployment". What differs from the paper, and why:

- Designs are vision transformers of the nano size, not convolutional networks: depth opens first, then width, heads and
  feed-forward ratios. There are no kernel sizes, and no image sizes, to choose.
- Steps are counted in thousands, for images of 8 by 8 pixels. All phases of the shrinking share one learning rate,
  1e-3, half of that of the largest design; in the authors' code each has its own. A step trains two designs in all
  phases; theirs trains one, two or four.
- Labels and teacher weigh the same, as in the authors' code; labels are not smoothed.
- Channels are not sorted by their size before the widths open.
- Designs are judged with their weights, on validation rows (some of them if a known design significantly beats them),
  instead of predicted by a network that was trained on 16,000 such scores. Evolution has 100 trials and a population of
  a tenth of them, rebuilt at each proposal.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import OF_PICTURES, chosen_space, search_subnetworks, with_start
from formwright.supernet.lessons import Distil
from formwright.supernet.rules import Largest, ProgressiveShrinking


@recipe(
    "ofa",
    "one network for all sizes by progressive shrinking, searched without more training (OFA, Cai et al. 2020)",
    paper="Cai et al. 2020, Once-for-All",
    needs="images, or a space whose designs are slices of the largest",
    meanings={
        "space": OF_PICTURES,
        "steps": "training steps of the shrinking; the largest design has half as many before",
    },
    takes="2 minutes of one core for the builtin task digits",
)
@with_start
def ofa(
    task: TaskChoice,
    *,
    space: Any = None,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    finetune: int = 0,
    seed: int = 0,
) -> Pipeline:
    """Train the largest design, let it teach all others as they open, and deliver the best as they are.

    `steps` are those of the shrinking; the largest design has half as many before. `finetune` trains what is delivered.
    """
    space = chosen_space(space, task)
    largest = TrainShared(space, task, Largest(), steps=max(1, steps // 2), seed=seed)
    rule, lesson = ProgressiveShrinking(largest=0.0, order=("length",), designs=2), Distil(labels=0.5, temperature=1.0)
    shared = TrainShared(space, task, rule, lesson, steps, learning_rate=1e-3, teacher=largest, seed=seed)
    return search_subnetworks(shared, trials, limits, before=(largest,), steps=finetune, weights="shared")
