"""Our stages keep the contract of stages: killed at any write, damaged, moved, changed, and two at once."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.compress.tiny import compression
from tests.pipeline.test_train_model import composed
from tests.pipeline.test_train_shared import stage

from formwright.pipeline.pipeline import Pipeline
from formwright.testing.stage_contract import StageContract

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]


class OnRows(StageContract):
    """Have a folder for rows and models that all runs of a test read."""

    most_kills: ClassVar[int] = 6
    rows: Path

    @pytest.fixture(autouse=True)
    def data(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.rows = tmp_path_factory.mktemp("rows")

    def compressed(self, last: str) -> Pipeline:
        """Give the stages of a compression up to one."""
        made = compression(self.rows)
        names = list(made.named)
        return Pipeline(*made.stages[: names.index(last) + 1])


class TestTrainShared(StageContract):
    changes: ClassVar[dict[str, Any]] = {"seed": 5}
    most_kills: ClassVar[int] = 6

    def pipeline(self) -> Pipeline:
        return Pipeline(stage(steps=3))


class TestFineTune(OnRows):
    changes: ClassVar[dict[str, Any]] = {"seed": 5}

    def pipeline(self) -> Pipeline:
        return self.compressed("teacher")


class TestScoreParts(OnRows):
    changes: ClassVar[dict[str, Any]] = {"batches": 3}

    def pipeline(self) -> Pipeline:
        return self.compressed("scores")


class TestDrawSpace(OnRows):
    def pipeline(self) -> Pipeline:
        return self.compressed("space")


class TestTrainModel(OnRows):
    volatile: ClassVar[tuple[str, ...]] = ("learned.json", "result.json")  # which hold seconds

    def pipeline(self) -> Pipeline:
        return composed(self.rows, steps=3)
