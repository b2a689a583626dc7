"""The device of a study: chosen by --device, kept in its settings, and changed only when that is said."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.cli.conftest import Run
from tests.pipeline.cases import create, here, own_rows, quick, search_of

from formwright.cost import LATENCY
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.study_place import find
from formwright.pipeline.task_choice import TrainingChoice


def with_mps(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: there)


@pytest.mark.parametrize(("option", "kept"), [([], "mps"), (["--device", "cpu"], "cpu"), (["--device", "mps"], "mps")])
def test_a_search_keeps_its_device(
    option: list[str], kept: str, run: Run, tmp_path: Path, prepared: list[PipelineRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mps(monkeypatch, there=True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run(
        "search", "flexibert-nano", "--task", "mini-glue/sst2", "--rows", 50, "--out", tmp_path / "one", *option
    ).printed()
    (begun,) = prepared
    training = search_of(begun.pipeline).training
    assert (training.device, training.make().device) == (kept, kept)


def test_a_device_that_is_not_there_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    line = ("search", "flexibert-nano", "--task", "mini-glue/sst2", "--out", tmp_path / "one")
    for device, *ray in (("mps",), ("tpu",), ("tpu", "--ray")):
        run(*line, "--device", device, *ray).refused(device)
    assert not (tmp_path / "one").exists()


def test_a_study_is_resumed_on_its_own_device(run: Run, tmp_path: Path, prepared: list[PipelineRun]) -> None:
    training = TrainingChoice(steps=5, batch=8, length=16, device="mps")
    place = create(tmp_path / "mine", own_rows(tmp_path, training=training))
    done = run("resume", place.folder)
    assert (done.code, prepared) == (2, [])
    assert "mps" in done.err
    assert run("resume", place.folder, "--device", "cpu").code == 0
    assert prepared[-1].notes == {"device": "cpu"}
    with find(str(place.folder)).open() as opened:
        opened.log.append("started", "me", {"begins": True, **prepared[-1].notes})
    with find(str(place.folder)).open() as opened:
        assert opened.search.training.device == "cpu"
    assert run("resume", place.folder).code == 0
    assert prepared[-1].notes == {}  # as in the last run


def test_latency_is_measured_on_the_device_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr("formwright.nn.latency.measured_latency", lambda _, **options: seen.append(options) or 1 / 0)
    with_mps(monkeypatch, there=True)
    made = quick(limits=("latency_ms<=5",), training=TrainingChoice(length=16, device="mps"))
    with pytest.raises(ZeroDivisionError):
        search_of(made).meters(here(made))[LATENCY](SimpleNamespace(digest="a"))  # type: ignore[arg-type]
    assert seen == [{"length": 16, "device": "mps"}]
