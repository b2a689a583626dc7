import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from tests.evaluate.toy import TASK

from formwright.core.errors import EvaluationFailed, IllegalInput
from formwright.cost import params

DATA = Path(__file__).parents[2] / "../shared/data"
pytestmark = pytest.mark.slow  # it imports torch


@pytest.fixture
def kit(script: ModuleType) -> Any:
    """Give the function that imports a part of the kit."""
    return lambda name: import_module(f"autobert_zero_kit.{name}")


def found_design(kit: Any) -> Any:
    """Give the published pattern, which has both kinds of layers."""
    return kit("variants").published(kit("setting").nano_space(4))


def mixers(card: Any) -> list[str]:
    return [block.mixer.TYPE for block in card.encoder.layers]


def test_variants_have_the_layers_of_the_nearest_other_kind(kit: Any) -> None:
    variants, card = kit("variants"), found_design(kit)
    layers = card.encoder.layers
    assert variants.attention_only(card).encoder.layers == (layers[1], layers[1], layers[3], layers[3])
    assert variants.convolution_only(card).encoder.layers == (layers[0], layers[0], layers[2], layers[2])
    swapped = replace(card, encoder=replace(card.encoder, layers=layers[1:3]))  # an attention, then a convolution
    assert variants.attention_only(swapped).encoder.layers == (layers[1], layers[1])
    assert variants.convolution_only(swapped).encoder.layers == (layers[2], layers[2])
    assert variants.attention_only(variants.attention_only(card)) is None


def test_a_bert_is_as_large_as_a_design(kit: Any) -> None:
    card = found_design(kit)
    bert = kit("variants").bert_like(card)
    assert mixers(bert) == ["attention"] * 4
    assert params(bert) == pytest.approx(params(card), rel=0.005)


def test_kernels_are_put_in_another_order(kit: Any) -> None:
    variants, card = kit("variants"), found_design(kit)
    assert variants.kernels_of(card) == (31, 5)
    other = variants.with_kernels(card, (5, 31))
    assert variants.kernels_of(other) == (5, 31)
    assert mixers(other) == mixers(card)
    assert variants.is_descending((31, 5, 5))
    assert not variants.is_descending((5, 31))


def test_every_comparison_names_designs_that_are_trained(kit: Any) -> None:
    report, names = kit("report"), kit("variants").comparisons(kit("setting").nano_space(4), found_design(kit)).keys()
    assert set(report.AGAINST) | set(report.AGAINST.values()) | set(report.UNIFORM) <= names


def test_tau_and_steps_saved(kit: Any) -> None:
    summary = kit("summary")
    assert summary.kendall([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert summary.kendall([1, 1, 1], [1, 2, 3]) == 0.0
    assert summary.steps_to([0, 10, 20], [4.0, 2.0, 1.0], 3.0) == 5.0
    assert summary.steps_to([0, 10], [4.0, 2.0], 5.0) == 0.0
    assert summary.steps_to([0, 10], [4.0, 2.0], 1.0) is None
    row = {"marks": [0, 10, 20], "scratch": [4.0, 3.0, 2.0], "inherited": [3.0, 1.0, 0.5]}
    assert summary.saved(row) == pytest.approx(0.75)
    assert summary.saved({**row, "inherited": [3.0, 2.5, 2.5]}) == 0.0


def test_rankings_have_intervals_around_them(kit: Any) -> None:
    long = np.arange(12.0)
    perfect = np.stack([long, long[::-1], np.full(12, 5.0), long], axis=1)
    found = kit("summary").ranking([perfect, perfect])
    assert found["designs"] == 24
    assert found["inherited"] == [1.0, 1.0, 1.0]
    assert found["scratch"] == [-1.0, -1.0, -1.0]
    assert found["params"] == [0.0, 0.0, 0.0]
    assert found["gain"][0] == 2.0
    mean, low, high = kit("summary").mean_interval([0.0, 1.0, 2.0, 3.0])
    assert low < mean == 1.5 < high


def test_searches_are_summed_up_by_their_best_trial(kit: Any) -> None:
    summary = kit("summary")
    assert summary.best_so_far([None, 0.5, 0.4, 0.7]) == [0.0, 0.5, 0.5, 0.7]
    trials = [{"number": 0, "failure": "lost"}, {"number": 1, "score": 0.7}, {"number": 2, "score": 0.7}]
    assert summary.best_trial({"trials": trials})["number"] == 1
    better = summary.differences({"a": [1.0, 2.0], "b": [0.0, 1.0]}, {"b": "a", "c": "a"})
    assert better == {"a against b": [1.0, 1.0, 1.0]}


def test_equal_tokens_have_no_residual_and_different_ones_do(kit: Any) -> None:
    uniformity = kit("uniformity")
    same = torch.ones(5, 1) * torch.tensor([1.0, -2.0, 3.0])
    assert uniformity.relative_residual(same) == pytest.approx(0.0, abs=1e-6)
    assert uniformity.mean_cosine(same) == pytest.approx(1.0)
    assert uniformity.mean_cosine(torch.eye(4)) == pytest.approx(0.0)
    assert uniformity.relative_residual(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])) == pytest.approx(1.0)


def test_text_is_cut_into_rows_of_equal_length(kit: Any) -> None:
    lines = [" = Heading = \n", "\n", " a b c d e \n", "f\n"]
    assert kit("real").rows_of(lines, 2) == ["a b", "c d"]


def test_real_designs_are_wider_and_of_equal_size(kit: Any) -> None:
    real, setting = kit("real"), kit("setting").Real(width=128)
    found = real.contestants(setting, found_design(kit))
    assert found["found"].encoder.embedding.width == 128
    assert found["found"].encoder.embedding.vocabulary == setting.vocabulary
    assert params(found["found, BERT as large"]) == pytest.approx(params(found["found"]), rel=0.005)


def test_runs_that_are_there_are_not_run_again(kit: Any, tmp_path: Path) -> None:
    runs, setting = kit("runs"), kit("setting").tiny()
    results, calls = runs.Results(tmp_path / "runs.jsonl", setting), []

    def execute(job: Any) -> dict[str, Any]:
        calls.append(job.key)
        if job.name == "bad":
            raise EvaluationFailed("it diverged")
        return {"score": 1.0}

    first, bad = runs.Job("long", "good", 0), runs.Job("long", "bad", 0)
    results.complete([first, bad, first], execute, workers=1)
    with results.path.open("a") as file:
        file.write('{"kind": "long", "na')  # a line that was cut short
    results.complete([first, bad, runs.Job("long", "good", 1)], execute, workers=1)
    assert calls == [("long", "good", 0), ("long", "bad", 0), ("long", "good", 1)]
    rows = results.rows()
    assert rows["long", "good", 1]["score"] == 1.0
    assert rows["long", "bad", 0]["failure"] == "it diverged"
    for changes, kept in (({"trials": 7, "curve": 9}, True), ({"batch": 7}, False)):
        other = runs.Results(results.path, replace(setting, nano=replace(setting.nano, **changes)))
        assert other.missing([first]) == ([] if kept else [first])


def test_runs_are_kept_unless_what_decides_them_changes(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = kit("setting")
    setting = module.Setting()

    def changed(**nano: Any) -> set[str]:
        other = replace(setting, nano=replace(setting.nano, **nano))
        return {kind for kind in ("search", "long", "curve", "real") if other.digest(kind) != setting.digest(kind)}

    assert changed(long=module.Steps(1, 1)) == {"long"}
    assert changed(curve=7) == {"curve"}
    assert changed(short=module.Steps(1, 1)) == changed(trials=7) == {"search", "curve"}
    assert changed(batch=7) == {"search", "long", "curve"}
    before = {kind: setting.digest(kind) for kind in ("search", "long", "curve", "real")}
    for name, value, expected in (("LAYERS", 3, {"search", "curve"}), ("RATE", 1e-3, {"search", "long", "curve"})):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            assert {kind for kind in before if setting.digest(kind) != before[kind]} == expected


def test_a_real_training_goes_on_from_what_the_same_settings_left(kit: Any, tmp_path: Path) -> None:
    real, setting = kit("real"), kit("setting").Setting()
    job, other = kit("runs").Job("real", "found", 0), replace(setting, real=replace(setting.real, rate=1.0))
    same = replace(setting, nano=replace(setting.nano, trials=7))
    assert real.place_of(same, tmp_path, job) == real.place_of(setting, tmp_path, job)
    assert real.place_of(other, tmp_path, job) != real.place_of(setting, tmp_path, job)


@pytest.mark.long
def test_a_search_whose_files_are_gone_is_not_taken_for_fresh_weights(
    kit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = kit("setting").tiny()
    monkeypatch.setattr(kit("setting"), "load_task", lambda name: TASK)
    with pytest.raises(IllegalInput, match=r"'random, shared' is done, but .* has 0 of its 5 trials: put that folder"):
        kit("trainings").compared(setting, tmp_path, kit("runs").Job("curve", "0", 0))


def test_designs_are_trained_long_with_other_seeds_than_in_the_search(kit: Any, tmp_path: Path) -> None:
    plan, runs, setting = kit("plan"), kit("runs"), kit("setting").tiny()
    card = found_design(kit).to_json()
    results = runs.Results(tmp_path / "runs.jsonl", setting)
    trials = [{"number": number, "card": card, "score": 0.5} for number in range(2)]
    results.complete(plan.searches(["sharing", "designs"], [0, 1]), lambda job: {"trials": trials}, workers=1)
    jobs = [*plan.ranked(setting, results, [0, 1]), *plan.retrained(setting, results, ["OP-NAS, shared"], [0, 1])]
    assert {job.kind for job in jobs} == {"long"}
    assert {job.seed for job in jobs} == {100, 101}


def test_designs_of_which_every_training_failed_have_no_uniformity(kit: Any) -> None:
    one, lost = {"residual": [0.5, 0.25], "cosine": [0.1, 0.3]}, {"failure": "it diverged"}
    alike = kit("report")._alike
    assert alike([one, lost]) == one
    assert alike([lost, lost]) == {}
    drawn = kit("figures").uniformity({"found": one, "published": {}}, "cosine", "Cosine")
    assert "found" in drawn
    assert "published" not in drawn


def test_parts_run_what_they_need_and_no_more(kit: Any) -> None:
    plan, setting = kit("plan"), kit("setting").Setting()
    assert plan.arms_of(["sharing"]) == ["random", "random, shared"]
    assert plan.arms_of(["real"]) == ["OP-NAS, shared"]
    assert len(plan.searches(plan.PARTS, [0, 1, 2])) == 21
    expected = plan.estimate(setting, plan.PARTS, [0, 1, 2])
    assert sum(minutes for part, minutes in expected.items() if part != "real") <= 130
    assert expected["real"] <= 40


@pytest.mark.long
@pytest.mark.timeout(300)  # it takes a quarter of a minute, and on a busy machine more
def test_the_parts_on_a_builtin_task_run_from_end_to_end(
    kit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit("setting"), "load_task", lambda name: TASK)
    script = import_module("autobert_zero")
    results, file = tmp_path / "runs.jsonl", tmp_path / "summary.json"
    options = ["--tiny", "--seeds", "0", "--workers", "1", "--parts", "sharing", "searches", "designs"]
    paths = ["--results", str(results), "--json", str(file), "--figures", str(tmp_path / "figures")]
    monkeypatch.setattr(sys, "argv", ["autobert_zero", *options, *paths])
    script.main()
    lines = results.read_text(encoding="utf-8")
    script.main()
    assert results.read_text(encoding="utf-8") == lines  # nothing is run again
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["sharing"]["tau"]["designs"] == 3
    assert len(found["searches"]["OP-NAS, shared"]["curve"]) == 5
    assert found["searches"]["OP-NAS, shared"]["unlike_op_nas"] == [0]
    assert found["searches"]["random, shared"]["unlike_op_nas"] != [0]
    assert len(found["searches"]["better_by"]) == 6
    assert len(found["designs"]["uniformity"]["found"]["cosine"]) == 4
    assert len(list((tmp_path / "figures").glob("*.svg"))) == 5


@pytest.mark.long
@pytest.mark.data
def test_a_design_is_pretrained_on_wikitext_and_judged_on_glue(kit: Any, tmp_path: Path) -> None:
    real, runs, setting = kit("real"), kit("runs"), kit("setting").tiny()
    card = real.real_size(setting.real, found_design(kit))
    row = real.judged(setting, tmp_path, DATA, runs.Job.of("real", card, 0))
    assert row["loss"] > 0
    assert 0 <= row["glue/sst2"] <= 1
    assert -1 <= row["glue/cola"] <= 1
    assert list(tmp_path.iterdir()) == []  # what was kept for going on is cleared
