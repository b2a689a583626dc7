from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.study.cases import own_rows

from formwright.core.rng import derive
from formwright.evaluate.final import openings
from formwright.nn.build import build
from formwright.nn.hf.save import load_folder, save_pretrained_folder
from formwright.nn.task_model import TaskModel
from formwright.space.zoo import load_space
from formwright.study.assemble import make_final_trainer, make_trainer
from formwright.study.candidates import Candidate
from formwright.study.delivered import Delivered, card_of_model, delivered
from formwright.study.finish import deliver, made_before
from formwright.study.place import Opened, create, find


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path)).open() as found:
        yield found


def candidate() -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("trial-7", "best", space.card(space.sample(derive(4))), 7)


def test_a_folder_that_was_emptied_or_damaged_is_no_delivered_model(opened: Opened) -> None:
    model = Delivered("trial-7", "best", candidate().card.digest, "", 1, 5, {"accuracy": 0.5}, None, 7)
    opened.log.append("note", "me", {"model": asdict(model)})
    folder = Path(delivered(opened)["trial-7"].path)
    folder.mkdir(parents=True)
    assert made_before(opened, candidate()) is None
    folder.rmdir()
    save_pretrained_folder(build(candidate().card), folder)
    assert made_before(opened, candidate()) == delivered(opened)["trial-7"]
    for name in ("config.json", "model.safetensors"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
        assert made_before(opened, candidate()) is None
        (folder / name).write_bytes(content)
    assert made_before(opened, candidate()) == delivered(opened)["trial-7"]


def test_delivered_models_stop_early_and_trials_do_not(tmp_path: Path) -> None:
    config = own_rows(tmp_path, final_steps=60)
    final = make_final_trainer(config).training
    assert final.judge_every is not None
    assert (final.recipe.steps, final.least) == (60, 30)
    assert make_trainer(config).training.judge_every is None


@pytest.mark.slow
def test_a_delivered_model_loads_and_is_noted_and_tested_once(opened: Opened, tmp_path: Path) -> None:
    steps: list[int] = []
    found = deliver(opened, candidate(), lambda step, _: steps.append(step))
    assert len(steps) == opened.config.final_steps == found.steps
    assert (found.name, found.role, found.trial, found.digest) == ("trial-7", "best", 7, candidate().card.digest)
    assert found.path == str(tmp_path / "mine" / "models" / "trial-7")
    assert card_of_model(found) == candidate().card
    model = load_folder(found.path)
    assert isinstance(model, TaskModel)
    assert model.transformer.card == candidate().card
    check_scores(found.validation)
    check_scores(found.test)
    readme = (Path(found.path) / "README.md").read_text(encoding="utf-8")
    assert "test accuracy" in readme
    assert "flexibert-nano" in readme
    assert str(tmp_path) not in readme
    assert delivered(opened) == {"trial-7": found}
    opened_before = openings(tmp_path / "mine" / "final" / "trial-7")
    assert len(opened_before) == 1

    def fail(_: int, __: float) -> None:
        pytest.fail("trained again")

    assert deliver(opened, candidate(), fail) == found
    moved = (tmp_path / "mine").rename(tmp_path / "moved")
    with find(str(moved)).open() as again:
        kept = deliver(again, candidate(), fail)
        assert kept.path == str(moved / "models" / "trial-7")
        assert card_of_model(kept) == candidate().card
    assert openings(moved / "final" / "trial-7") == opened_before


def check_scores(scores: Mapping[str, float] | None) -> None:
    assert scores is not None
    assert 0.0 <= scores["accuracy"] <= 1.0
