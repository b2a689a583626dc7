"""What is said of models delivered for targets, and what a compression notes for the page."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.compress.tiny import BERT, LENGTH, begun, compression, made

from formwright.core.records import Budget, Observation, Request
from formwright.cost import macs, params
from formwright.evaluate.final import openings
from formwright.nn.hf.model_folder import verify_checksums
from formwright.nn.hf.side_files import read_evaluation
from formwright.pipeline.delivered import Delivered, delivered
from formwright.pipeline.run import PipelineRun
from formwright.pipeline.run_folder import Opened
from formwright.pipeline.target_remarks import remarks
from formwright.study.replay import asked_data

pytestmark = pytest.mark.slow
FULL = float(macs(BERT, LENGTH))


def trained(tmp_path: Path, **options: Any) -> PipelineRun:
    run = begun(compression(tmp_path, **options), tmp_path / "out")
    made(run, "super-network")
    search: Any = run.pipeline.named["search"]
    search.place(run.stage(search)).create(run.pipeline, "search")
    return run


def opened(run: PipelineRun) -> Opened:
    search: Any = run.pipeline.named["search"]
    found: Opened = search.place(run.stage(search)).open(run=run)
    return found


def delivered_once(study: Opened, measured: float) -> None:
    """Let the cheapest design be the best, delivered for the first target."""
    space, first = study.search.found_space(study.here), study.search.first_designs(study.here)
    design = space.from_json(first[0])
    card = space.card(design)
    metrics = {"accuracy": 0.9, "macs": float(macs(card, LENGTH))}
    study.log.ask(0, "me", 60, asked_data(Request(card, Budget(), None, design), space, 0))
    study.log.finish(0, "me", "told", {"observation": Observation(metrics).to_json()})
    facts = (card.digest, "", params(card), 0, metrics, None, 0, {"macs": measured})
    study.log.append("note", "me", {"model": asdict(Delivered("macs-75pct", "front", *facts))})


def test_targets_that_share_a_model_say_whose(tmp_path: Path) -> None:
    with opened(trained(tmp_path)) as study:
        delivered_once(study, 0.0)
        (line,) = remarks(study)
    assert line.startswith("macs-50pct is the model macs-75pct")
    assert str(tmp_path / "out" / "models" / "macs-75pct") in line


def test_a_model_that_was_measured_beyond_its_targets_is_named(tmp_path: Path) -> None:
    with opened(trained(tmp_path)) as study:
        delivered_once(study, 0.8 * FULL)
        _, *missed = remarks(study)
        assert [line.split(":")[0] for line in missed] == ["macs-75pct is missed", "macs-50pct is missed"]
        assert f"{0.8 * FULL:.4g}" in missed[0]
        assert f"{0.75 * FULL:.4g}" in missed[0]
        note = next(event.data["model"] for event in study.log.read() if "model" in event.data)
        study.log.append("note", "me", {"model": note | {"costs": {"macs": 0.6 * FULL}}})
        assert len(remarks(study)) == 2  # it is within one of them


def noted(run: PipelineRun) -> dict[str, Any]:
    """Let the stages note what they have to, twice; give what the page finds."""
    with opened(run) as study:
        for _ in range(2):
            for name in ("teacher", "space"):
                stage: Any = run.pipeline.named[name]
                stage.note(run.stage(stage), study)
        notes = [event.data for event in study.log.read() if event.kind == "note"]
    assert len(notes) == 2
    return next(note["compress"] for note in notes if "compress" in note)


def test_the_teacher_and_the_space_are_noted_once(tmp_path: Path) -> None:
    run = trained(tmp_path)
    facts = noted(run)
    with opened(run) as study:
        (teacher,) = delivered(study).values()
    assert (teacher.name, teacher.role, teacher.digest) == ("teacher", "teacher", BERT.digest)
    assert teacher.path == str(tmp_path / "out" / "models" / "teacher")
    assert teacher.costs == {"macs": FULL}  # it is measured in the end, in turns with the others
    assert teacher.test is not None
    assert teacher.validation.keys() == teacher.test.keys() == {"accuracy", "f1"}
    said = read_evaluation(Path(teacher.path))
    assert said is not None
    assert said["scores"] == {"validation": teacher.validation, "test": teacher.test}
    verify_checksums(Path(teacher.path))
    verify_checksums(tmp_path / "out" / "teacher" / "model")
    assert len(openings(tmp_path / "out" / "final" / "teacher")) == 1
    drawn = run.artifact(run.pipeline.named["space"])
    assert (facts["model"], facts["cost"], facts["space"]["full"]) == ("bert", "macs", [[4, 64]] * 2)
    assert facts["space"]["heads"] == [list(one) for one in drawn.choices.heads]
    assert facts["space"]["hidden"] == [16]
    assert [one["cost"] for one in facts["targets"]] == [met.cost for met in drawn.met]
    assert facts["teacher"]["test"] == teacher.test


def test_targets_of_several_costs_and_hidden_sizes_are_noted(tmp_path: Path) -> None:
    run = trained(tmp_path, targets=("macs=75%", "params=90%"), hidden=(8,))
    facts = noted(run)
    assert len(facts["targets"]) == 3
    last = run.artifact(run.pipeline.named["space"]).met[-1]
    assert [(one["measure"], one["cost"]) for one in facts["further"]] == [("params", last.cost)]
    assert facts["space"]["hidden"] == [8, 16]
