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

from formwright.recipes.recipe import Recipe
from formwright.space.zoo.evolved_transformer import NANO, PUBLISHED, SMALL, SPACE, transformer
from formwright.study.config import TrainingChoice

EVOLVED_TRANSFORMER = Recipe(
    about="cells of encoder and decoder, training earned over hurdles (Evolved Transformer, So et al. 2019)",
    space="evolved-transformer-nano",
    searcher="hurdles",
    evaluator="staged",
    training=TrainingChoice(steps=108, batch=32),
    trials=100,
    paper="So et al. 2019, The Evolved Transformer",
    needs="a task of translation, such as `translation`, or `multi30k` with its files",
    takes="5 minutes for 100 slices with `--workers 2` on two busy cores",
    first={space.name: (space.to_json(transformer(menu)),) for space, menu in ((NANO, SMALL), (SPACE, PUBLISHED))},
)
