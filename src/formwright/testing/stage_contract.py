"""The contract that every stage keeps, as tests: inherit `StageContract` and give a quick pipeline that ends with it.

class TestMine(StageContract):
    changes = {"steps": 3}

    def pipeline(self):
        return Pipeline(MyStage(steps=2))
"""

import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest

from formwright.core.errors import IllegalInput
from formwright.core.options import Stage
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.run_folder import DONE
from formwright.pipeline.runner import run_pipeline
from formwright.study.folder_lock import alone_in


class Killed(BaseException):
    """What nobody catches: the nearest thing to `kill -9` within a process."""


class StageContract(ABC):
    """Test the last stage of a pipeline against everything that the runner and its users rely on.

    `changes` are options that make another artifact. Of many writes, at most `most_kills` are interrupted. Files that
    hold times or places, and so differ from run to run, are named in `volatile`. A stage that keeps its own record of
    what is done (`CONCURRENT`) overrides `files` and `counted`.
    """

    changes: ClassVar[Mapping[str, Any]] = {}
    most_kills: ClassVar[int] = 25
    volatile: ClassVar[tuple[str, ...]] = ()
    conducted: ClassVar[RunOptions] = RunOptions(workers=1, save_every=1)

    @abstractmethod
    def pipeline(self) -> Pipeline:
        """Give a quick pipeline that ends with the stage; the author of a stage writes this."""

    # --- what a user sees --------------------------------------------------------------------------------------------

    def test_its_options_are_plain_data(self) -> None:
        made = self.pipeline()
        assert Pipeline.from_json(json.loads(json.dumps(made.to_json()))) == made
        assert made == self.pipeline()
        assert made.stages[-1].NAME, "a stage has a name"

    def test_what_is_done_is_not_made_again_also_where_the_folder_moved(self, tmp_path: Path) -> None:
        first = self.run(tmp_path / "run")
        before = self.files(first)
        assert before, "a stage leaves an artifact"
        with self.counted() as made:
            self.run(tmp_path / "run")
            moved = self.run((tmp_path / "run").rename(tmp_path / "moved"))
        assert made == []
        assert self.files(moved) == before
        moved.artifact(moved.pipeline.stages[-1])

    def test_the_same_options_make_the_same_artifact(self, tmp_path: Path) -> None:
        assert self.files(self.run(tmp_path / "one")) == self.files(self.run(tmp_path / "two"))

    def test_checkpoints_are_removed_when_it_is_done(self, tmp_path: Path) -> None:
        run = self.run(tmp_path / "run")
        here = run.stage(run.pipeline.stages[-1])
        assert not here.checkpoints.exists()
        assert (here.folder / DONE).is_file() or self.is_concurrent()

    def test_other_options_are_refused_and_overwritten_on_request(self, tmp_path: Path) -> None:
        if not self.changes:
            pytest.skip("no options are named that make another artifact")
        self.run(tmp_path / "run")
        with pytest.raises(IllegalInput) as caught:
            self.run(tmp_path / "run", self.changed())
        assert all(f".{name}" in str(caught.value) for name in self.changes)
        fresh = self.files(self.run(tmp_path / "fresh", self.changed()))
        assert self.files(self.run(tmp_path / "run", self.changed(), force=True)) == fresh

    def test_its_key_follows_options_inputs_and_contents(self) -> None:
        made = self.pipeline()
        name = list(made.named)[-1]
        key = made.keys({})[name]
        assert made.keys({name: {"rows": "other"}})[name] != key
        if self.changes:
            assert self.changed().keys({})[name] != key

    # --- faults ------------------------------------------------------------------------------------------------------

    def test_it_goes_on_exactly_after_a_kill_at_any_write(self, tmp_path: Path) -> None:
        with self.killed_at(None, tmp_path) as writes:
            whole = self.files(self.run(tmp_path / "whole"))
        number = len(writes)
        assert number, "a stage writes something"
        for turn in sorted({round(share * (number - 1) / self.most_kills) for share in range(self.most_kills + 1)}):
            folder = tmp_path / str(turn)
            with self.killed_at(turn, tmp_path), suppress(Killed):
                self.run(folder)
            assert self.files(self.run(folder)) == whole, f"killed at write {turn + 1} of {number}: {writes[turn]}"
            shutil.rmtree(folder)

    @pytest.mark.parametrize("damage", ["cut", "changed", "lost"])
    def test_an_artifact_that_is_damaged_is_made_again(self, damage: str, tmp_path: Path) -> None:
        run = self.run(tmp_path / "run")
        whole, folder = self.files(run), self.folder(run)
        for name in [*whole, *([] if self.is_concurrent() else [DONE])]:
            _damage(folder / name, damage)
            with self.counted() as made:
                assert self.files(self.run(tmp_path / "run")) == whole
            assert len(made) == 1, f"{name} is {damage}, and nothing was made again"

    def test_two_processes_do_not_work_in_one_folder(self, tmp_path: Path) -> None:
        if self.is_concurrent():
            pytest.skip("several processes may do the work of this stage")
        with alone_in(tmp_path / "run"), pytest.raises(IllegalInput, match="another process"):
            self.run(tmp_path / "run")
        self.run(tmp_path / "run")

    # --- how it is run -----------------------------------------------------------------------------------------------

    def run(self, folder: Path, made: Pipeline | None = None, **options: Any) -> PipelineRun:
        """Run the pipeline in a folder, as another process would."""
        return run_pipeline(PipelineRun(made or self.pipeline(), folder, self.conducted, **options))

    def changed(self) -> Pipeline:
        """Give the pipeline with other options of its last stage."""
        made = self.pipeline()
        stage: Any = made.stages[-1]
        return made.changed({made.name_of(stage): replace(stage, **self.changes)})

    def is_concurrent(self) -> bool:
        return bool(getattr(self.pipeline().stages[-1], "CONCURRENT", False))

    def folder(self, run: PipelineRun) -> Path:
        """Give the folder of what the stage leaves."""
        return run.stage(run.pipeline.stages[-1]).folder

    def files(self, run: PipelineRun) -> dict[str, str]:
        """Give the checksums of what the stage left."""
        folder = self.folder(run)
        names = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        kept = [path for path in names if path.name not in (DONE, *self.volatile)]
        return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """Give the list of the stages that are made meanwhile, apart from those that keep a record of their own."""
        kind = type(self.pipeline().stages[-1])
        make, seen = kind.make, list[str]()

        def noted(stage: Stage, run: Any) -> None:
            seen.append(run.name)
            make(stage, run)

        with patch.object(kind, "make", noted):
            yield seen

    @contextmanager
    def killed_at(self, turn: int | None, within: Path) -> Iterator[list[str]]:
        """Kill whatever runs at a write in a folder, by number: it is left half done, and nothing is tidied up."""
        writes: list[str] = []
        dead: list[bool] = []

        def guard(name: str, real: Callable[..., Any], half: Callable[..., object] | None = None) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                if dead:
                    raise Killed
                if not Path(arguments[0]).is_relative_to(within):
                    return real(*arguments, **options)
                writes.append(f"{name} {arguments[0]}")
                if turn is not None and len(writes) == turn + 1:
                    dead.append(True)
                    if half is not None:
                        half(*arguments)
                    raise Killed
                return real(*arguments, **options)

            return call

        write, text = Path.write_bytes, Path.write_text
        with (
            patch.object(Path, "write_bytes", guard("write", write, lambda p, data: write(p, data[: len(data) // 2]))),
            patch.object(Path, "write_text", guard("write", text, lambda p, data: text(p, data[: len(data) // 2]))),
            patch.object(Path, "replace", guard("replace", Path.replace)),
            patch.object(Path, "rename", guard("rename", Path.rename)),
            patch.object(os, "replace", guard("replace", os.replace)),
            patch.object(Path, "unlink", guard("unlink", Path.unlink)),
            patch.object(shutil, "rmtree", guard("rmtree", shutil.rmtree)),
        ):
            yield writes


def _damage(path: Path, damage: str) -> None:
    if damage == "lost":
        path.unlink()
        return
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] if damage == "cut" else content[:middle] + b"\xff" + content[middle + 1 :])
