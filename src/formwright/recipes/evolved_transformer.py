"""The Evolved Transformer (So, Liang and Le, 2019): cells of encoder and decoder, found by Progressive Dynamic Hurdles.

"The Evolved Transformer". What differs from the paper, and why:

- Designs have the nano sizes (64 features, cells of 3 and 4 junctions, 1 or 2 of each), so that one is trained in
  seconds. `formwright search evolved-transformer --recipe evolved-transformer` searches the published cells.
- The task is the one at hand, judged by perplexity on its validation rows; the paper's is WMT'14 English to German.
- A design is trained for 12, 36 and 108 steps of 32 rows, far fewer than in the paper. On the builtin translation task
  the card `transformer-tiny` is still learning then, and after 300 steps translates every validation row right. Other
  tasks want more (`--steps`).
- There are 100 trials, each of them a slice; population and batches are a fifth of these. With 500 trials and more both
  are the 100 of the authors' experiment.
- The plain Transformer is one design among the first, in the nano space and in the published one, trained in full,
  and the others are random; the paper's first population is made of the Transformer.
- Nobody dies of age: a child takes the place of the least fit of a second sample, as in the authors' released code.
- Sizes are not held within a range; `--limit "params<=3e5"` does that.
- Delivered models are trained from scratch for 324 steps.
"""

from typing import Any

from formwright.pipeline.deliver import Deliver
from formwright.pipeline.evaluators import TrainInStages
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice
from formwright.recipes.recipe import recipe
from formwright.search import searcher
from formwright.space.zoo.evolved_transformer import NANO, PUBLISHED, SMALL, SPACE, transformer
from formwright.study.stop import Stop

# the plain Transformer as each space writes it: one design among the first
_TRANSFORMER = {space.name: (space.to_json(transformer(menu)),) for space, menu in ((NANO, SMALL), (SPACE, PUBLISHED))}


@recipe(
    "evolved-transformer",
    "cells of encoder and decoder, training earned over hurdles (Evolved Transformer, So et al. 2019)",
    paper="So et al. 2019, The Evolved Transformer",
    needs="a task of translation, such as `translation`, or `multi30k` with its files",
    takes="5 minutes for 100 slices with `--workers 2` on two busy cores",
)
def evolved_transformer(
    task: TaskChoice, *, space: Any = "evolved-transformer-nano", trials: int = 100, seed: int = 0
) -> Pipeline:
    """Evolve cells whose training is earned slice by slice, beginning with the plain Transformer among others."""
    search = Search(
        space,
        task,
        searcher=searcher("hurdles"),
        evaluator=TrainInStages(),
        training=TrainingChoice(default_steps=108, batch=32),
        stop=Stop(trials=trials),
        first=_TRANSFORMER.get(space, ()),
        seed=seed,
    )
    return Pipeline(search, Deliver(search))
