"""Our stages keep the contract of stages: killed at any write, damaged, moved, changed, and two at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from tests.cli.conftest import in_one_process
from tests.pipeline.block_runs import blockwise, pretended
from tests.pipeline.cases import check_whole, own_rows
from tests.pipeline.compressions import compression
from tests.pipeline.shared_runs import stage
from tests.pipeline.test_train_model import composed

from formwright.core.errors import FormwrightError
from formwright.pipeline import delivery
from formwright.pipeline.delivered import MODELS
from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.evaluators import UntrainedScores
from formwright.pipeline.model_training import WordPretraining
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import DATABASE
from formwright.pipeline.task_choice import TaskChoice
from formwright.search.baselines import RandomSearch
from formwright.study.database import Database
from formwright.study.identity import own_name
from formwright.study.stop import Stop
from formwright.testing.stage_contract import Killed, StageContract

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]


class OnRows(StageContract):
    """Have a folder for rows and models that all runs of a test read."""

    most_kills: ClassVar[int] = 6
    rows: Path

    @pytest.fixture(autouse=True)
    def data(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.rows = tmp_path_factory.mktemp("rows")

    @pytest.fixture(autouse=True)
    def times(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let every design take a time that follows from it alone."""
        monkeypatch.setattr("formwright.nn.latency.quick", lambda *_: pretended)


class Compression(OnRows):
    """Make the stages of a compression up to the `last`."""

    last: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}

    def pipeline(self) -> Pipeline:
        return _up_to(compression(self.rows, **self.options), self.last)


class BlockwiseCompression(OnRows):
    """Make the stages of a block-wise compression up to the `last`."""

    last: ClassVar[str]

    def pipeline(self) -> Pipeline:
        few = {"blocks.steps": 2, "blocks.rounds": 1, "blocks.candidates": 20, "students.steps": 2}
        return _up_to(blockwise(self.rows, sizes="3k", settings=few), self.last)


def _up_to(made: Pipeline, last: str) -> Pipeline:
    return Pipeline(*made.stages[: list(made.named).index(last) + 1])


class TestTrainShared(StageContract):
    changes: ClassVar[dict[str, Any]] = {"seed": 5}
    most_kills: ClassVar[int] = 6

    def pipeline(self) -> Pipeline:
        return Pipeline(stage(steps=3))


class TestFineTune(Compression):
    last = "teacher"
    changes: ClassVar[dict[str, Any]] = {"seed": 5}


class TestScoreParts(Compression):
    last = "scores"
    changes: ClassVar[dict[str, Any]] = {"batches": 3}


class TestDrawSpace(Compression):
    last = "space"


class TestDrawMenu(OnRows):
    changes: ClassVar[dict[str, Any]] = {"keep": 0.3}

    def pipeline(self) -> Pipeline:
        return Pipeline(DrawMenu("fast-bert-nano", TaskChoice("mini-glue/rte", rows=50), length=16))


class TestDeliver(OnRows):
    """The log of its search is its record: a model is made again where its configuration or weights are damaged."""

    changes: ClassVar[dict[str, Any]] = {"steps": 4}
    vital = ("config.json", "model.safetensors")

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_one_process(monkeypatch)

    def pipeline(self) -> Pipeline:
        return own_rows(self.rows, stop=Stop(2), final_steps=3, baseline=False)

    def folder(self, run: PipelineRun) -> Path:
        return run.out / MODELS

    def files(self, run: PipelineRun) -> dict[str, str]:
        # a kill leaves drafts, whose names begin with a dot: another process may be writing one just now
        found = {name: digest for name, digest in super().files(run).items() if not name.startswith(".")}
        return {name: digest for name, digest in found.items() if Path(name).name in self.vital}

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        write, seen = delivery.write_task_model, list[str]()

        def noted(*arguments: Any) -> None:
            seen.append(str(arguments[2]))
            write(*arguments)

        with patch.object(delivery, "write_task_model", noted):
            yield seen


class TestSearch(OnRows):
    """The log is its record, so that kills come at the writes of the log, before or after they count."""

    changes: ClassVar[dict[str, Any]] = {"seed": 5}
    most_kills: ClassVar[int] = 12

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_one_process(monkeypatch)
        turns, place = count(), own_name().rpartition("/")[0]
        # every run counts as a process of its own, and those before it as dead
        monkeypatch.setattr("formwright.study.worker.own_name", lambda: f"{place}/{next(turns)}")

    def pipeline(self) -> Pipeline:
        return _up_to(
            own_rows(self.rows, stop=Stop(4), evaluator=UntrainedScores(("params",)), objectives=("params:min",)),
            "search",
        )

    def files(self, run: PipelineRun) -> dict[str, str]:
        with run.artifact(run.pipeline.stages[-1]) as opened:
            check_whole(opened, 4)
            trials = opened.history().trials
        return {str(one.number): f"{one.request.card.digest} {one.observation.metrics}" for one in trials}

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        ask, seen = RandomSearch.ask, list[str]()

        def noted(searcher: RandomSearch, *arguments: Any) -> Any:
            seen.append(searcher.space.name)
            return ask(searcher, *arguments)

        with patch.object(RandomSearch, "ask", noted):
            yield seen

    @contextmanager
    def killed_at(self, turn: int | None, within: Path) -> Iterator[list[str]]:
        write, writes = Database.write, list[str]()

        def guarded(database: Database, *arguments: Any) -> Any:
            writes.append("the log")
            killed = turn is not None and len(writes) > turn
            if killed and (len(writes) > turn + 1 or turn % 2):  # also what would tidy up
                raise Killed
            found = write(database, *arguments)
            if killed:
                raise Killed
            return found

        with patch.object(Database, "write", guarded):
            yield writes

    @pytest.mark.parametrize("damage", ["cut", "changed", "lost"])
    def test_an_artifact_that_is_damaged_is_made_again(self, damage: str, tmp_path: Path) -> None:
        """Make a lost log again, and refuse a damaged one: hours of trials are not thrown away without a question."""
        run = self.run(tmp_path / "run")
        whole, log = self.files(run), run.out / DATABASE
        content = log.read_bytes()
        if damage == "lost":
            log.unlink()
            assert self.files(self.run(tmp_path / "run")) == whole
            return
        log.write_bytes(content[: len(content) // 2] if damage == "cut" else b"not a log" + content[9:])
        with pytest.raises(FormwrightError):
            self.run(tmp_path / "run")


class TestTrainModel(OnRows):
    most_kills: ClassVar[int] = 25
    volatile: ClassVar[tuple[str, ...]] = ("learned.json", "result.json")  # which hold seconds

    def pipeline(self) -> Pipeline:
        return composed(self.rows, steps=3, test=True, pretraining=WordPretraining(steps=2))


class TestMeasureParts(Compression):
    last = "latency"
    options: ClassVar[dict[str, Any]] = {"targets": ("latency_ms=1",)}
    changes: ClassVar[dict[str, Any]] = {"hidden": (12,)}


class TestLoadTeacher(BlockwiseCompression):
    last = "source"
    changes: ClassVar[dict[str, Any]] = {"seed": 5}


class TestMeasureOperations(BlockwiseCompression):
    last = "operation-times"


class TestFitBases(BlockwiseCompression):
    last = "bases"


class TestTrainBlocks(BlockwiseCompression):
    last = "blocks"
    changes: ClassVar[dict[str, Any]] = {"learning_rate": 1e-3}


class TestChooseChains(BlockwiseCompression):
    last = "choices"
    changes: ClassVar[dict[str, Any]] = {"checked": 3}


class TestTeachStudents(BlockwiseCompression):
    last = "students"
    changes: ClassVar[dict[str, Any]] = {"learning_rate": 1e-3}
