"""LightHuBERT (Wang et al., 2022): encoders of sound of all sizes, in two stages: first the largest, then all together.

"LightHuBERT: Lightweight and Configurable Speech Representation Learning with Once-for-All Hidden-Unit BERT". What
differs from the paper, and why:

- Designs have the nano size and read frames of 40 numbers, such as log-mel spectra of recordings; the front end that
  reads waveforms is not built.
- There is no pretrained HuBERT here. The largest design is trained first, on the labels of the task, with a third of
  the steps. It then teaches all designs, which begin with its weights, by the outputs of its layers and its answers,
  and they learn from the labels too. In the paper HuBERT teaches both stages at masked frames, and no labels are seen.
- Each stage has a learning rate schedule of its own. Both in one training (lesson `two-stage`), where the teacher is
  frozen while its rate is high, were worse on spoken digits. There are 3,000 steps, far fewer than in the paper.
- As in the paper, random designs within `limits` are judged with shared weights, and the best is delivered as it is.
  They are drawn as in training, every gene uniformly. A design's evaluation stops early once a finished one is
  significantly better.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import search_subnetworks, with_start
from formwright.search import searcher
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.rules import Largest, Uniform


@recipe(
    "lighthubert",
    "encoders of sound of all sizes, the largest trained first (LightHuBERT, Wang et al. 2022)",
    paper="Wang et al. 2022, LightHuBERT",
    needs="a task of frames, such as a folder of recordings for each label",
    meanings={"steps": "training steps of both stages together"},
    takes="4 minutes of one core for 720 spoken digits",
)
@with_start
def lighthubert(
    task: TaskChoice,
    *,
    space: Any = "lighthubert-nano",
    limits: tuple[str, ...] = (),
    steps: int = 3_000,
    trials: int = 100,
    finetune: int = 0,
    seed: int = 0,
) -> Pipeline:
    """Train the largest design, then random ones from its weights and answers, and deliver the best of random designs.

    `steps` are those of both stages; the first has a third of them. `finetune` trains what is delivered.
    """
    first = max(1, steps // 3)
    largest = TrainShared(space, task, Largest(), steps=first, seed=seed)
    lesson = HiddenStates(labels=0.5, scores=0.5)
    shared = TrainShared(space, task, Uniform(), lesson, max(1, steps - first), teacher=largest, seed=seed)
    by = searcher("random", by="gene")
    return search_subnetworks(shared, trials, limits, by=by, before=(largest,), steps=finetune, weights="shared")
