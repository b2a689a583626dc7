"""LINAS (Cummings et al., 2022): sub-networks of any super-network, most of them predicted and few validated.

"A Hardware-Aware Framework for Accelerating Neural Architecture Search Across Modalities"; survey, section X-C. What
differs, and why:

- The super-network is trained by the pipeline (`steps`), one random design a step as in HAT; theirs are given.
- Candidates are ranked by what they are predicted to add to the hypervolume of the front, not by fronts and crowding.
- An encoding without inactive choices: two vectors are never the same design.
- A tenth of the proposals are random, against predictors that are wrong where nothing was validated.
- Predictors are ridge, support vectors or both stacked, whichever cross-validation prefers; theirs are ridge or support
  vectors. There are 12 initial designs (fewer below 60 trials), rounds of 10 validations, and 12 generations of 40
  designs on predictions for each proposal.
"""

from typing import Any

from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.task_choice import TaskChoice
from formwright.pipeline.train_shared import TrainShared
from formwright.recipes.recipe import recipe
from formwright.recipes.subnetworks import OF_PICTURES, chosen_space, search_subnetworks, with_start
from formwright.search import searcher
from formwright.search.predictors.ensembles import CrossValidated
from formwright.supernet.lessons import Labels
from formwright.supernet.rules import Uniform


@recipe(
    "linas",
    "the front of a super-network by predictors and few validations (LINAS, Cummings et al. 2022)",
    paper="Cummings et al. 2022, Hardware-Aware Framework for NAS Across Modalities",
    needs="images, or a space whose designs read their weights from the largest one",
    meanings={
        "space": OF_PICTURES,
        "objectives": "goals, such as accuracy:max and latency_ms:min; default: that of the task, and fewer MACs",
        "batch": "designs that are proposed and validated in a round",
    },
    takes="1 minute of one core for the builtin task digits",
)
@with_start
def linas(
    task: TaskChoice,
    *,
    space: Any = None,
    objectives: tuple[str, ...] = (),
    limits: tuple[str, ...] = (),
    steps: int = 2_000,
    trials: int = 100,
    batch: int = 10,
    seed: int = 0,
) -> Pipeline:
    """Train shared weights, search the front in rounds of `batch` validations, and deliver three of its designs.

    `objectives` are goals such as `accuracy:max` and `latency_ms:min`, by default the task's own and `macs:min`;
    designs are delivered as they are in the shared weights. Other numbers and more training are options of the stage
    `deliver`.
    """
    shared = TrainShared(chosen_space(space, task), task, rule=Uniform(), lesson=Labels(), steps=steps, seed=seed)
    by = searcher("linas", batch=batch, predictor=CrossValidated())
    delivery: dict[str, Any] = {"keep": 3, "steps": 0, "weights": "shared"}
    goals: dict[str, Any] = {"objectives": objectives} if objectives else {"minimise": ("macs",)}
    # predictors learn from every score, so each is that of all rows
    return search_subnetworks(shared, trials, limits, by=by, races=False, **goals, **delivery)
