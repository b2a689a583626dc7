"""HAT (Wang et al., 2020): one super-network for translation, and an evolution for each device within its latency.

"HAT: Hardware-Aware Transformers for Efficient Natural Language Processing". What differs from the paper, and why:

- The super-network has 4,000 steps, far fewer than in the paper. The default space has the authors' choices at a size
  for Multi30k (`hat-nano`); `hat` is theirs. As in their code, fewer heads are wider ones over the same channels, and
  several encoder layers are read as one longer text.
- Latency is measured for each design when it is proposed, and again before it is delivered, instead of predicted by a
  network that was fitted to 2,000 measurements. `writing_30x5_ms` is what they measure: 30 tokens with 5 beams.
- Designs are judged by the validation loss (perplexity) with shared weights, as in the paper, not by BLEU.
- Evolution rebuilds its population at each proposal, so that workers need not wait for a generation. A child is crossed
  and mutated; theirs is one of both. There are 100 trials and a population of a tenth of them; they have 30 generations
  of 125.
- The found design is trained from scratch, as theirs, or from the shared weights (`weights="shared"`).
- Tables of source and target tokens are not joined. Labels are smoothed by 0.1.
"""

from typing import Any, Literal

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import search_subnetworks, with_start
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform


@recipe(
    "hat",
    "one super-network for translation, evolution within a latency measured on this device (HAT, Wang et al. 2020)",
    paper="Wang et al. 2020, HAT: Hardware-Aware Transformers",
    needs="a task of translation, such as `translation`, or `multi30k` with its files",
    meanings={"weights": "initial weights of the delivered model: fresh or shared"},
    takes="estimated: 15 minutes on two cores for the builtin task translation",
)
@with_start
def hat(
    task: TaskChoice,
    *,
    space: Any = "hat-nano",
    limits: tuple[str, ...] = (),
    steps: int = 4_000,
    trials: int = 100,
    weights: Literal["fresh", "shared"] = "fresh",
    finetune: int | None = None,
    seed: int = 0,
) -> Pipeline:
    """Train shared weights one random design a step, search within the limits, and train the winner.

    A limit such as `writing_30x5_ms<=40` (or `onnx_batch8_ms<=4`, another device) is hard: a design beyond it is not
    judged. Without limits the search looks for quality alone. `finetune` are the steps of the delivered model (default:
    an epoch or more; 0 with shared weights: none).
    """
    shared = TrainShared(space, task, rule=Uniform(), lesson=Labels(), steps=steps, seed=seed)
    return search_subnetworks(shared, trials, limits, steps=finetune, weights=weights)
