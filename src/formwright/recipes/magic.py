"""MAGIC (Xu et al., 2022): chains of one super-network that interfere less.

"Analyzing and Mitigating Interference in Neural Architecture Search". What differs from the paper, and why:

- Chains have 6 layers of 64 features and half as many heads (3 or 4), so that they are trained in minutes. The paper
  gives no form of the alignment; here it is the mean squared distance between the outputs of all layers of a design and
  of the anchor, with a weight of 0.1.
- MAGIC-T: the design of a step differs from that of the step before in one operation. The walk restarts at a random
  design every 50 steps, because 2,000 steps are few. MAGIC-A: the anchor is tried every 30 steps against the design of
  the step, on held-out rows. `walk` and `anchor` turn each of them off.
- The super-network learns the task's labels, or the masked words of a text; the paper pretrains on books and articles.
- Evolution rebuilds its population, a tenth of the 100 trials, at each proposal. On labelled tasks, designs that a
  known one significantly beats are judged by some of the validation rows.
- What is delivered is trained from scratch on the task; the paper pretrains it first.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import search_subnetworks, with_start
from formwright.supernet.inner_lessons import Anchor
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform, Walk


@recipe(
    "magic",
    "chains of operations that interfere less in their shared weights (MAGIC, Xu et al. 2022)",
    paper="Xu et al. 2022, Analyzing and Mitigating Interference in NAS",
    needs="a text task, or a text without labels",
    takes="3 minutes of one core for mini-glue/sst2",
    meanings={
        "walk": "change one operation from step to step (MAGIC-T), or draw each chain at random",
        "anchor": "align chains with the best one so far (MAGIC-A)",
    },
)
@with_start
def magic(
    task: TaskChoice,
    *,
    space: Any = "magic-nano",
    walk: bool = True,
    anchor: bool = True,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    seed: int = 0,
) -> Pipeline:
    """Train chains that change by one operation a step and are aligned with the best one so far, and search with them.

    Without `walk` and `anchor` this is uniform sampling of chains.
    """
    rule, lesson = Walk() if walk else Uniform(), Anchor() if anchor else Labels()
    shared = TrainShared(space, task, rule, lesson, steps, seed=seed)
    return search_subnetworks(shared, trials, limits, weights="fresh")
