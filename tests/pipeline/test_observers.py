"""Observers of a run: what TensorBoard, MLflow and Weights & Biases keep, read back with their own readers."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.compressions import Told

import formwright as fw
from formwright.core.errors import IllegalDesign, IllegalInput, MissingExtra, UnknownName
from formwright.core.records import Budget
from formwright.pipeline.observers import OBSERVERS, choose_observers, observing
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import Interrupted, PipelineRun
from formwright.pipeline.search import Search

MODEL = SimpleNamespace(
    name="trial-3", path="models/trial-3", params=1000, validation={"accuracy": 0.5}, test=None, costs={"macs": 2e6}
)


class Remembers:
    """Keep what it is told; it has no `model`, and needs none."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def start(self, run: PipelineRun) -> None:
        self.told.append(("start", run.out.name))

    def stage(self, name: str) -> None:
        self.told.append(("stage", name))

    def step(self, stage: str, step: int, loss: float) -> None:
        self.told.append(("step", stage, step, loss))

    def trial(self, number: int, metrics: Mapping[str, float], reason: str) -> None:
        self.told.append(("trial", number, dict(metrics), reason))

    def end(self, run: PipelineRun, state: str) -> None:
        self.told.append(("end", state))


def score(card: Any, budget: Budget) -> float:
    if len(card.encoder.layers) == 4:
        raise ValueError("too deep")
    return len(card.encoder.layers)


def a_run(folder: Path, *observers: Any) -> PipelineRun:
    folder.mkdir(parents=True, exist_ok=True)
    pipeline = Pipeline(Search("flexibert-nano"), recipe="mine")
    return PipelineRun(pipeline, folder, display=Told(), observers=choose_observers(observers))


def watched(folder: Path, *observers: Any) -> PipelineRun:
    """Tell observers of everything once."""
    run = a_run(folder, *observers)
    with observing(run):
        for observer in run.observers:
            observer.stage("search")
            for step in range(101):
                observer.step("teacher", step, 1 / (step + 1))
            observer.call("trial", 7, {"accuracy": 0.25, "params": 10.0}, "")
            observer.call("trial", 8, {}, "out of luck")
            observer.model(MODEL)
    assert not run.display.lines  # type: ignore[attr-defined]
    return run


def test_an_observer_is_told_of_every_trial_once(tmp_path: Path) -> None:
    first, second = Remembers(), Remembers()
    study = fw.Study("flexibert-nano", score, ["accuracy:max"], tmp_path / "mine", searcher="random")
    study.run(trials=4, observers=[first])
    trials = {told[1]: told for told in first.told if told[0] == "trial"}
    assert first.told[0] == ("start", "mine")
    assert first.told[-1] == ("end", "finished")
    assert sorted(trials) == [0, 1, 2, 3]
    for trial in study.result().trials:
        assert trials[trial.number][3] == trial.reason
        assert trial.observation is None or trials[trial.number][2] == trial.observation.metrics
    study.run(trials=6, observers=[second])  # it goes on where the first one of its kind ended
    assert [told[1] for told in second.told if told[0] == "trial"] == [4, 5]


def test_an_observer_that_fails_is_reported_once_and_left_out(tmp_path: Path) -> None:
    class Fails(Remembers):
        def step(self, stage: str, step: int, loss: float) -> None:
            raise ConnectionError("nobody is there")

    other, failing = Remembers(), Fails()
    run = a_run(tmp_path / "run", failing, other)
    with observing(run):
        for step in range(3):
            for observer in run.observers:
                observer.step("search", step, 0.5)
    assert [told[0] for told in other.told] == ["start", "step", "step", "step", "end"]
    assert [told[0] for told in failing.told] == ["start"]
    (line,) = run.display.lines  # type: ignore[attr-defined]
    assert "Fails" in line
    assert "nobody is there" in line


@pytest.mark.parametrize(
    ("error", "state"), [(None, "finished"), (Interrupted("here"), "stopped"), (RuntimeError("oh"), "failed")]
)
def test_the_end_is_told_however_it_comes(error: Exception | None, state: str, tmp_path: Path) -> None:
    observer = Remembers()
    with suppress(Interrupted, RuntimeError), observing(a_run(tmp_path / "run", observer)):
        if error is not None:
            raise error
    assert observer.told[-1] == ("end", state)


def test_observers_are_chosen_by_name_with_options(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("tensorboard")
    (found,) = choose_observers(["tensorboard:every=3,folder=logs"])
    assert (found.NAME, found.every, found.folder) == ("tensorboard", 3, "logs")
    assert choose_observers("tensorboard")[0].every == 10


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ("tensorbord", UnknownName, "tensorboard"),
        ("tensorboard:every", IllegalInput, "tensorboard:OPTION=VALUE"),
        ("tensorboard:evry=3", IllegalDesign, "every"),
        (Remembers, IllegalInput, r"Remembers\(\)"),
    ],
)
def test_observers_that_do_not_exist_are_refused(given: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        choose_observers([given])


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_package_is_answered_with_the_line_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = OBSERVERS.get(name).MODULE
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"formwright\[{name}\]"):
        fw.Study("flexibert-nano", score, ["accuracy:max"], tmp_path / "mine").run(trials=1, observers=[name])
    assert not (tmp_path / "mine").exists()


@pytest.mark.filterwarnings("ignore")  # of the package
def test_tensorboard_reads_its_event_files(tmp_path: Path) -> None:
    reader = import_module("tensorboard.backend.event_processing.event_accumulator")
    watched(tmp_path / "run", "tensorboard:every=50")
    found = reader.EventAccumulator(str(tmp_path / "run" / "observers" / "tensorboard"))
    found.Reload()
    assert [(one.step, one.value) for one in found.Scalars("trial/accuracy")] == [(7, 0.25)]
    assert [one.step for one in found.Scalars("loss/teacher")] == [0, 50, 100]
    assert [one.step for one in found.Scalars("trial/failed")] == [8]
    assert found.Scalars("model/trial-3/macs")[0].value == 2e6
    texts = {tag: found.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in found.Tags()["tensors"]}
    assert "flexibert-nano" in texts["pipeline/text_summary"]
    assert texts["failures/text_summary"] == "out of luck"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package
def test_mlflow_reads_its_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = import_module("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "run"
    watched(out, "mlflow")
    (out / "report.html").write_text("<p>page</p>", encoding="utf-8")
    watched(out, "mlflow")  # a resumed run is one run
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{out / 'observers' / 'mlflow' / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("formwright").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run"
    assert run.data.metrics["trial/accuracy"] == 0.25
    assert run.data.metrics["model/trial-3/params"] == 1000
    assert run.data.params["search.space"] == "flexibert-nano"
    assert {one.step for one in client.get_metric_history(run.info.run_id, "loss/teacher")} == {0, 50, 100}
    assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["report.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def chunks(data: bytes) -> Iterator[bytes]:
    """Read the records of a file of Weights & Biases, which is a log of LevelDB in blocks of 32 kB behind 7 bytes."""
    place, found = 7, b""
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:  # the rest of a block is left empty
            place += 32768 - place % 32768
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        found += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield found
            found = b""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package
def test_weights_and_biases_writes_files_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = import_module("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    watched(tmp_path / "run", "wandb:mode=offline")
    wandb.teardown()  # its own process writes the file, and ends with that
    (file,) = (tmp_path / "run" / "observers" / "wandb" / "wandb").glob("offline-run-*/*.wandb")
    records = import_module("wandb.proto.wandb_internal_pb2")
    rows = []
    for data in chunks(file.read_bytes()):
        record = records.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append({item.key or "/".join(item.nested_key): item.value_json for item in record.history.item})
    assert {row.get("trial/accuracy") for row in rows} == {None, "0.25"}
    assert sum("loss/teacher" in row for row in rows) == 11
    assert wandb.run is None


def test_the_command_line_observes_too(tmp_path: Path) -> None:
    import_module("tensorboard")
    from typer.testing import CliRunner

    from formwright.cli.app import app

    file = tmp_path / "run.yaml"
    file.write_text(
        "stages: {search: {stage: search, space: flexibert-nano, evaluator: {name: proxy, proxies: [params]}, "
        "searcher: random, stop: {trials: 2}}}"
    )
    done = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out"), "--observe", "tensorboard"])
    assert done.exit_code == 0, done.output
    assert list((tmp_path / "out" / "observers" / "tensorboard").glob("events.*"))
    for command in ("search", "compress", "train", "resume"):
        assert "--observe" in CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
