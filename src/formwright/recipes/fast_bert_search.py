"""Fast BERT Search (survey, section VIII-F): a fast text encoder for this machine, a chain of the parts of BERT.

The time of each part is measured first, and the fast ones make up the space of the search.

The publication names neither operations nor sizes, and no code was found. What is ours, and why:

- The menu is attention, convolutions and feed-forward layers in three sizes each, and nothing at all; a chain has six
  layers of 64 features. A profile measures each operation on this device; the fastest 60 % are kept, and of each kind
  the fastest. The paper profiles BERT's components on a TPU.
- Each kind of operation has its own weights at each layer; smaller sizes of a kind are slices of its largest. One
  random chain learns at a step, from the labels of the task.
- Evolution, whose population is a tenth of the trials, improves the task's own metric within `limits`, such as
  latency_ms<=0.5, which is measured; the paper samples. A design's evaluation stops early once a finished one is
  significantly better. What is delivered begins with its shared weights and learns for 300 more steps.
"""

from typing import Any

from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import search_subnetworks, with_start
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform


@recipe(
    "fast-bert-search",
    "chains of BERT's parts from a menu that a profile of this device draws (Fast BERT Search)",
    paper="Fast BERT Search, as the survey describes it (section VIII-F)",
    needs="a text task",
    takes="2 minutes of one core for mini-glue/sst2",
    meanings={"keep": "share of the operations that the menu keeps, the fastest ones"},
)
@with_start
def fast_bert_search(
    task: TaskChoice,
    *,
    space: Any = "fast-bert-nano",
    keep: float = 0.6,
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    finetune: int = 300,
    seed: int = 0,
) -> Pipeline:
    """Measure operations, train the chains of the fastest together, and deliver the best, trained further.

    `keep` is the share of the operations that the menu keeps; 1 keeps all. `limits` hold the latency or the size.
    """
    menu = DrawMenu(space, task, keep)
    shared = TrainShared(menu, task, Uniform(), Labels(), steps, seed=seed)
    return search_subnetworks(shared, trials, limits, before=(menu,), steps=finetune, weights="shared")
