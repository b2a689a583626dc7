"""Run the command line in this process and see what a user would see."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from formwright.cli.app import main
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import check_folder


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Read standard output as one JSON value."""
        return json.loads(self.out)

    def printed(self, *facts: object) -> Self:
        """See that the command succeeded and that standard output holds all facts."""
        assert self.code == 0, self.err
        return self._holds(self.out, *facts)

    def refused(self, *facts: object) -> Self:
        """See that the command ended as a user's error: code 2, and only a message, which holds all facts."""
        assert (self.code, self.out) == (2, ""), self.err
        return self._holds(self.err, *facts)

    def _holds(self, text: str, *facts: object) -> Self:
        lines = " ".join(text.split())  # a fact may be broken over lines
        assert not [fact for fact in facts if str(fact) not in text and str(fact) not in lines], text
        return self


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs `formwright` with arguments."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        assert "Traceback" not in seen.out + seen.err
        code = end.value.code
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, seen.out, seen.err)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Give a function that writes JSON data, text or bytes to a file and returns its path."""

    def call(content: object, name: str = "mine.json") -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return call


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search and deliver in this process, where a user has workers, and find no other runtime than torch installed.

    Starting processes, each of which imports torch, takes ten times as long as all they do here.
    """
    in_one_process(monkeypatch)


def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from formwright.pipeline import delivery, run_events

    def run_workers(work: Any, _: int, look: Callable[[], None]) -> bool:
        done = work(lambda: False)
        look()
        return bool(done == 0)

    def side_by_side(opened: Any, chosen: Sequence[Any], *_: object) -> list[Any]:
        return [delivery.deliver_or_say(opened, candidate) for candidate in chosen]

    monkeypatch.setattr(run_events, "run_workers", run_workers)
    monkeypatch.setattr(delivery, "_side_by_side", side_by_side)
    monkeypatch.setitem(sys.modules, "onnx", None)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[PipelineRun]:
    """Give the list of runs that commands would begin now, with every option settled; nothing is made of them."""
    from formwright import api
    from formwright.pipeline.runner import prepare

    seen: list[PipelineRun] = []

    def begin(run: PipelineRun) -> PipelineRun:
        check_folder(run.out, prepare(run), force=run.force)
        seen.append(run)
        return run

    monkeypatch.setattr(api, "run_pipeline", begin)
    for module in ("run", "resume"):
        monkeypatch.setattr(f"formwright.cli.{module}.print_result", lambda *_: None)
    return seen
