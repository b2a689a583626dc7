"""DynaBERT (Hou et al., 2020): a fine-tuned model whose width and depth can be chosen when it is used.

"DynaBERT: Dynamic BERT with Adaptive Width and Depth". Heads and channels of the fine-tuned model are put in the order
of their importance (section 2.1.1); versions of all widths learn from it; then versions of all widths and depths learn
from what has adaptive width (section 2.2). Differences:

- Importance is the mean size of weight times gradient over all weights of a head or channel (the recipe `eftnas`).
- A step trains the largest version, the smallest and two between them; in the paper all four widths, and all twelve.
- Teacher, widths and depths have three epochs each; the last two at 1e-4 with a cosine decay.
- Layers are spread evenly: of n layers the i-th of k is layer floor(i n / k).
- Scores weigh 1, and the mean distance of the hidden states of all layers 0.1 while widths are trained and 1 with
  depths; the output of the embedding is not compared. There are no labels, but for a last fine-tuning, which is off
  (`deliver.steps`); data are not augmented.
- All versions are judged on validation rows, and the best within each target is delivered; one that a known version of
  no higher cost significantly beats is judged by some of the rows. The paper searches nothing.
- Any model that can be compressed will do: vision transformers, decoders and translators too.
"""

from collections.abc import Sequence
from dataclasses import replace

from formwright.core.errors import IllegalInput
from formwright.pipeline.deliver import Deliver
from formwright.pipeline.draw_multiples import DrawMultiples
from formwright.pipeline.fine_tune import FineTune
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.score_parts import Order, ScoreParts
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.pipeline.targets import USUAL
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.eftnas import USUAL_TRAINING
from formwright.recipes.recipe import recipe
from formwright.search import searcher
from formwright.space.multiples import DEPTHS, WIDTHS
from formwright.study.stop import Stop
from formwright.supernet.inner_lessons import HiddenStates
from formwright.supernet.rules import Sandwich


@recipe(
    "dynabert",
    "versions of a fine-tuned model by shares of width, then of depth (DynaBERT, Hou et al. 2020)",
    paper="Hou et al. 2020, DynaBERT",
    command="compress",
    needs="a pretrained model (MiniLM of the extra `demo`) and a task",
    takes="as planned and shown first; --hours scales it",
    meanings={"widths": "shares of heads and channels", "depths": "shares of layers"},
)
def dynabert(
    task: TaskChoice,
    *,
    model: str = "",
    targets: Sequence[str] = USUAL,
    order: Order = "first-order",
    widths: Sequence[float] = WIDTHS,
    depths: Sequence[float] = DEPTHS,
    training: TrainingChoice = USUAL_TRAINING,
    seed: int = 0,
) -> Pipeline:
    """Fine-tune a model, train versions of all widths, then of all depths too, and deliver one for each target."""
    for name, shares in (("widths", widths), ("depths", depths)):
        if not shares or not all(0 < share <= 1 for share in shares):
            raise IllegalInput(f"{name} must be shares above 0 and at most 1, at least one of them, not {list(shares)}")
    usual = training.learning_rate == USUAL_TRAINING.learning_rate
    teacher = FineTune(task, model, 3.0, training, usual, order == "movement", seed=seed)
    scores = ScoreParts(teacher, order)
    wide = DrawMultiples(teacher, tuple(widths), (1.0,))
    both = DrawMultiples(teacher, tuple(widths), tuple(depths), tuple(targets))
    rule, slower = Sandwich(between=2), replace(training, decay="cosine")
    first = TrainShared(wide, task, rule, HiddenStates(hidden=0.1), None, 3.0, 1e-4, slower, teacher, scores, seed)
    second = TrainShared(both, task, rule, HiddenStates(), None, 3.0, 1e-4, slower, first, None, seed, depth="even")
    evaluator, alone = SharedSubnetworks(second), replace(training, steps=1, threads=1)
    every = Stop(trials=len(widths) * len(depths))
    search = Search(both, task, (), (), searcher("random"), evaluator, alone, every, seed=seed)
    deliver = Deliver(search, steps=0, teacher=teacher, baseline=False)
    return Pipeline(teacher, scores, wide, first, both, second, search, deliver)
