"""EFTNAS (Munoz, Zheng and Jain, 2024): smaller fine-tuned encoders out of one super-network.

"EFTNAS: Searching for Efficient Language Models in First-Order Weight-Reordered Super-Networks". What differs from the
paper, and why:

- Parts are scored by the size of weight times gradient on 64 batches of the fine-tuned model. `--order movement` is the
  sum of Eq. 3 with its sign, without masks, while the model is fine-tuned: channels whose weights shrank from a large
  size are among the most important, and it leaves them out first. The authors' code learns masked, regularised scores,
  which are not built here.
- Between layers these sizes are compared by what is left of them after division by the mean of their layer to the power
  of 0.75; else whole layers would be left out before others lose a channel.
- The super-network starts from the fine-tuned weights, not from the pretrained ones, because it learns for minutes.
- The embedding is not trained with the super-network: every sub-network has it whole, and it takes a fifth of a step.
- A head's score is the mean over its query, key, value and output weights, and one order holds for all four, as in the
  authors' code; the paper orders values apart from queries and keys.
- Widths of feed-forward layers are multiples of 16. A part below 2 % of its full width is left out, as in the authors'
  code.
- Thresholds are found by bisection over the ranks of the scores, which always ends.
- The softmax of Eq. 6 lacks an exponential, and has it here.
- The search is LINAS's: NSGA-II on predictions, and a validation where these promise most. `--searcher nsga2
  --evaluations 1000` is the paper's. Sub-networks that a known one surely beats are validated in part.
- Learning rates are for models of MiniLM's size and minutes of training; the paper's are 2e-5 and 3e-5.
"""

from formwright.compress.defaults import Defaults
from formwright.recipes.summary import Summary

SUMMARY = Summary(
    about="smaller fine-tuned encoders inside a pretrained one (EFTNAS, Munoz et al. 2024)",
    paper="Munoz et al. 2024, EFTNAS",
    job="compress",
    needs="a pretrained encoder (MiniLM of the extra `demo`) and a labelled task",
    takes="as planned and shown first; --hours scales it",
)

EFTNAS = Defaults(
    configurations=5,
    teacher_epochs=3,
    epochs=6,
    evaluations=200,
    batch=32,
    learning_rate=5e-5,
    network_rate=1e-4,
    dropout=0.1,
    between=1,
    labels=0.1,
    temperature=2.0,
    order="first-order",
    searcher="linas",
)
