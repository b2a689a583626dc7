"""Students that are delivered: taught as wholes, whatever interrupts them, and written as folders that load."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compress.blockwise.small import PLAN, pretended

from formwright.compress.blockwise.choices import Choice, Selection
from formwright.compress.blockwise.folders import Folders
from formwright.compress.blockwise.students import StudentTraining, delivered
from formwright.compress.folders import write_json
from formwright.cost import params
from formwright.nn.hf.load import from_hf
from formwright.train.fit import Run
from formwright.train.loop import Saving

pytestmark = pytest.mark.slow


def test_models_load_and_are_what_was_chosen(whole: Selection, models: list[dict[str, object]]) -> None:
    assert [model["name"] for model in models] == ["3k", "6k"]
    for model in models:
        imported = from_hf(Path(str(model["path"])))
        assert imported.head is None
        assert imported.card.digest == model["digest"]
        assert params(imported.card) == model["params"]
        assert imported.tokenizer_files
    assert not list(whole.folders.out.glob("checkpoints/student-*"))


def test_what_was_delivered_is_not_taught_again(
    whole: Selection, chosen: dict[str, Choice], models: list[dict[str, object]]
) -> None:
    for name, choice in chosen.items():
        saving = Saving(whole.folders.student(name, PLAN.student_steps), 1)
        run = Run(saving, after_step=lambda *_: pytest.fail("it was done before"))
        StudentTraining(whole, name, choice).run(run)
        assert not saving.folder.exists()
    assert len(models) == len(chosen)


def test_an_interruption_changes_nothing(
    whole: Selection, chosen: dict[str, Choice], models: list[dict[str, object]]
) -> None:
    training = StudentTraining(whole, "3k", chosen["3k"])  # which was paused, as the fixture does with all
    folder, facts = whole.folders.model("3k"), whole.folders.facts("3k")
    before = (folder / "model.safetensors").read_bytes()
    facts.unlink()
    training.run(Run())
    assert (folder / "model.safetensors").read_bytes() == before
    assert facts.is_file()
    assert models[0]["name"] == "3k"


def test_delivered_models_are_measured_as_operations_are_and_held_to_their_limits(
    whole: Selection, models: list[dict[str, object]], tmp_path: Path
) -> None:
    assert [model["exceeded"] for model in models] == [[], []]
    folders = Folders(tmp_path / "out")
    for name, facts in zip(("3k", "6k-1ms"), models, strict=True):
        plain = {key: value for key, value in facts.items() if key not in ("latency_ms", "exceeded")}
        write_json(folders.facts(name), {**plain, "name": name})
    times = iter((1.5, 1.3, 1.4, 1.2, 1.6, 1.7))  # in turns
    found = delivered(replace(whole, folders=folders), lambda _: next(times))
    assert [(model["name"], model["latency_ms"], model["exceeded"]) for model in found] == [
        ("3k", 1.4, []),
        ("6k-1ms", 1.2, ["latency_ms"]),
    ]
    assert delivered(replace(whole, folders=folders), lambda _: pytest.fail("it was measured before")) == found


def test_models_are_named_where_they_are_and_other_files_beside_them_do_not_count(
    whole: Selection, models: list[dict[str, object]], tmp_path: Path
) -> None:
    shutil.copytree(whole.folders.out, tmp_path / "moved")
    folders = Folders(tmp_path / "moved")
    for name, content in (("scores", "{}"), ("notes", "[]"), ("cut", "{")):
        folders.facts(name).write_text(content, encoding="utf-8")
    found = delivered(replace(whole, folders=folders), pretended)
    assert [model["path"] for model in found] == [str(folders.model(name)) for name in ("3k", "6k")]
    assert [model["digest"] for model in found] == [model["digest"] for model in models]
