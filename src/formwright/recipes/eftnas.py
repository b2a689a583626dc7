"""EFTNAS (Munoz, Zheng and Jain, 2024): smaller fine-tuned encoders out of one super-network.

"EFTNAS: Searching for Efficient Language Models in First-Order Weight-Reordered Super-Networks". Differences:

- Parts are scored by the size of weight times gradient on 64 batches of the fine-tuned model. The order `movement` is
  the signed sum of Eq. 3 while the model is fine-tuned, without masks: it leaves out first the channels whose weights
  shrank from a large size, which are important. The masked, regularised scores of the authors' code are not built.
- Between layers, scores are compared after division by the mean of their layer to the power of 0.75; else whole layers
  would be left out before others lose a channel.
- The super-network starts from the fine-tuned weights, not the pretrained ones, because it learns for minutes. The
  embedding is not trained with it: every sub-network has it whole, and it takes a fifth of a step.
- A head's score is the mean over its query, key, value and output weights, with one order for all four, as in the
  authors' code; the paper orders values separately from queries and keys.
- Widths of feed-forward layers are multiples of 16; a part below 2 % of its width is left out, as in the authors' code.
- Thresholds are found by bisection over the ranks of the scores. The softmax of Eq. 6 has the exponential it lacks.
- The search is LINAS's: NSGA-II on predictions, and a validation where these promise most. The searcher `nsga2` with
  1000 trials is the paper's. A design's evaluation stops early once a finished one is significantly better.
- Learning rates are for models of MiniLM's size and minutes of training; the paper's are 2e-5 and 3e-5.
"""

from collections.abc import Sequence
from dataclasses import replace

from formwright.cost import is_measured
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.draw_space import DrawSpace
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import MeasureParts, Order, ScoreParts
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.targets import USUAL, Target
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.search import searcher
from formwright.study.stop import Stop
from formwright.supernet.lessons import Distil
from formwright.supernet.rules import Sandwich

USUAL_TRAINING = TrainingChoice(batch=32, learning_rate=5e-5, warmup=0.1, dropout=0.1, threads=None)


@recipe(
    "eftnas",
    "smaller fine-tuned models inside a pretrained one (EFTNAS, Munoz et al. 2024)",
    paper="Munoz et al. 2024, EFTNAS",
    command="compress",
    needs="a pretrained model (MiniLM of the extra `demo`) and a task",
    meanings={"hidden": "hidden sizes of smaller models, next to the model's own"},
    takes="as planned and shown first; --hours scales it",
)
def eftnas(
    task: TaskChoice,
    *,
    model: str = "",
    targets: Sequence[str] = USUAL,
    order: Order = "first-order",
    hidden: Sequence[int] = (),
    trials: int = 200,
    training: TrainingChoice = USUAL_TRAINING,
    seed: int = 0,
) -> Pipeline:
    """Fine-tune a model, draw up its space, train all sub-networks together, and deliver the best for each target."""
    sizes, usual = tuple(sorted(set(hidden))), training.learning_rate == USUAL_TRAINING.learning_rate
    timed = any(is_measured(Target.parse(target).cost) for target in targets)
    latency = MeasureParts(task, model, training.length, sizes) if timed else None
    teacher = FineTune(task, model, 3.0, training, usual, order == "movement", bool(sizes), seed=seed)
    scores = ScoreParts(teacher, order, hidden=bool(sizes))
    space = DrawSpace(teacher, scores, latency, targets=tuple(targets), hidden=sizes)
    rule, lesson, slower = Sandwich(between=1), Distil(labels=0.1, temperature=2.0), replace(training, decay="cosine")
    shared = TrainShared(space, task, rule, lesson, None, 6.0, 1e-4, slower, teacher, scores, seed)
    evaluator, alone = SharedSubnetworks(shared), replace(training, steps=1, threads=1)
    search = Search(space, task, (), (), searcher("linas"), evaluator, alone, Stop(trials=trials), (), latency, seed)
    deliver = Deliver(search, steps=0, teacher=teacher, baseline=False)
    first = () if latency is None else (latency,)
    return Pipeline(*first, teacher, scores, space, shared, search, deliver)
