import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from tests.benchmarks.conftest import BENCHMARKS
from tests.pipeline.compressions import BERT, LENGTH

from formwright.cost import macs

SVG = "{http://www.w3.org/2000/svg}"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("script")]
STEPS = 32  # of the quick super-network: 1,024 rows, 32 at once


def at(test: float) -> dict[str, Any]:
    shares = sys.modules["compress_kit.bench"].SHARES
    return {f"{share:.0%}": {"macs": share, "validation": test, "test": share * test} for share in shares}


def keep(folder: Path, **arms: Any) -> None:
    (folder / "arms").mkdir(parents=True)
    for name, row in arms.items():
        (folder / "arms" / f"{name}.json").write_text(json.dumps(row), encoding="utf-8")


def test_the_front_is_drawn_from_what_is_kept(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = sys.modules["compress_kit.arms"].USUAL.name
    for seed, score in ((0, 0.8), (1, 0.6)):
        teacher = {"validation": 0.9, "test": 0.9}
        keep(
            tmp_path / "glue-sst2" / f"seed-{seed}",
            **{"teacher": teacher, usual: {"at": at(score)}, "front-fewer-layers": {"at": at(0.5)}},
        )
        settled(tmp_path / "glue-sst2" / f"seed-{seed}", seed=seed, epochs=6)
    script.main(["--figures", str(tmp_path), "--results", str(tmp_path)])
    assert capsys.readouterr().out == f"{tmp_path / 'front.svg'}\n"  # other tasks have no results
    page = ElementTree.fromstring((tmp_path / "front.svg").read_text(encoding="utf-8"))
    words = [text.text for text in page.iter(f"{SVG}text")]
    assert "Smaller models for glue/sst2, 2 seeds" in words
    assert {"teacher", "formwright compress", "fewer layers"} <= set(words)
    assert "Torch-Pruning, Taylor" not in words
    assert len(page.findall(f"{SVG}polyline")) == 3
    band = page.findall(f"{SVG}polygon")[0]
    assert len({point.split(",")[1] for point in band.attrib["points"].split()}) == 8  # the seeds differ at each share
    assert "test score" in words
    settled(tmp_path / "glue-sst2" / "seed-1", seed=1, epochs=2)
    with pytest.raises(SystemExit, match="different settings"):
        script.main(["--figures", str(tmp_path), "--results", str(tmp_path)])


def test_the_learning_rate_follows_the_time_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kit, now = sys.modules["compress_kit.fair"], [100.0]
    monkeypatch.setattr(kit.time, "process_time", lambda: now[0])
    clock = kit.Clock(10.0, began=100.0)
    recipe = kit.TimedRecipe(kit.SCHEDULED, learning_rate=1.0, warmup=0.1, decay="cosine", clock=clock)

    def rate(seconds: float) -> float:
        now[0] = 100.0 + seconds
        return float(recipe.rate(7))  # whatever the step

    assert [rate(at) for at in (0.5, 1.0, 5.5, 10.0, 12.0)] == pytest.approx([0.5, 1.0, 0.5, 0.0, 0.0], abs=1e-3)
    now[0] = 109.9
    clock.stop(0, 0.0)
    now[0] = 110.0
    with pytest.raises(kit.BudgetUsed):
        clock.stop(0, 0.0)


def test_differences_are_paired_row_by_row(tmp_path: Path) -> None:
    """Where two models are right on the same rows, their difference is far surer than their scores."""
    kit, rows = sys.modules["compress_kit.intervals"], np.arange(1000)
    seeds = [tmp_path / f"seed-{seed}" for seed in (0, 1)]
    for seed in seeds:
        models = {"fair-ours": {"answers": "mine"}, "fair-random": {"answers": ["other", "mine"]}}
        keep(seed, **{name: {"at": {"50%": row | {"macs": 0.4}}} for name, row in models.items()})
        (seed / "right").mkdir()
        for name, below in (("mine", 600), ("other", 500), ("teacher", 900), ("majority", 500)):
            np.save(seed / "right" / f"{name}.npy", rows < below)
    assert kit.fair_folders(tmp_path) == seeds
    found = kit.fair_table(seeds)
    mine, random = found["fair-ours"]["50%"], found["fair-random"]["50%"]
    assert (mine["score"], random["score"]) == pytest.approx((0.6, 0.55))
    assert mine["interval"] == pytest.approx([0.57, 0.63], abs=0.005)
    assert random["ours ahead by"] == pytest.approx(0.05)
    assert random["interval of that"] == pytest.approx([0.04, 0.06], abs=0.004)
    assert kit.references(seeds)["majority class"]["seeds"] == [0.5, 0.5]


def test_the_front_is_drawn_on_further_rows_where_all_were_judged_on_them() -> None:
    draw = sys.modules["compress_kit.figures"].front
    teacher = {"test": 0.9, "further": 0.8}
    row = {"at": {"50%": {"macs": 0.4, "test": 0.7, "further": 0.75}}}
    seed = {"teacher": teacher, "random": row}
    page = draw("glue/sst2", [seed, seed])
    assert "score on further rows" in page
    assert "test score" in draw("glue/sst2", [seed, {"teacher": {"test": 0.9}, "random": row}])


def settled(folder: Path, **setting: int) -> None:
    """Leave the setting of a seed where the benchmark does."""
    (folder / "setting.json").write_text(json.dumps(setting), encoding="utf-8")


def test_without_torch_pruning_its_line_is_told_and_other_parts_run(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "find_spec", lambda _: None)
    asked = "need Torch-Pruning: pip install -c constraints.txt -r benchmarks/requirements.txt, or leave them out with"
    assert "torch-pruning" in (BENCHMARKS / "requirements.txt").read_text(encoding="utf-8")
    for part in ("others", "fronts", "fair"):
        with pytest.raises(SystemExit, match=asked):
            script.main(["--quick", "--parts", part, "--results", str(tmp_path)])
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(script, "_settings", lambda _: [])
    script.main(["--quick", "--parts", "front", "speed", "--results", str(tmp_path)])
    script.main(["--quick", "--parts", "others", "--rivals", "fewer-layers", "--results", str(tmp_path)])


def test_results_of_another_setting_are_left_alone(tmp_path: Path) -> None:
    kit = sys.modules["compress_kit.bench"]
    setting = kit.Setting("glue/sst2", "data", 8000, 32, 0)
    kit.Bench(setting, tmp_path).claim()
    same = replace(setting, data="moved", threads=2, ablation=(2, 60))  # which change no result of the same name
    kit.Bench(same, tmp_path).claim()
    with pytest.raises(SystemExit, match="holds results of another setting; name another folder with --results"):
        kit.Bench(replace(setting, epochs=2), tmp_path).claim()


def test_an_arm_that_another_process_is_at_is_left_to_it_and_waited_for(tmp_path: Path) -> None:
    kit, kept = sys.modules["compress_kit.bench"], list[str]()
    bench = kit.Bench(kit.Setting("glue/sst2", None, None, 32, 0), tmp_path)

    def compute() -> dict[str, Any]:
        kept.append("computed")
        return {"score": 1}

    with bench._alone("mine"), pytest.raises(kit.Held):
        bench.kept("mine", compute, wait=False)
    with bench._alone("mine"):
        assert bench.kept("other", compute, wait=False) == {"score": 1}
    assert bench.kept("mine", compute) == bench.kept("mine", compute, wait=False) == {"score": 1}
    assert len(kept) == 2


def test_what_others_hold_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    kit, order = sys.modules["compress_kit.arms"], list[tuple[str, bool]]()

    class Busy:
        def kept(self, name: str, _: object, *, wait: bool = True) -> dict[str, Any]:
            order.append((name, wait))
            if name == "first" and not wait:
                raise sys.modules["compress_kit.bench"].Held(name)
            return {}

    listed = [kit.Work(name, name, dict) for name in ("first", "second")]
    monkeypatch.setattr(kit, "works", lambda *_: listed)
    assert list(kit.arms(Busy(), [], [])) == ["teacher", "first", "second"]
    assert order == [("teacher", True), ("first", False), ("second", False), ("first", True)]


def test_shorter_arms_have_a_usual_one_of_their_length(tmp_path: Path) -> None:
    kit, bench = sys.modules["compress_kit.arms"], sys.modules["compress_kit.bench"]
    setting = bench.Setting("glue/sst2", None, None, 32, 0)
    whole = [arm.name for arm in kit.networks(bench.Bench(setting, tmp_path), ["front", "orders", "spaces"])]
    assert len(set(whole)) == len(whole) == 7
    short = bench.Bench(replace(setting, ablation=(2, 60)), tmp_path)
    names = [arm.name for arm in kit.networks(short, ["front", "orders", "spaces"])]
    assert names == [whole[0], *(f"{name}-2-epochs-60" for name in whole)]
    assert [arm.name for arm in kit.networks(short, ["front"])] == whole[:1]


def test_the_grid_brings_the_sub_networks_that_are_as_wide_everywhere() -> None:
    kit = sys.modules["compress_kit.networks"]
    choices, met = kit.grid(BERT, 5, lambda card: float(macs(card, LENGTH)))
    assert len(met) == 5
    assert met[-1].cost == macs(BERT, LENGTH)
    for one in met:
        assert len(set(one.widths)) == 1
        assert macs(choices.space.card(choices.design(one.widths)), LENGTH) == one.cost


def test_seeds_are_summed_up_by_mean_and_range() -> None:
    kit = sys.modules["compress_kit.summary"]
    seeds = [
        {"teacher": {"validation": 0.9, "test": None}, "a": {"at": {"50%": {"validation": score, "test": 0.5}}}}
        for score in (0.6, 0.8)
    ]
    seeds[0]["a"]["hypervolume"] = {"validation": 0.25}
    seeds[1]["searches"] = {"nsga2": {"hypervolume": 0.3, "curve": [[1, 0.3]], "validations to 98%": None}}
    found = kit.summary(seeds)
    assert found["a"] == {"50% validation": [0.6, 0.8], "50% test": [0.5, 0.5], "hypervolume validation": [0.25]}
    assert kit.lines(found)[0] == "  teacher validation: 0.9000 (0.9000 to 0.9000; seeds: 2)"
    assert "  a 50% validation: 0.7000 (0.6000 to 0.8000; seeds: 2)" in kit.lines(found)
    assert found["searches"] == {"nsga2 hypervolume": [0.3]}


@pytest.mark.long
def test_the_ratio_of_a_share_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pruner that narrows every feed-forward layer by the ratio, whatever the kind."""
    kit, bench = sys.modules["compress_kit.pruned"], sys.modules["compress_kit.bench"]
    pruned: list[str] = []

    def prune(_: Any, model: Any, kind: str, ratio: float) -> None:
        pruned.append(kind)
        for layer in model.bert.encoder.layer:
            left = round((1 - ratio) * layer.intermediate.dense.out_features)
            layer.intermediate.dense = torch.nn.Linear(layer.intermediate.dense.in_features, left)
            layer.output.dense = torch.nn.Linear(left, layer.output.dense.out_features)

    monkeypatch.setattr(kit, "_prune", prune)
    setting = replace(sys.modules["compress_kit.quick"].quick(tmp_path), teacher_epochs=0.1)
    found = bench.Bench(setting, tmp_path / "seed")
    magnitude, taylor = (kit.pruned_to(found, kind, 0.5) for kind in ("magnitude", "taylor"))
    assert magnitude.ratio == taylor.ratio
    assert 0.45 < magnitude.share == taylor.share <= 0.5
    assert pruned == ["magnitude"] * kit._HALVINGS + ["magnitude", "taylor"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_part_runs_and_nothing_is_done_twice(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kit = sys.modules["compress_kit.arms"]
    monkeypatch.setattr(kit, "ORDERS", kit.ORDERS[:1])  # the others differ in a word
    monkeypatch.setattr(kit, "SPACES", kit.SPACES[:1])
    able = find_spec("torch_pruning") is not None  # which is no need of ours
    names = [name for name in script.RIVALS if able or name not in script.NEED_PRUNING]
    arguments = ["--quick", "--results", str(tmp_path), "--json", str(tmp_path / "found.json"), "--rivals", *names]
    arguments += ["--ablation-epochs", "0.5", "--ablation-evaluations", "6"]
    script.main(arguments)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["mini-glue/sst2 0"]
    check_rivals(found, names)
    check_points(found, [kit.USUAL.name, "random", *(f"front-{name}" for name in names)])
    short = [name for name in found if name.endswith("-0.5-epochs-6")]
    assert {len(found[name]["front"]) for name in short} == {6}
    assert len(short) == 3  # the usual one, an order and a space
    check_searches(found)
    assert found["teacher"]["macs"] == 1.0
    assert found[kit.USUAL.name]["hypervolume"]["validation"] > 0
    assert len(found["untrained"]["scores"]) == 16
    assert found["speed"].keys() >= {"teacher", "50%", "int8"}
    assert found["speed"]["teacher"]["yield at 32"] == 1.0
    said = capsys.readouterr().out
    script.main(arguments)
    again = capsys.readouterr().out
    assert said.endswith(again)  # the same results, and no arm that began
    assert "mini-glue/sst2 seed 0: network" not in again
    script.main(["--figures", str(tmp_path), "--results", str(tmp_path), "--tasks", "mini-glue/sst2"])
    assert (tmp_path / "front.svg").is_file()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_arm_of_the_fair_part_uses_its_time(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--results", str(tmp_path), "--json", str(tmp_path / "found.json")]
    arguments += ["--parts", "fair", "--minutes", "0.05", "--rivals", "fewer-layers", "--tasks", "mini-glue/sst2"]
    script.main(arguments)
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    rows = found["mini-glue/sst2 0"]
    for arm in ("fair-ours", "fair-fewer-layers"):
        assert 3.0 <= rows[arm]["processor seconds"] < 4.5  # a step or a judgement more
    assert rows["fair-ours"]["training seconds"] >= 0.8 * 3.0
    check_points(rows, ["fair-ours", "fair-random", "fair-fewer-layers"])
    table = found["fair"]["mini-glue/sst2"]
    assert table["fair-ours"]["50%"]["score"] == pytest.approx(rows["fair-ours"]["at"]["50%"]["further"])
    assert "formwright compress | 1 |" in capsys.readouterr().out
    script.main(["--figures", str(tmp_path), "--results", str(tmp_path), "--tasks", "mini-glue/sst2"])
    assert "accuracy on held-out rows" in (tmp_path / "front.svg").read_text(encoding="utf-8")


def check_rivals(found: dict[str, Any], names: list[str]) -> None:
    """See that rivals have half the MACs and the super-network's steps: each, or the models of a front together."""
    for name in names:
        assert found[name]["steps"] == STEPS
        assert found[name]["macs"] <= 0.505
        assert sum(row["steps"] for row in found[f"front-{name}"]["at"].values()) == STEPS


def check_points(found: dict[str, Any], names: list[str]) -> None:
    """See that hypervolumes are of a model for each share, and that each keeps to its share."""
    for name in names:
        row = found[name]
        assert row["hypervolume"].keys() == {"validation", "test", "further"}
        assert row["at"].keys() - {"100%"} == {"75%", "50%", "35%", "25%"}
        for share, one in row["at"].items():
            assert one["macs"] <= 1.01 * float(share.rstrip("%")) / 100
            assert {"validation", "test", "further", "params"} <= one.keys()


def check_searches(found: dict[str, Any]) -> None:
    searches = found["searches"]
    assert (searches["nsga2"]["validations"], searches["linas"]["validations"]) == (20, 8)
    assert searches["linas with races"]["validations"] <= 8
    assert searches["nsga2"]["validations to 98%"] <= 20
    for row in searches.values():
        reached = [volume for _, volume in row["curve"]]
        assert reached == sorted(reached)
