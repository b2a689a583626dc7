"""What delivered models cost: counted at one length, and measured in turns in one session."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.nn.test_latency import ONE
from tests.nn.test_timing import Machine
from tests.pipeline.cases import create, own_rows

from formwright.arch.card import Card
from formwright.arch.heads import HeadSpec
from formwright.core.errors import EvaluationFailed
from formwright.cost import COSTS, MeasuredCost, macs, params
from formwright.nn import latency
from formwright.nn.build import build
from formwright.nn.hf.imported import load_folder
from formwright.nn.hf.save import save_pretrained_folder
from formwright.nn.measurement import Latency, Measurable, ModelFolder, TimingSettings
from formwright.nn.timing import timed_in_turns
from formwright.pipeline import measure_models
from formwright.pipeline.chosen_designs import Candidate
from formwright.pipeline.compare import conclusion
from formwright.pipeline.delivered import (
    Delivered,
    MeasurementSession,
    Miss,
    delivered,
    last_session,
    measured_models,
    misses,
)
from formwright.pipeline.measure_models import (
    TargetMissed,
    check_targets,
    cost_facts,
    counted_costs,
    measure_delivered,
    measured_before,
    measured_limits,
)
from formwright.pipeline.study_place import Opened
from formwright.space.zoo import load_space

TWO = HeadSpec("sequence-classification", 2)
SPACE = load_space("flexibert-nano")
CARDS = sorted((SPACE.card(design) for design in islice(SPACE.enumerate(), 40)), key=macs)
LARGE, SMALL = CARDS[-1], CARDS[0]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    limits = {"objectives": ("accuracy:max", "latency_ms:min"), "limits": ("flops<=1e12",)}
    with create(tmp_path / "mine", own_rows(tmp_path, **limits)).open() as found:
        for name, card in (("baseline", LARGE), ("trial-1", SMALL)):
            folder = tmp_path / "mine" / "models" / name
            save_pretrained_folder(build(card, head=TWO), folder)
            role: Any = "baseline" if name == "baseline" else "best"
            note = Delivered(name, role, card.digest, str(folder), params(card), 5, {"accuracy": 0.5}, None, 1)
            found.log.append("note", "me", {"model": asdict(replace(note, costs=counted_costs(found, card)))})
        yield found


def on(machine: Machine, models: Sequence[Measurable], trial: TimingSettings) -> list[Latency]:
    """Let models take a second for each million operations on a machine that the test turns by hand."""

    def run(model: Measurable) -> AbstractContextManager[Any]:
        assert isinstance(model, ModelFolder)
        loaded = load_folder(model.path)
        card = loaded.card if not hasattr(loaded, "transformer") else loaded.transformer.card
        return machine.run(macs(card, trial.length) / 1e6)()

    clock = machine.clock(processor=False)
    times = timed_in_turns([partial(run, model) for model in models], trial.runs, trial.warmup, clock)
    return [replace(ONE, median_ms=time.median_ms) for time in times]


def test_the_ratio_is_right_though_the_machine_was_busy_at_first(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = opened.search.training.length
    busy = Machine(lambda now: 7.0 if now < 100 * macs(LARGE, length) / 1e6 else 1.0)
    monkeypatch.setattr(measure_models, "measure_in_turns", partial(on, busy))
    models = measure_delivered(opened, list(delivered(opened).values()))
    times = {model.name: model.costs["latency_ms"] for model in models}
    expected = macs(LARGE, length) / macs(SMALL, length)
    assert times["baseline"] / times["trial-1"] == pytest.approx(expected)
    assert {name: model.costs["latency_ms"] for name, model in measured_models(opened).items()} == times


def test_a_sitting_is_noted_and_written_into_the_model_cards_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def times(models: Sequence[Measurable], trial: TimingSettings) -> list[Latency]:
        calls.append(trial.length)
        return [replace(ONE, median_ms=2.0 + len(calls), busy=True) for _ in models]

    monkeypatch.setattr(measure_models, "measure_in_turns", times)
    known = list(delivered(opened).values())
    first, again = measure_delivered(opened, known), measure_delivered(opened, known)
    assert first == again
    length = opened.search.training.length
    assert calls == [length]
    session = last_session(opened.log.read())
    assert session is not None
    assert (session.length, session.device, session.threads, session.busy) == (length, "cpu", 1, True)
    for model, card in zip(first, (LARGE, SMALL), strict=True):
        readme = (Path(model.path) / "README.md").read_text(encoding="utf-8")
        assert f"| multiply-accumulates at {length} tokens | {macs(card, length):,} |" in readme
        assert f"| flops at {length} tokens | {2 * macs(card, length):,} |" in readme
        assert f"milliseconds of one row at {length} tokens in torch, one thread | 3.00 |" in readme
        assert "128 tokens" not in readme
        assert readme.count("## Costs") == 1
    other = replace(known[0], name="trial-9", path=known[1].path)
    opened.log.append("note", "me", {"model": asdict(other)})
    (Path(known[0].path).parent / "trial-9").symlink_to(known[0].path)
    measure_delivered(opened, [other])
    assert len(calls) == 2  # with all the others


def test_models_that_are_gone_are_left_out(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        measure_models, "measure_in_turns", lambda models, _: seen.append(len(models)) or [ONE] * len(models)
    )
    known = list(delivered(opened).values())
    (Path(known[0].path) / "model.safetensors").unlink()
    found = measure_delivered(opened, known)
    assert seen == [1]
    assert ["latency_ms" in model.costs for model in found] == [False, True]


def test_nothing_is_measured_where_latency_is_no_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_models, "measure_in_turns", lambda *_: pytest.fail("measured"))
    with create(tmp_path / "mine", own_rows(tmp_path)).open() as opened:
        assert measure_delivered(opened, []) == []
        facts = cost_facts(opened, "trial-1", SMALL, counted_costs(opened, SMALL))
    length = opened.search.training.length
    assert facts == {"parameters": params(SMALL), f"multiply-accumulates at {length} tokens": macs(SMALL, length)}


@pytest.mark.parametrize(("times", "told"), [((9.5, 8.5), "at most 9 at"), ((9.2, 9.9), "exceeded")])
def test_a_model_beyond_its_target_gets_a_second_sitting_and_the_least_counts(
    times: tuple[float, float], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = own_rows(tmp_path, targets={"nine": "latency_ms<=9"}, objectives=("accuracy:max", "latency_ms:min"))
    left = list(times)
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setattr(measure_models, "measure_in_turns", lambda models, _: [replace(ONE, median_ms=left.pop(0))])
    folder = save_pretrained_folder(build(SMALL, head=TWO), tmp_path / "nine")
    model = Delivered("nine", "front", SMALL.digest, str(folder), params(SMALL), 5, {}, None, 1)
    with create(tmp_path / "mine", config).open() as opened:
        (found,) = measure_delivered(opened, [model])
    assert (found.costs, left) == ({"latency_ms": min(times)}, [])
    assert told in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("times", "kept"), [((9.5, 8.5), True), ((9.2, 9.9), False)])
def test_a_model_that_breaks_a_limit_of_its_search_is_measured_again_and_reported(
    times: tuple[float, float], kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(times)
    monkeypatch.setattr(measure_models, "measure_in_turns", lambda models, _: [replace(ONE, median_ms=left.pop(0))])
    folder = save_pretrained_folder(build(SMALL, head=TWO), tmp_path / "found")
    model = Delivered("found", "best", SMALL.digest, str(folder), params(SMALL), 5, {"accuracy": 0.5}, None, 1)
    with create(tmp_path / "mine", own_rows(tmp_path, limits=("latency_ms<=9", "params<=1"))).open() as opened:
        (found,) = measure_delivered(opened, [model])
        said = [line for line in conclusion(opened, [found]) if "latency_ms<=9" in line]
        assert conclusion(opened, [replace(found, role="baseline")]) == []
    assert (found.costs, left) == ({"latency_ms": min(times)}, [])
    assert len(said) == (not kept)
    assert all(f"latency_ms {min(times)}" in line and str(folder) in line for line in said)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("absent", ["", "onnxruntime"])
def test_runtimes_that_are_installed_are_measured(absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if absent:
        monkeypatch.setitem(sys.modules, absent, None)
    folder = save_pretrained_folder(build(SMALL, head=TWO), tmp_path / "one")
    model = Delivered("one", "front", SMALL.digest, str(folder), params(SMALL), 5, {}, None, 1)
    subjects = measure_models._subjects([model], tmp_path / "onnx", runtimes=True)
    assert [way for _, way, _ in subjects] == ["latency_ms"] + ([] if absent else ["onnx_ms", "int8_ms"])
    found = measure_models.measure_in_turns([one for _, _, one in subjects], TimingSettings(length=16, runs=5))
    assert all(latency.median_ms > 0 for latency in found)


def test_what_was_measured_of_another_model_of_the_same_name_does_not_count() -> None:
    session = MeasurementSession(16, "cpu", 1, False, {"best": {"latency_ms": 2.0}}, {"best": SMALL.digest})
    assert session.of("best", SMALL.digest) == {"latency_ms": 2.0}
    assert session.of("best", LARGE.digest) == {}
    assert session.of("baseline", SMALL.digest) == {}


TARGETS = {"nine": "latency_ms<=9", "eight": "latency_ms<=8", "half": "macs<=100", "small": "memory_mb<=50"}


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Opened]:
    with create(tmp_path / "mine", own_rows(tmp_path, targets=TARGETS)).open() as found:
        yield found


def keeping(*keeps: str) -> Candidate:
    return Candidate("nine", "front", SMALL, 7, keeps)


def test_only_a_target_that_has_to_be_kept_is_missed_and_every_one_is_noted(timed: Opened) -> None:
    check_targets(timed, keeping("nine", "eight", "half"), {"latency_ms": 8.0, "macs": 100.0})
    check_targets(timed, keeping(), {"latency_ms": 80.0})
    assert misses(timed.log.read()) == {}
    with pytest.raises(TargetMissed, match=r"trial 7 .* 8.5 is beyond latency_ms<=8$"):
        check_targets(timed, keeping("nine", "eight"), {"latency_ms": 8.5, "macs": 1.0})
    assert misses(timed.log.read()) == {"eight": {SMALL.digest: Miss("eight", SMALL.digest, 7, 8.5)}}
    with pytest.raises(TargetMissed, match=r"9.5 is beyond latency_ms<=9, 9.5 is beyond latency_ms<=8"):
        check_targets(timed, keeping("nine", "eight"), {"latency_ms": 9.5})
    assert misses(timed.log.read()).keys() == {"nine", "eight"}


def test_targets_in_measured_costs_are_measured_before_a_design_is_trained(
    timed: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [8.5, 7.5, 6.0, 8.5, 8.25, 8.75]
    monkeypatch.setattr(latency, "measured_latency", lambda *_, **__: replace(ONE, median_ms=left.pop(0)))
    assert measured_before(timed, keeping("half")) == measured_before(timed, keeping()) == {}
    assert measured_before(timed, keeping("nine", "eight")) == {"latency_ms": 7.5}  # the first was a busy moment
    assert measured_before(timed, keeping("eight")) == {"latency_ms": 6.0}  # and one that keeps it is measured once
    with pytest.raises(TargetMissed, match=r"8\.25 is beyond"):
        measured_before(timed, keeping("eight"))
    assert left == []


def test_limits_of_the_search_are_measured_again_with_a_margin_before_a_design_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [10.4, 10.6, 10.7, 10.2, 10.6, 10.6, 10.6, 7.5]
    monkeypatch.setattr(latency, "measured_latency", lambda *_, **__: replace(ONE, median_ms=left.pop(0)))
    limits = ("latency_ms<=10", "latency_ms>=8", "params<=1e9")
    with create(tmp_path / "mine", own_rows(tmp_path, limits=limits)).open() as found:
        one = Candidate("trial-7", "best", SMALL, 7)
        assert measured_limits(found, one) == {"latency_ms": 10.4}
        assert measured_limits(found, one) == {"latency_ms": 10.2}  # the third look decides
        for given in ("latency_ms<=10", "latency_ms>=8"):
            with pytest.raises(EvaluationFailed, match=rf"5%.*{given}\.0\b"):
                measured_limits(found, one)
            left += [7.5, 7.5]
        assert measured_limits(found, replace(one, role="baseline")) == {}


class Megabytes:
    """Take a megabyte for each hundred parameters."""

    busy = False

    def __call__(self, card: Card) -> float:
        return params(card) / 100

    def decided(self, card: Card, keeps: Callable[[float], bool]) -> float:
        return self(card)


MEMORY = MeasuredCost("memory_mb", "megabytes", "memory of one forward pass", f"{__name__}:memory_meter")


def memory_meter(length: int, device: str) -> Megabytes:
    return Megabytes()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another package bring a cost that is measured."""
    COSTS.names()
    (known,) = [key for key in COSTS.__dict__ if key.endswith("_entries")]
    entries = COSTS.__dict__[known] | {MEMORY.name: EntryPoint(MEMORY.name, f"{__name__}:MEMORY", COSTS.group)}
    monkeypatch.setitem(COSTS.__dict__, known, entries)


@pytest.mark.usefixtures("memory")
def test_another_measured_cost_is_a_target_and_a_column_too(timed: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_models, "measure_in_turns", lambda models, _: [ONE] * len(models))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(TargetMissed, match=r"is beyond memory_mb<=50"):
        measured_before(timed, keeping("small"))
    folder = save_pretrained_folder(build(SMALL, head=TWO), timed.place.folder / "models" / "small")
    model = Delivered("small", "front", SMALL.digest, str(folder), params(SMALL), 5, {}, None, 1)
    (found,) = measure_delivered(timed, [model])
    assert found.costs == {"latency_ms": ONE.median_ms, "memory_mb": params(SMALL) / 100}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| memory_mb at 16 tokens | {params(SMALL) / 100:.4g} |" in readme
    assert "memory_mb at most 50 at 16 tokens; exceeded" in readme
