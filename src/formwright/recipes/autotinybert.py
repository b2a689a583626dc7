"""AutoTinyBERT (Yin et al., 2021): a small BERT with equal layers for a given latency.

"AutoTinyBERT: Automatic Hyper-parameter Optimization for Efficient Pre-trained Language Models". Both modes are here:
`autotinybert` learns from the rows alone, `autotinybert-kd` from a teacher. What differs from the paper, and why:

- Designs have the nano sizes; `formwright search autotinybert --recipe autotinybert` has the published ones, with the
  steps of the authors' released searcher (16 and 32; the paper has 4).
- The text is that of the task: a text without labels, whose masked words are learned as in the paper, or a labelled
  task. There are 2,000 steps of one random design each, far fewer than in the paper. The learning rate is 1e-3: at
  2e-3, the usual rate of small designs here, the largest design stayed at chance on mini-glue/sst2.
- The teacher is the largest design, trained before with half of the steps. The paper's is a pretrained BERT. It teaches
  with the outputs of its layers, mapped evenly, and its answers, and labels weigh half.
- Latency is measured on this device when a design is proposed, and again before it is delivered; theirs is predicted
  from four sizes. Designs outside 0.85 to 1.1 of `latency` are not judged, as in their code.
- Evolution has 100 trials and rebuilds its population, a tenth of them, at each proposal; theirs has generations of 25,
  half random. Designs are judged by the task's own metric, on labelled tasks by some of the validation rows if a known
  design significantly beats them; theirs by the mean of SQuAD and MNLI after fine-tuning.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import latency_band, search_subnetworks, with_start
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Largest, Uniform

_TRAINING = TrainingChoice(learning_rate=1e-3)
_FACTS = {
    "paper": "Yin et al. 2021, AutoTinyBERT",
    "needs": "a text without labels, such as `pydoc/masked`, or a text task",
    "takes": "2 minutes of one core for mini-glue/sst2, 5 with a teacher",
}


@recipe("autotinybert", "small BERTs with equal layers for a latency (AutoTinyBERT, Yin et al. 2021)", **_FACTS)
@with_start
def autotinybert(
    task: TaskChoice,
    *,
    space: Any = "autotinybert-nano",
    latency: float | None = None,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    finetune: int = 300,
    seed: int = 0,
) -> Pipeline:
    """Train shared weights on the rows, and search around `latency` milliseconds; `finetune` trains the best."""
    shared = TrainShared(space, task, Uniform(), Labels(), steps, training=_TRAINING, seed=seed)
    within = (*latency_band(latency), *limits)
    return search_subnetworks(shared, trials, within, steps=finetune, weights="shared")


@recipe("autotinybert-kd", "the same with a teacher and heads of any width (AutoTinyBERT, Yin et al. 2021)", **_FACTS)
@with_start
def autotinybert_kd(
    task: TaskChoice,
    *,
    space: Any = "autotinybert-kd-nano",
    latency: float | None = None,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    finetune: int = 300,
    seed: int = 0,
) -> Pipeline:
    """Train the largest design, let it teach all others, and search around `latency` milliseconds."""
    largest = TrainShared(space, task, Largest(), steps=max(1, steps // 2), training=_TRAINING, seed=seed)
    lesson = HiddenStates(0.5, 0.5)
    shared = TrainShared(space, task, Uniform(), lesson, steps, training=_TRAINING, teacher=largest, seed=seed)
    within = (*latency_band(latency), *limits)
    return search_subnetworks(shared, trials, within, before=(largest,), steps=finetune, weights="shared")
