"""FlexiBERT (Tuli, Dedhia, Tuli and Jha, 2022): encoders of unlike layers, found by BOSHNAS from coarse to fine.

"FlexiBERT: Are Current Transformer Architectures too Homogeneous and Rigid?" What differs from the paper, and why:

- Designs have the nano sizes, so that one is trained in seconds. `formwright search flexibert-s1star --recipe
  flexibert` searches the published sizes.
- Designs are pretrained for 300 steps on the text of the task's own training rows, not for a million steps on books and
  articles, and fine-tuned for 300 steps with one learning rate and batch size, which the paper tunes for each design.
  Delivered models are trained longer in both.
- The score is that of one task, not the mean of nine.
- Every trained design may give its weights, not only the nearest 100 of the space. Layers are counted whole, as the
  paper says: of two or four layers, four fifths are all of them. So only designs of two layers can be spared
  pretraining, by one of four layers that begins with the same two, and these are hardly ever among the nearest 100. The
  authors' code counts tensors instead, where more designs qualify. A lower `--least-overlap` spares more.
- A level ends as in the paper, when five trials change the best score by no more than 1e-4, but the first at the latest
  after one third of all trials and the second after two thirds; the last goes on to the end of the study. The paper
  does not say how many designs a level is made of: here the best five of those before, and one neighbour of each.
- The first designs are random; the paper begins with twelve of its uniform designs. The surrogate learns from the
  trials of all levels, by their points in the embedding of the present one.
"""

from typing import Any

from formwright.pipeline.deliver import Deliver
from formwright.pipeline.evaluators import PretrainFirst
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.task_choice import TaskChoice
from formwright.recipes.recipe import recipe
from formwright.search import searcher
from formwright.study.stop import Stop


@recipe(
    "flexibert",
    "heterogeneous encoders from coarse to fine, each pretrained (FlexiBERT with BOSHNAS, Tuli et al. 2022)",
    paper="Tuli et al. 2022, FlexiBERT",
    needs="a text task",
    takes="11 minutes for 60 designs with `--workers 2` on two cores",
)
def flexibert(task: TaskChoice, *, space: Any = "flexibert-nano-s1star", trials: int = 60, seed: int = 0) -> Pipeline:
    """Search coarse spaces first and finer ones around the best, each design pretrained before it is fine-tuned."""
    inner = searcher("boshnas", acquire="gobi-nearest")
    levels = searcher("coarse-to-fine", searcher=inner, patience=5, tolerance=1e-4)
    evaluator = PretrainFirst(steps=300, text="task", least_overlap=0.8)
    search = Search(space, task, searcher=levels, evaluator=evaluator, stop=Stop(trials=trials), seed=seed)
    return Pipeline(search, Deliver(search))
