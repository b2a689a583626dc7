"""AutoBERT-Zero (Gao et al., 2022): attentions made of primitive operations, found by OP-NAS with shared weights.

"AutoBERT-Zero: Evolving BERT Backbone from Scratch". What differs from the paper, and why:

- Designs have the nano sizes (4 layers of 64 features, kernels up to 31), so that one is trained in seconds.
  `formwright search autobert-zero --recipe autobert-zero` searches the published sizes.
- A design is pretrained for 100 steps on the text of the task's own training rows, not for 40,000 on books and
  articles, and fine-tuned for 300 steps. Pretraining fills in words; the paper's also tells whether one sentence
  follows another.
- The score is that of one task, not the mean of GLUE.
- There are 100 trials, not 760. The first population is a fifth of them, and children are fewer where it is small; with
  500 trials and more both are the paper's: 100, and five children of each of the best five.
- A formula has at most 9 operations (12 in the published sizes); the paper has no bound.
- Operation scores are standardised before the softmax, which otherwise tells accuracies hardly apart, and the weight of
  exploration with them. How a formula is mutated the paper leaves open: one place changes, and what no longer fits is
  mended. Formulas that are equal by algebra, or but for the letters of their inputs, are tried once.
- Shared weights are those after pretraining. A child writes them back after its trial, not after a round, and
  overwrites what it used; of children trained side by side the one with the higher number wins. The paper says neither.
- Kernels are seen through their matrices before the softmax of a lightweight convolution. The stored kernel is 65 long
  in the nano sizes too.
- Delivered models are pretrained for as many steps as they are fine-tuned, not for 40 epochs before 3. They begin with
  fresh weights, as AutoBERT-Zero does, or with `--final-weights shared` with the shared ones, as AutoBERT-Zero*.
"""

from typing import Any

from formwright.pipeline.deliver import Deliver
from formwright.pipeline.evaluators import ShareBranches
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.recipe import recipe
from formwright.search import searcher
from formwright.study.stop import Stop


@recipe(
    "autobert-zero",
    "attentions from primitive operations, weights shared in two branches (AutoBERT-Zero, Gao et al. 2022)",
    paper="Gao et al. 2022, AutoBERT-Zero",
    needs="a text task",
    takes="estimated: 16 minutes for 100 designs with `--workers 2` on two cores (18 s of one core each)",
)
def autobert_zero(task: TaskChoice, *, space: Any = "autobert-zero-nano", trials: int = 100, seed: int = 0) -> Pipeline:
    """Evolve attention formulas by operation priorities, with weights that designs share in two branches."""
    evaluator = ShareBranches(steps=100, text="task")
    search = Search(space, task, searcher=searcher("op-nas"), evaluator=evaluator, stop=Stop(trials=trials), seed=seed)
    return Pipeline(search, Deliver(search))
