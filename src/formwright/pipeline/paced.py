"""Train for as many steps as the plan of time says, which may change while the training runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formwright.pipeline.pacing import Pacing, Revision, Unplanned
from formwright.pipeline.run import StageRun

if TYPE_CHECKING:
    from torch import nn

    from formwright.train.fit import Run
    from formwright.train.hyperparameters import Hyperparameters
    from formwright.train.loop import State
    from formwright.train.losses import Loss
    from formwright.train.streams import Stream

Recipes = Sequence[tuple[int, "Hyperparameters"]]  # each with the step from which on it holds


def train_paced(
    run: StageRun,
    what: str,
    model: "nn.Module",
    stream: "Stream",
    loss: "Loss",
    recipe: "Callable[[int], Hyperparameters]",
    steps: int,
) -> None:
    """Train a model in place for `steps` steps, or for as many as the plan of the run says, and resume exactly.

    `recipe` gives the recipe of a training with a total number of steps: the schedule of the learning rate follows a
    plan that changes on the way.
    """
    name, state = run.name, None
    pacing: Pacing | Unplanned = run.run.pacing or Unplanned(steps)
    while state is None or len(state.losses) < pacing.steps(name)[-1].steps:
        recipes = _recipes(pacing.steps(name), recipe)
        with run.training(what, recipes[-1][1].steps) as training:
            if state is None:
                state = _state(model, recipes, training)
                if len(state.losses) == recipes[-1][1].steps:
                    return  # and its time was noted when it ended
                pacing.resumed(len(state.losses), state.seconds)
            _until_revised(name, state, recipes, stream, loss, training, pacing)
    pacing.trained()


def _until_revised(
    name: str,
    state: "State",
    recipes: Recipes,
    stream: "Stream",
    loss: "Loss",
    training: "Run",
    pacing: Pacing | Unplanned,
) -> None:
    """Train on to the next step at which the number of steps changes, or to the end."""
    from formwright.train.loop import go_on

    done = len(state.losses)
    state.recipe = [one for since, one in recipes if since <= done][-1]
    later = next((since for since, _ in recipes if since > done), None)
    if later is not None:  # a change that was made before the run was interrupted
        go_on(state, stream, loss, training.saving, training.after_step, until=later)
        return
    while len(state.losses) < state.recipe.steps:
        done, before = len(state.losses), state.seconds
        go_on(state, stream, loss, training.saving, training.after_step, until=pacing.next_look(name, done))
        step = len(state.losses)
        if step < state.recipe.steps and pacing.look(name, step, (state.seconds - before) / (step - done)) is not None:
            return


def _recipes(
    revisions: Sequence[Revision], recipe: "Callable[[int], Hyperparameters]"
) -> "list[tuple[int, Hyperparameters]]":
    """Give the recipes of a training, each with the step from which on it holds."""
    from formwright.train.hyperparameters import replanned

    found = [(0, recipe(revisions[0].steps))]
    for one in revisions[1:]:
        rate = recipe(one.steps).learning_rate
        found.append((one.since, replanned(found[-1][1], one.since, one.steps, rate)))
    return found


def _state(model: "nn.Module", recipes: Recipes, training: "Run") -> "State":
    """Begin, or restore the newest checkpoint: it was written under the recipe of the step before it."""
    from formwright.train import checkpoint
    from formwright.train.loop import begin

    found = None if training.saving is None else checkpoint.newest(training.saving.folder)
    done = 0 if found is None else found.step
    return begin(model, [one for since, one in recipes if since < max(done, 1)][-1], training.saving)
