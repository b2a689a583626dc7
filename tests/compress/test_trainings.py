"""The trainings of a compression: each is done once, goes on where it was stopped, and changes nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.cli.letters import LETTERS, SEVERAL
from tests.cli.letters import table as letters
from tests.cli.training import table
from tests.compress.tiny import BERT, bert, job

from formwright.compress import trainings
from formwright.compress.folders import Folders, read_importance
from formwright.compress.job import Started
from formwright.compress.models import read_model
from formwright.compress.pacing import Pacing, Schedule
from formwright.compress.plan import ORDERS, Order, Plan
from formwright.compress.space import ordering, search_space, space_scores
from formwright.compress.trainings import Conduct, Work, is_trained, make_network, super_network, teacher
from formwright.core.errors import IllegalInput
from formwright.core.records import Request
from formwright.cost import params
from formwright.evaluate.context import Context
from formwright.evaluate.shared import Shared, SharedWeights
from formwright.nn.heads import HeadSpec
from formwright.nn.task_model import TaskModel
from formwright.space.zoo.elastic_choices import ElasticChoices
from formwright.study.config import TaskChoice
from formwright.supernet.importance import magnitude, uniform
from formwright.train.fit import Run
from formwright.train.judge import batch_of, judge
from formwright.train.loop import Paused, Saving, scores_of
from formwright.train.weights_digest import weights_digest

pytestmark = pytest.mark.slow
PLAN = Plan(teacher_steps=6, network_steps=6, evaluations=1)


def conduct(told: list[str] | None = None, stop: Callable[[str, int], bool] = lambda *_: False) -> Conduct:
    """Save every second step, note what is done, and stop where that is wished."""

    @contextmanager
    def conducted(what: str, folder: Path, steps: int) -> Iterator[Run]:
        def after_step(step: int, _: float) -> None:
            if told is not None:
                told.append(f"{what} {step}")
            if stop(what, step):
                raise Paused

        assert steps == 6
        yield Run(Saving(folder, 2), after_step=after_step)

    return conducted


def digest(model: TaskModel) -> str:
    return weights_digest(model.state_dict())


@pytest.fixture
def started(tmp_path: Path) -> Started:
    return job(tmp_path).started()


def taught(started: Started, folders: Folders, how: Conduct | None = None, plan: Plan = PLAN) -> TaskModel:
    return teacher(work(started, folders, how or conduct(), plan))


def work(started: Started, folders: Folders, how: Conduct, plan: Plan = PLAN) -> Work:
    return Work(started.begun, started.method, folders, Pacing(Schedule(plan)), how)


def drawn(started: Started, folders: Folders) -> ElasticChoices:
    return search_space(BERT, started.reaches(started.costs(None)), started.method, folders)[0]


def test_the_teacher_is_trained_once_and_read_afterwards(started: Started, tmp_path: Path) -> None:
    folders, told = Folders(tmp_path / "out"), list[str]()
    first = taught(started, folders, conduct(told))
    assert told == [f"fine-tuning {step}" for step in range(6)]
    assert digest(taught(started, folders, conduct(told))) == digest(first)
    assert len(told) == 6
    importance = read_importance(folders.importance)
    assert [len(scores) for scores in importance.scores] == [4, 64] * 2
    assert importance.hidden is None
    assert not folders.checkpoints("teacher").exists()


@pytest.mark.parametrize("at", [0, 1, 3, 5])
def test_a_teacher_that_was_stopped_is_the_same_in_the_end(at: int, started: Started, tmp_path: Path) -> None:
    whole, cut = Folders(tmp_path / "whole"), Folders(tmp_path / "cut")
    wanted = taught(started, whole)
    with pytest.raises(Paused):
        taught(started, cut, conduct(stop=lambda _, step: step == at))
    assert not cut.teacher.exists()
    told: list[str] = []
    assert digest(taught(started, cut, conduct(told))) == digest(wanted)
    assert told == [f"fine-tuning {step}" for step in range(at + 1, 6)]
    for found, scores in zip(
        read_importance(cut.importance).scores, read_importance(whole.importance).scores, strict=True
    ):
        assert found.tolist() == scores.tolist()


def test_a_teacher_that_was_killed_before_it_was_written_is_the_same(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = Folders(tmp_path / "whole"), Folders(tmp_path / "cut")
    wanted = taught(started, whole)

    def full(*_: object) -> None:
        raise IllegalInput("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(trainings, "save", full)
        with pytest.raises(IllegalInput, match="full"):
            taught(started, cut)
    told: list[str] = []
    assert digest(taught(started, cut, conduct(told))) == digest(wanted)
    assert told == []  # the checkpoint of its end was there
    for found, scores in zip(
        read_importance(cut.importance).scores, read_importance(whole.importance).scores, strict=True
    ):
        assert found.tolist() == scores.tolist()


@pytest.mark.parametrize("order", ["first-order", "movement"])
def test_a_model_that_answers_the_task_stays_its_own_teacher(order: Order, tmp_path: Path) -> None:
    folder = bert(tmp_path, "known", HeadSpec("sequence-classification", 2), labels=("no", "yes"))
    started = job(tmp_path, model=folder, order=order).started()
    assert started.begun.is_finetuned
    assert is_trained(started.begun, order) == (order == "movement")
    folders, told = Folders(tmp_path / "out"), list[str]()
    known = taught(started, folders, conduct(told))
    assert digest(known) == weights_digest(started.begun.imported.weights)
    assert len(told) == (6 if order == "movement" else 0)  # only to see where its weights move
    assert any(scores.any() for scores in space_scores(started.method, folders).scores)


def test_answers_of_a_teacher_that_was_removed_are_not_those_of_the_next(started: Started, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "out")
    folders.out.mkdir()
    folders.answers.write_bytes(b"what another teacher said")
    taught(started, folders)
    assert not folders.answers.exists()


def test_a_hastened_teacher_is_trained_at_its_higher_rate(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []

    def watched(*given: Any, **more: Any) -> None:
        rates.append(given[0].recipe.learning_rate)
        go_on(*given, **more)

    go_on = trainings.go_on
    monkeypatch.setattr(trainings, "go_on", watched)
    hurried = replace(started, job=replace(started.job, hastened=True, teacher_epochs=4.0))
    taught(started, Folders(tmp_path / "usual"))
    taught(hurried, Folders(tmp_path / "hurried"))
    assert rates == [1e-3, hurried.method.teacher_rate(6)]
    assert rates[0] < rates[1]


def test_the_hidden_size_is_scored_where_it_may_shrink(tmp_path: Path) -> None:
    started = job(tmp_path, hidden=(8,)).started()
    folders = Folders(tmp_path / "out")
    known = taught(started, folders)
    found = read_importance(folders.importance)
    assert found.hidden is not None
    assert (len(found.hidden), found.pooled is not None) == (16, True)
    choices = drawn(started, folders)
    assert choices.hidden == (8, 16)
    scores = ordering(known, started.method, folders)
    network = make_network(known, choices, scores, started.method)  # narrower embeddings have to be learned
    assert all(weight.requires_grad for weight in network.parameters())


@pytest.mark.parametrize("order", ORDERS)
def test_the_super_network_says_at_first_what_the_teacher_says(order: Order, tmp_path: Path) -> None:
    started = job(tmp_path, order=order).started()
    folders = Folders(tmp_path / "out")
    known = taught(started, folders)
    scores = ordering(known, started.method, folders)
    wanted = {
        "l1": magnitude(dict(known.named_parameters()), BERT),
        "none": uniform(BERT),
    }.get(order, space_scores(started.method, folders))
    for found, expected in zip(scores.scores, wanted.scores, strict=True):
        assert found == pytest.approx(expected)
    network = make_network(known, drawn(started, folders), scores, started.method).eval()
    batch = batch_of(started.begun.prepared, started.begun.prepared.validation, np.arange(8))
    with torch.inference_mode():
        said, expected_said = scores_of(network.model, batch), scores_of(known.eval(), batch)
    assert (said - expected_said).abs().max() < 1e-5
    assert (digest(network.model) == digest(known)) == (order == "none")


def networked(started: Started, folders: Folders, how: Conduct | None = None) -> TaskModel:
    known = taught(started, folders)
    super_network(work(started, folders, how or conduct()), known, drawn(started, folders))
    return read_model(folders.network)


def test_the_super_network_is_trained_once(started: Started, tmp_path: Path) -> None:
    folders, told = Folders(tmp_path / "out"), list[str]()
    first = networked(started, folders, conduct(told))
    assert told == [f"super-network {step}" for step in range(6)]
    assert digest(networked(started, folders, conduct(told))) == digest(first)
    assert len(told) == 6
    known = dict(taught(started, folders).named_parameters())
    for name, weight in first.named_parameters():  # all sub-networks have the embedding of the teacher
        assert torch.equal(weight, known[name]) == name.startswith("transformer.encoder.embedding."), name
    assert not folders.checkpoints("network").exists()
    assert not folders.answers.exists()


def test_a_damaged_super_network_is_told_before_the_search(started: Started, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "out")
    networked(started, folders)
    (folders.network / "model.safetensors").write_bytes(b"cut short")
    known, choices = taught(started, folders), drawn(started, folders)
    with pytest.raises(IllegalInput, match=r"super-network: .*remove the folder, and its stage is done anew"):
        super_network(work(started, folders, conduct()), known, choices)


def test_checkpoints_that_a_kill_left_behind_a_finished_stage_are_removed(started: Started, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "out")
    networked(started, folders)
    left = [folders.checkpoints("teacher"), folders.checkpoints("network")]
    for folder in left:
        (folder / "step-6").mkdir(parents=True)
    folders.answers.touch()
    networked(started, folders)
    assert not any(folder.exists() for folder in (*left, folders.answers))


@pytest.mark.parametrize("at", [0, 3])
def test_a_super_network_that_was_stopped_is_the_same_in_the_end(at: int, started: Started, tmp_path: Path) -> None:
    wanted = networked(started, Folders(tmp_path / "whole"))
    cut = Folders(tmp_path / "cut")
    with pytest.raises(Paused):
        networked(started, cut, conduct(stop=lambda _, step: step == at))
    assert not cut.network.exists()
    assert cut.answers.is_file()  # the teacher is not asked again
    told: list[str] = []
    assert digest(networked(started, cut, conduct(told))) == digest(wanted)
    assert told == [f"super-network {step}" for step in range(at + 1, 6)]


@pytest.mark.long
def test_seeds_decide(tmp_path: Path) -> None:
    table(tmp_path)
    model = bert(tmp_path)
    found = {
        digest(networked(job(tmp_path, model=model, seed=seed).started(), Folders(tmp_path / name)))
        for name, seed in (("a", 0), ("b", 1), ("c", 0))
    }
    assert len(found) == 2


@pytest.mark.parametrize(("order", "known"), [("first-order", False), ("movement", True)])
def test_several_labels_are_learned_scored_and_judged(order: Order, known: bool, tmp_path: Path) -> None:
    task = TaskChoice(str(letters(tmp_path)), text=("words",), label="letters", kind="multi-label")
    model = bert(tmp_path, "known", SEVERAL, labels=LETTERS) if known else bert(tmp_path)
    started = job(tmp_path, model=model, task=task, order=order).started()
    assert started.begun.is_finetuned == known
    folders = Folders(tmp_path / "out")
    network = networked(started, folders)
    assert network.spec == SEVERAL
    assert any(scores.any() for scores in read_importance(folders.importance).scores)
    found = Shared(SharedWeights(network, started.begun.prepared), params).evaluate(Request(BERT), Context(seed=0))
    assert found.metrics == judge(network, started.begun.prepared, started.begun.prepared.validation)
    assert found.metrics.keys() == {"micro-f1", "macro-f1", "subset-accuracy"}
