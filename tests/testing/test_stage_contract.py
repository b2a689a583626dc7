"""The contract finds stages that break it: one broken stage for each promise."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.pipeline.cases import Sum, registered

from formwright.core.options import option
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import StageRun
from formwright.testing.stage_contract import StageContract


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        yield


class TestSum(StageContract):
    changes: ClassVar[dict[str, Any]] = {"seed": 5}

    def pipeline(self) -> Pipeline:
        return Pipeline(Sum())


class TestSumOfSum(StageContract):
    changes: ClassVar[dict[str, Any]] = {"steps": 2}

    def pipeline(self) -> Pipeline:
        first = Sum(seed=3)
        return Pipeline(first, Sum(before=first))


@dataclass(frozen=True)
class WritesInPlace(Sum):
    """Write the artifact before the work is done, and take it for done where it is there."""

    def make(self, run: StageRun) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        path = run.folder / "sum.json"
        if not path.is_file():
            path.write_bytes(b"1234")


@dataclass(frozen=True)
class Gambles(Sum):
    def make(self, run: StageRun) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "sum.json").write_text(json.dumps(str(uuid.uuid4())))


@dataclass(frozen=True)
class AddsToWhatIsThere(Sum):
    """Begin anew after an interruption, and keep what was written before it."""

    def make(self, run: StageRun) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        path = run.folder / "sum.json"
        for _ in range(3):
            path.write_text((path.read_text() if path.is_file() else "") + "1")


@dataclass(frozen=True)
class RemembersItsPlace(Sum):
    def make(self, run: StageRun) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "sum.json").write_text(json.dumps(str(run.folder)))

    def load(self, run: StageRun) -> Any:
        return Path(json.loads((run.folder / "sum.json").read_text())).stat()


@dataclass(frozen=True)
class LeavesNothing(Sum):
    def make(self, run: StageRun) -> None:
        run.tell("done")


@dataclass(frozen=True)
class TakesEverythingForExtents(Sum):
    seed: int = option(1, extent=True)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (WritesInPlace, "test_it_goes_on_exactly_after_a_kill_at_any_write"),
        (AddsToWhatIsThere, "test_it_goes_on_exactly_after_a_kill_at_any_write"),
        (Gambles, "test_the_same_options_make_the_same_artifact"),
        (RemembersItsPlace, "test_the_same_options_make_the_same_artifact"),
        (RemembersItsPlace, "test_what_is_done_is_not_made_again_also_where_the_folder_moved"),
        (LeavesNothing, "test_what_is_done_is_not_made_again_also_where_the_folder_moved"),
        (TakesEverythingForExtents, "test_other_options_are_refused_and_overwritten_on_request"),
    ],
)
def test_a_broken_promise_is_found(kind: type[Sum], promise: str, tmp_path: Path) -> None:
    class Check(StageContract):
        changes: ClassVar[dict[str, Any]] = {"seed": 5}

        def pipeline(self) -> Pipeline:
            return Pipeline(kind())

    with pytest.raises((AssertionError, OSError, ValueError, pytest.fail.Exception)):
        getattr(Check(), promise)(tmp_path)


def test_the_pipeline_must_be_given() -> None:
    with pytest.raises(TypeError, match="abstract method"):
        StageContract()  # type: ignore[abstract]
