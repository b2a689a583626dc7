"""SuperShaper (Ganesan et al., 2021): the width of every layer of a BERT, found while it learns to fill in words.

"SuperShaper: Task-Agnostic Super Pre-training of BERT Models with Variable Hidden Dimensions". What differs, and why:

- Designs have the nano size: 4 layers of 24 to 96 features. `formwright search supershaper --recipe supershaper` has
  the paper's 12 layers of 120 to 768.
- The text is that of the task: a text without labels, as in the paper, or a labelled task, whose labels are then
  learned instead of masked words. There are 2,000 steps of 64 rows, far fewer than in the paper.
- Every step trains the widest design, the narrowest and one between them, from fresh weights, or those of `start`. The
  paper begins with BERT-base, and its linear maps with the identity.
- The learning rate is 5e-4, a quarter of what other small designs have here: with random linear maps between all layers
  they learn nothing at 2e-3. That was seen on mini-glue/sst2.
- It is trained in merged form: one linear map stands between two layers (13 for 12 layers). In the authors' code each
  layer has a map at its input and one at its output while it learns; two that meet are merged for delivery and for
  counting.
- Evolution rebuilds its population, a tenth of the trials, at each proposal, so that workers need not wait for a
  generation, and has 100 trials. It improves what the task is judged by, within `limits` such as params<=200k or
  latency_ms<=2, which is measured; the paper's is predicted. On labelled tasks, designs that a known one significantly
  beats are judged by some of the validation rows.
- What is delivered begins with its shared weights and learns for 300 more steps; the paper fine-tunes on GLUE, as
  `formwright train` does with what is delivered.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import search_subnetworks, with_start
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Sandwich


@recipe(
    "supershaper",
    "the width of every layer of a BERT, by shared weights that fill in words (SuperShaper, Ganesan et al. 2021)",
    paper="Ganesan et al. 2021, SuperShaper",
    needs="a text without labels, such as `pydoc/masked`, or a text task",
    takes="4 minutes of one core for mini-glue/sst2; estimated: 35 minutes of two for the text pydoc/masked",
)
@with_start
def supershaper(
    task: TaskChoice,
    *,
    space: Any = "supershaper-nano",
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    finetune: int = 300,
    seed: int = 0,
) -> Pipeline:
    """Train the widest, the narrowest and random shapes together, evolve shapes with their weights, and train the best.

    `finetune` are the steps of what is delivered, which begins with its shared weights.
    """
    training = TrainingChoice(learning_rate=5e-4)
    shared = TrainShared(space, task, Sandwich(between=1), Labels(), steps, training=training, seed=seed)
    return search_subnetworks(shared, trials, limits, steps=finetune, weights="shared")
