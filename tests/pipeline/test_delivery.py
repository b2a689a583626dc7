from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.pipeline.cases import create, own_rows

from formwright.core.rng import derive
from formwright.evaluate.final import openings
from formwright.nn.build import build
from formwright.nn.hf.save import load_folder, save_pretrained_folder
from formwright.nn.task_model import TaskModel
from formwright.pipeline import delivery
from formwright.pipeline.candidates import Candidate, Miss, TooSlow, misses
from formwright.pipeline.delivered import Delivered, card_of_model, delivered
from formwright.pipeline.delivery import _trainer, deliver, made_before, measured_in_time, refuse_slow
from formwright.pipeline.run_folder import Opened, find
from formwright.space.zoo import load_space


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
    with create(tmp_path / "mine", own_rows(tmp_path, final_steps=60)).open() as opened:
        final = _trainer(opened).training
        assert final.judge_every is not None
        assert (final.recipe.steps, final.least) == (60, 30)
        assert opened.search.setting(opened.here).trainer.training.judge_every is None


@pytest.mark.slow
def test_a_delivered_model_loads_and_is_noted_and_tested_once(opened: Opened, tmp_path: Path) -> None:
    steps: list[int] = []
    found = deliver(opened, candidate(), lambda step, _: steps.append(step))
    assert len(steps) == opened.deliver.steps == found.steps
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


TARGETS = {"nine": "latency_ms<=9", "eight": "latency_ms<=8", "half": "macs<=100"}


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path, targets=TARGETS)).open() as found:
        yield found


def keeping(*keeps: str) -> Candidate:
    space = load_space("flexibert-nano")
    return Candidate("nine", "front", space.card(space.sample(derive(4))), 7, keeps)


def test_what_keeps_its_targets_is_borne_and_so_is_one_that_has_to_keep_none(timed: Opened) -> None:
    refuse_slow(timed, keeping("nine", "eight", "half"), {"latency_ms": 8.0, "macs": 100.0})
    refuse_slow(timed, keeping(), {"latency_ms": 80.0})
    assert misses(timed.log.read()) == {}


def test_every_target_that_is_missed_is_noted(timed: Opened) -> None:
    with pytest.raises(TooSlow, match=r"trial 7 was measured, and 8.5 is beyond latency_ms<=8$"):
        refuse_slow(timed, keeping("nine", "eight"), {"latency_ms": 8.5, "macs": 1.0})
    digest = keeping().card.digest
    assert misses(timed.log.read()) == {"eight": {digest: Miss("eight", digest, 7, 8.5)}}
    with pytest.raises(TooSlow, match=r"9.5 is beyond latency_ms<=9, 9.5 is beyond latency_ms<=8"):
        refuse_slow(timed, keeping("nine", "eight"), {"latency_ms": 9.5})
    assert misses(timed.log.read()).keys() == {"nine", "eight"}


def measured(monkeypatch: pytest.MonkeyPatch, *times: float) -> Iterator[float]:
    """Let the next measurements of models give these times."""
    left = iter(times)
    monkeypatch.setattr(delivery, "_network", lambda _: SimpleNamespace(extracted=lambda card: card))
    monkeypatch.setattr(delivery, "torch_ms", lambda *_: next(left))
    return left


def test_a_busy_moment_is_no_fault_of_the_design(timed: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    left = measured(monkeypatch, 8.5, 7.5, 6.0)
    assert measured_in_time(timed, keeping("nine", "eight")) == 7.5
    assert measured_in_time(timed, keeping("eight")) == 6.0  # and one that keeps it is measured once
    assert list(left) == []


def test_one_that_misses_its_target_twice_is_refused(timed: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, 8.5, 8.25)
    with pytest.raises(TooSlow, match=r"8\.25 is beyond"):
        measured_in_time(timed, keeping("eight"))


def test_other_costs_are_not_measured_in_advance(timed: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch)
    assert measured_in_time(timed, keeping("half")) is None
    assert measured_in_time(timed, keeping()) is None
