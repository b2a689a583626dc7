"""What the last training of a design begins with."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.study.cases import own_rows, quick_config
from tests.study.test_assemble import sharing

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.rng import derive
from formwright.evaluate.branch_files import BRANCHES
from formwright.evaluate.from_store import FromStore
from formwright.evaluate.pretrained import Pretraining
from formwright.nn.build import build
from formwright.nn.hf.save import load_folder
from formwright.nn.task_model import TaskModel
from formwright.space.zoo import load_space
from formwright.study.assemble import assemble, find_task, make_pretraining, make_training
from formwright.study.candidates import Candidate, candidates
from formwright.study.config import PretrainingChoice
from formwright.study.delivered import undelivered
from formwright.study.final_start import PRETRAINING, final_pretraining, final_start, make_final_start
from formwright.study.finish import deliver
from formwright.study.launch import work_at
from formwright.study.place import Opened, create, find
from formwright.study.stop import Stop
from formwright.train.fit import fresh_model
from formwright.train.prepare import prepare

SPACE = load_space("flexibert-nano")
CARD = SPACE.card(SPACE.sample(derive(0)))
TINY = f"{Path(__file__).parents[1] / 'supernet' / 'branched.py'}:SPACE"


class Killed(BaseException):
    """What nobody catches."""


def test_the_final_training_begins_as_those_of_the_search_do() -> None:
    config = quick_config(evaluator="pretrained", pretraining=PretrainingChoice(40), final_steps=15)
    assert make_pretraining(config, config.final_steps).training.recipe.steps == 120  # three times as long as well
    assert make_final_start(quick_config()) is fresh_model
    prepared = prepare(find_task(config.task), CARD, 16)
    training = make_training(config.training)
    quick = replace(config, pretraining=PretrainingChoice(1))
    pretrained, fresh = (start(CARD, prepared, training) for start in (make_final_start(quick), fresh_model))
    weights = [model.transformer.encoder.embedding.tokens.weight for model in (pretrained, fresh)]
    assert not weights[0].equal(weights[1])
    assert pretrained.head.output.weight.equal(fresh.head.output.weight)  # type: ignore[operator, union-attr]


def test_the_final_training_of_designs_that_shared_weights_begins_with_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []

    def learnt(self: Pretraining, card: Card, *_: Any) -> dict[str, Any]:
        steps.append(self.training.recipe.steps)
        return dict(build(card).state_dict())

    monkeypatch.setattr(Pretraining, "learnt", learnt)
    config = sharing(final_steps=15, pretraining=PretrainingChoice(2))
    space = load_space(config.space)
    card = space.card(space.sample(derive(0)))
    make_final_start(config)(card, prepare(find_task(config.task), card, 16), make_training(config.training))
    assert steps == [15]  # as many as fine-tune it, not three times those of a trial


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a study whose trials shared weights, before anything was delivered."""
    folder = tmp_path_factory.mktemp("searched")
    values = {"space": TINY, "evaluator": "bi-branch", "proxies": (), "objectives": ("accuracy:max",)}
    values |= {"pretraining": PretrainingChoice(2), "final_weights": "store", "stop": Stop(3)}
    assert work_at(create(folder / "study", own_rows(folder, **values))) == 0
    return folder / "study"


@pytest.fixture
def opened(searched: Path, tmp_path: Path) -> Iterator[Opened]:
    """Give a copy of the study of its own."""
    shutil.copytree(searched, tmp_path / "study")
    with find(str(tmp_path / "study")).open() as found:
        yield found


def chosen(opened: Opened) -> dict[str, Candidate]:
    """Give the best design and the one to beat."""
    study = assemble(opened.config, opened.log, opened.place.folder)
    return {candidate.role: candidate for candidate in candidates(study, 1, baseline=True)}


@pytest.mark.slow
def test_a_design_begins_with_what_all_trials_left_and_a_baseline_cannot(opened: Opened, tmp_path: Path) -> None:
    found = chosen(opened)
    start = final_start(opened, found["best"], tmp_path / "own")
    assert isinstance(start, FromStore)
    assert start.store.version == opened.config.stop.trials
    assert start.pretraining == replace(final_pretraining(opened.config), folder=tmp_path / "own" / PRETRAINING)
    assert not isinstance(final_start(opened, found["baseline"], tmp_path / "own"), FromStore)


@pytest.mark.slow
def test_the_model_card_tells_what_a_model_began_with(opened: Opened) -> None:
    told = {role: (Path(deliver(opened, one).path) / "README.md").read_text() for role, one in chosen(opened).items()}
    assert "the weights that the trials shared" in told["best"]
    assert "the weights that the trials shared" not in told["baseline"]


@pytest.mark.long
@pytest.mark.slow
def test_a_delivery_that_was_killed_twice_goes_on_to_the_same_model(
    opened: Opened, searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, done = chosen(opened)["best"], list[int]()
    monkeypatch.setattr("formwright.evaluate.pretrained._SAVE_EVERY", 2)
    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "learnt", _killed_at_step_3(Pretraining.learnt))
        with pytest.raises(Killed):
            deliver(opened, best)
    with pytest.raises(Killed):
        deliver(opened, best, kill)
    (saved,) = (opened.place.folder / "final" / best.name / PRETRAINING).iterdir()
    assert sorted(path.name for path in saved.iterdir()) == ["step-000000004", "step-000000005"]
    disturbed = weights(deliver(opened, best, lambda step, _: done.append(step)).path)
    assert done == list(range(opened.config.final_steps))
    shutil.copytree(searched, tmp_path / "again")
    with find(str(tmp_path / "again")).open() as again:
        undisturbed = weights(deliver(again, best).path)
    assert all(tensor.equal(undisturbed[name]) for name, tensor in disturbed.items())


def kill(step: int, _: float) -> None:
    if step == 3:
        raise Killed


def _killed_at_step_3(learnt: Any) -> Any:
    return lambda *given, **named: learnt(*given, **{**named, "after_step": kill})


def weights(folder: str) -> dict[str, torch.Tensor]:
    model = load_folder(folder)
    assert isinstance(model, TaskModel)
    return dict(model.state_dict())


@pytest.mark.slow
def test_a_store_that_is_lost_is_no_fault_of_the_design(opened: Opened) -> None:
    best, files = chosen(opened)["best"], sorted((opened.place.folder / BRANCHES).iterdir())
    contents = {path: path.read_bytes() for path in files}
    with pytest.MonkeyPatch.context() as patch:
        # as where trials ran side by side: nobody can tell what the lost one began with
        patch.setattr("formwright.evaluate.bi_branch.BiBranch._mend", lambda *_: None)
        files[0].unlink()
        with pytest.raises(IllegalInput, match="put the file back"):
            deliver(opened, best)
        assert not undelivered(opened.log)
        files[0].write_bytes(contents[files[0]])
        assert deliver(opened, best).digest == best.card.digest
