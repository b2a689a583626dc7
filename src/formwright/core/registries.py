"""The registries of parts that have no package of their own to live in; the others stand beside their parts."""

from typing import Any

from formwright.core.registry import Registry

_STAGES = "formwright.pipeline"

STAGES: Registry[Any] = Registry(
    "stage",
    {
        "super-network": f"{_STAGES}.train_shared:TrainShared",
        "teacher": f"{_STAGES}.fine_tune:FineTune",
        "scores": f"{_STAGES}.score_parts:ScoreParts",
        "latency": f"{_STAGES}.score_parts:MeasureParts",
        "space": f"{_STAGES}.draw_space:DrawSpace",
        "search": f"{_STAGES}.search:Search",
        "deliver": f"{_STAGES}.deliver:Deliver",
        "source": f"{_STAGES}.blocks_source:LoadTeacher",
        "operation-times": f"{_STAGES}.blocks_bases:MeasureOperations",
        "bases": f"{_STAGES}.blocks_bases:FitBases",
        "blocks": f"{_STAGES}.blocks_train:TrainBlocks",
        "choices": f"{_STAGES}.blocks_choose:ChooseChains",
        "students": f"{_STAGES}.blocks_students:TeachStudents",
        "train": f"{_STAGES}.train_model:TrainModel",
    },
    "formwright.stages",
)
