"""What follows from a user's wishes, before anything is trained."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.compress.tiny import BERT, CHANNELS, HEADS, LENGTH, bert, job, squad, tokeniser

from formwright.arch.layers import TokenEmbedding
from formwright.compress.folders import Folders
from formwright.compress.job import _LEAST as LEAST_PLAN
from formwright.compress.job import Started, usual_folder
from formwright.compress.plan import Plan, Speeds, within
from formwright.compress.space import low_end
from formwright.core.errors import FormwrightError, IllegalInput
from formwright.cost import macs, params
from formwright.cost.latency_table import LatencyTable, PartTimes
from formwright.nn.build import build
from formwright.nn.heads import HeadSpec
from formwright.nn.hf.save import save_pretrained_folder
from formwright.study.config import Config, DistillationChoice, TaskChoice, TrainingChoice
from formwright.study.stop import Stop
from formwright.supernet.automatic import sub_network

FULL = float(macs(BERT, LENGTH))
LEAST = float(macs(sub_network(BERT, ((1, 16),) * 2), LENGTH))
TABLE = LatencyTable(
    {
        16: PartTimes(1.0, {0: 0.0, HEADS: 1.0}, {0: 0.0, CHANNELS: 1.0}),
        8: PartTimes(0.5, {0: 0.0, 4: 1.0}, {0: 0.0, 64: 1}),
    }
)
STEPS = 5  # of an epoch: 80 rows in batches of 16


SPEEDS = Speeds(
    teacher=1.0,
    judging=1.0,
    network=1.5,
    answer=0.5,
    answers=5.0,
    validation=1.0,
    writing=7.0,
    alone=1.0,
    start=2.0,
    rows=10,
)


def never() -> Speeds:
    raise AssertionError("nothing need be timed where no hours are given")


def test_costs_are_those_that_the_targets_name_in_their_order(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("params=60%", "macs=50%", "params=70%")).started()
    costs = started.costs(None)
    assert list(costs) == ["params", "macs"]
    assert (costs["params"](BERT), costs["macs"](BERT)) == (params(BERT), FULL)
    assert not started.needs_latency


def test_latency_is_added_up_by_the_table(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("macs=50%", "latency_ms=4")).started()
    assert started.needs_latency
    assert started.costs(TABLE)["latency_ms"](BERT) == 1.0 + 2 * 2.0


def test_targets_become_limits_and_the_space_reaches_from_the_lowest_to_the_model(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("macs=50%", "params=60%", "macs=70%")).started()
    costs = started.costs(None)
    assert started.limits(costs) == {
        "macs-50pct": f"macs<={0.5 * FULL!r}",
        "params-60pct": f"params<={0.6 * params(BERT)!r}",
        "macs-70pct": f"macs<={0.7 * FULL!r}",
    }
    first, second = started.reaches(costs)
    assert (first.name, first.low, first.high) == ("macs", low_end(LEAST, 0.5 * FULL), FULL)
    least = params(sub_network(BERT, ((1, 16),) * 2))
    assert (second.name, second.low) == ("params", low_end(least, 0.6 * params(BERT)))
    assert started.smallest_share(costs) == min(first.low / FULL, second.low / params(BERT))
    assert started.told_above(costs) == []


def test_the_largest_sub_network_may_be_the_highest_target(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("macs=50%", "macs=70%"), whole=False).started()
    (reach,) = started.reaches(started.costs(None))
    assert reach.high == pytest.approx(0.7 * FULL)


@pytest.mark.parametrize(("hidden", "size"), [((), None), ((8, 12), 8)])
def test_a_target_below_the_least_sub_network_is_refused(
    hidden: tuple[int, ...], size: int | None, tmp_path: Path
) -> None:
    least = macs(sub_network(BERT, ((1, 16),) * 2, size), LENGTH)
    model = bert(tmp_path)
    met = job(tmp_path, model=model, targets=(f"macs={least}",), hidden=hidden).started()
    assert met.limits(met.costs(None)) == {f"macs-{least:g}": f"macs<={float(least)!r}"}
    missed = job(tmp_path, model=model, targets=(f"macs={least - 1}",), hidden=hidden).started()
    with pytest.raises(IllegalInput, match=rf"cannot be met: .* reach from {re.escape(f'{least:.4g}')} "):
        missed.limits(missed.costs(None))


def test_hidden_sizes_are_costed_by_the_table_too(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("latency_ms=40%",), hidden=(8,)).started()
    assert started.limits(started.costs(TABLE)) == {"latency_ms-40pct": "latency_ms<=2.0"}


def test_rows_are_as_long_as_the_model_reads_whatever_the_user_says(tmp_path: Path) -> None:
    wishes = job(tmp_path)
    assert wishes.started().length == LENGTH
    longer = job(tmp_path, model=Path(wishes.model), training=_training(length=1000)).started()
    assert longer.length == 32
    assert longer.costs(None)["macs"](BERT) == macs(BERT, 32)
    assert _config(longer, tmp_path).training.length == 32


def _training(**changes: Any) -> TrainingChoice:
    return TrainingChoice(**{"batch": 16, "length": LENGTH, **changes})


def _config(started: Any, folder: Path, plan: Plan | None = None) -> Config:
    costs = started.costs(TABLE)
    found: Config = started.config(plan or Plan(1, 1, 9), costs, started.limits(costs), Folders(folder / "out"), ())
    return found


def planned(started: Started) -> Plan:
    budget = started.budget(1)
    assert budget is not None
    return within(budget, SPEEDS)


def test_without_hours_the_epochs_count(tmp_path: Path) -> None:
    started = job(tmp_path, teacher_epochs=2.0, epochs=3.0, evaluations=7, finetune=0.4).started()
    assert started.budget(2) is None
    assert started.usual == Plan(2 * STEPS, 3 * STEPS, 7, 2)
    rare = job(tmp_path, model=Path(started.job.model), teacher_epochs=0.001, epochs=0.001).started()
    assert rare.usual == Plan(1, 1, 5)


def test_hours_scale_the_stages(tmp_path: Path) -> None:
    speeds = SPEEDS
    started = job(tmp_path, hours=0.1, teacher_epochs=20.0, epochs=60.0, evaluations=100).started()
    found = planned(started)
    assert sum(found.seconds(speeds, 1, 2).values()) <= 360
    assert 40 <= found.teacher_steps < 100
    assert 60 <= found.network_steps <= 20 * STEPS
    assert 30 <= found.evaluations < 100
    few = planned(job(tmp_path, model=Path(started.job.model), hours=0.01).started())
    assert (few.teacher_steps, few.network_steps, few.evaluations) == (5, 60, 30)  # the least, though it takes longer


def test_a_hastened_teacher_with_few_steps_has_a_higher_rate(tmp_path: Path) -> None:
    usual = job(tmp_path, teacher_epochs=4.0).started()
    hastened = replace(usual, job=replace(usual.job, hastened=True)).method
    assert usual.method.teacher_rate(1) == hastened.teacher_rate(4 * STEPS) == hastened.teacher_rate(9 * STEPS) == 1e-3
    assert hastened.teacher_rate(STEPS) == pytest.approx(2e-3)
    assert hastened.teacher_rate(1) < 4.01e-3


def test_a_short_search_judges_by_some_of_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = job(tmp_path, hours=0.1, teacher_epochs=20.0, epochs=60.0).started()
    rows = len(started.begun.prepared.validation.examples)
    found = planned(started)
    assert found.judged == rows  # which are few anyway
    assert _config(started, tmp_path, found).judged_rows is None
    monkeypatch.setattr("formwright.compress.job._LEAST", replace(LEAST_PLAN, judged=4))
    found = planned(started)
    assert 4 <= found.judged < rows
    assert 16 <= found.scored < 64
    assert _config(started, tmp_path, found).judged_rows == found.judged
    assert _config(started, tmp_path, Plan(1, 1, 9)).judged_rows is None
    long = planned(job(tmp_path, model=Path(started.job.model), hours=10.0).started())
    assert (long.judged, long.scored) == (rows, 64)


def test_spans_are_judged_by_all_rows_however_few_hours_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formwright.compress.job._LEAST", replace(LEAST_PLAN, judged=4))
    started = job(tmp_path, task=TaskChoice("squad", data=str(squad(tmp_path))), hours=0.1, epochs=60.0).started()
    assert planned(started).judged == len(started.begun.prepared.validation.examples)


def test_the_study_searches_what_the_job_says(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("macs=50%", "latency_ms=4"), seed=7, searcher="nsga2").started()
    config = _config(started, tmp_path, Plan(5, 6, 9))
    assert config.objectives == ("accuracy:max", "macs:min", "latency_ms:min")
    assert (config.stop, config.seed, config.searcher, config.evaluator) == (Stop(trials=9), 7, "nsga2", "shared")
    assert (config.final_steps, config.keep) == (0, 2)
    assert config.targets == {"macs-50pct": f"macs<={0.5 * FULL!r}", "latency_ms-4": "latency_ms<=4.0"}
    assert (config.space, config.weights, config.latency_table) == ("space.json", "super-network", "latency.json")
    assert config.distillation is None
    tuned = _config(started, tmp_path, Plan(5, 6, 9, 40))
    assert (tuned.final_steps, tuned.training.steps) == (40, 40)
    assert tuned.distillation == DistillationChoice("models/teacher", 0.1, 2.0)
    plain = job(tmp_path, model=Path(started.job.model)).started()
    assert _config(plain, tmp_path).latency_table is None
    assert Config.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"searcher": "linus"}, "no searcher called 'linus'. Nearest: 'linas'"),
        ({"options": {"popluation": 3}}, "has no option 'popluation'"),
        ({"network_rate": 0.0}, "learning rate"),
        ({"network_rate": float("inf")}, "learning rate"),
        ({"training": _training(learning_rate=-1.0)}, "learning rate"),
        ({"hidden": (8, 99)}, "hidden must be whole numbers between 1 and the encoder's 16"),
        ({"hidden": (0,)}, "hidden must be whole numbers between 1"),
        ({"targets": ("macs=50%", "mac=50%")}, "no cost called 'mac'"),
        ({"labels": 2.0}, "weights of a mix"),
        ({"temperature": 0.0}, "temperature"),
    ],
    ids=str,
)
def test_what_a_late_stage_would_refuse_is_refused_at_once(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(FormwrightError, match=told):
        job(tmp_path, **changes).started()


def test_a_hidden_size_that_cannot_change_is_refused_at_once(tmp_path: Path) -> None:
    assert BERT.encoder is not None
    assert isinstance(BERT.encoder.embedding, TokenEmbedding)
    fixed = replace(BERT.encoder.embedding, positions="sinusoidal")
    card = replace(BERT, encoder=replace(BERT.encoder, embedding=fixed))
    folder = save_pretrained_folder(build(card, seed=0), tmp_path / "fixed", tokenizer=tokeniser().tokenizer)
    assert job(tmp_path, model=folder).started().begun.card == card
    with pytest.raises(IllegalInput, match="sinusoidal positions stand in a fixed order, so the hidden size cannot"):
        job(tmp_path, model=folder, hidden=(8,)).started()


@pytest.mark.parametrize(
    ("model", "task", "folder"),
    [
        ("", "mini-glue/sst2", "compressed/MiniLM-mini-glue-sst2"),
        ("models/bert/", "rows.csv", "compressed/bert-rows"),
        ("/home/me/bert", "/data/rows.csv", "compressed/bert-data-rows"),
        ("owner/name", "../rows.tsv.gz", "compressed/name-rows.tsv"),
    ],
)
def test_a_compression_has_a_usual_folder(model: str, task: str, folder: str) -> None:
    assert usual_folder(model, task) == Path(folder)


def test_a_target_above_the_model_limits_to_the_model(tmp_path: Path) -> None:
    started = job(tmp_path, targets=("macs=1e12", "latency_ms=9"), whole=False).started()
    costs = started.costs(TABLE)
    assert started.limits(costs) == {"macs-1000000000000": f"macs<={FULL!r}", "latency_ms-9": "latency_ms<=5.0"}
    assert [reach.high for reach in started.reaches(costs)] == [FULL, 5.0]
    assert [line.split()[2] for line in started.told_above(costs)] == ["macs", "latency_ms"]


def test_a_model_that_answers_the_task_is_not_planned_to_be_fine_tuned(tmp_path: Path) -> None:
    folder = bert(tmp_path, "known", HeadSpec("sequence-classification", 2), labels=("no", "yes"))
    for hours in (None, 1.0):
        known = job(tmp_path, model=folder, hours=hours).started()
        assert (known.usual if hours is None else planned(known)).teacher_steps == 0
    moved = job(tmp_path, model=folder, order="movement").started()
    assert moved.usual.teacher_steps == STEPS
