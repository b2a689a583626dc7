"""What other stages ask a stage that trains a model for a task: its design, its training and its speed."""

from typing import TYPE_CHECKING

from formwright.core.options import Stage
from formwright.pipeline.run import StageRun
from formwright.pipeline.task_choice import TaskChoice, TrainingChoice

if TYPE_CHECKING:
    from formwright.arch.card import Card
    from formwright.pipeline.model_times import ModelTimes
    from formwright.train.fit import Training


class TeacherStage(Stage):
    """Base class of stages that leave a model with which others begin; the artifact has `model` and `prepared`."""

    task: TaskChoice
    training: TrainingChoice

    def card(self, run: StageRun) -> "Card":
        """Give the design of the model, which is known before it is trained."""
        raise TypeError(f"{type(self).__name__} trains no model")

    def title(self, run: StageRun) -> str:
        """Name the model for readers."""
        raise TypeError(f"{type(self).__name__} trains no model")

    def training_of(self, run: StageRun) -> "Training":
        """Give the training; the plan says how many steps it has."""
        raise TypeError(f"{type(self).__name__} trains no model")

    def times(self, run: StageRun) -> "ModelTimes":
        """Time the model on this machine; other stages are planned by it too."""
        raise TypeError(f"{type(self).__name__} trains no model")
