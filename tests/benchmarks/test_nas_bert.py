"""The benchmark of NAS-BERT: its results are kept line by line, and its parts run on a tiny compression."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tests.cli.blocks import line
from tests.cli.training import table
from tests.pipeline.block_runs import pretended, pretended_times
from tests.space.zoo.test_chains import teacher

from formwright.cli.app import main
from formwright.core.files import write_json
from formwright.cost import params, params_body
from formwright.space.zoo.chains import Chain, chain_card, scaled


def test_results_are_computed_once_and_a_cut_line_is_passed_over(script: ModuleType, tmp_path: Path) -> None:
    results = script.Results(tmp_path / "results.jsonl")
    assert results.kept("tau", "0/1", lambda: {"loss": 1.0})["loss"] == 1.0
    assert results.kept("tau", "0/1", lambda: pytest.fail("it was computed before"))["loss"] == 1.0
    with results.path.open("a", encoding="utf-8") as file:
        file.write('{"part": "tau", "key": "0/2", "lo')
    assert [row["key"] for row in results.rows("tau")] == ["0/1"]
    assert results.kept("tau", "0/2", lambda: {"loss": 2.0})["loss"] == 2.0
    assert results.rows("latency") == []


def test_a_correlation_lies_in_its_interval(script: ModuleType) -> None:
    from nas_bert_kit.summary import correlation

    rows = [{"a": number, "b": number + 3 * (number % 2)} for number in range(20)]
    found, low, high = correlation(rows, "a", "b")
    assert low <= found <= high <= 1
    assert found > 0.5


def test_the_size_alone_is_the_control_of_the_sum_of_losses(script: ModuleType) -> None:
    from nas_bert_kit.summary import ordered

    rows = [{"loss": n, "distance": n, "params": 100 - n} for n in range(10)]
    found = ordered(rows)
    assert (found["tau"][0], found["by_size"][0]) == pytest.approx((1.0, 1.0))
    upside_down = ordered([{**row, "params": row["loss"]} for row in rows])
    assert (upside_down["tau"][0], upside_down["by_size"][0]) == pytest.approx((1.0, -1.0))
    assert "| 0 | 10 | 1.000 (1.000 to 1.000) | -1.000" in script.markdown({"seeds": [0], "tau": [upside_down]})


def sizes_of(*scores: tuple[float, float, float, float]) -> dict[str, Any]:
    """Pretend the scores of all arms, size by size; a second seed is better by 0.2."""
    names = ("found", "found-fresh", "bert", "bert-square")
    return {
        f"{size}M": {
            arm: {"params": [size * 1_000_000, size * 1_000_000 + 50_000], "scores": [score, score + 0.2]}
            for arm, score in zip(names, own, strict=True)
        }
        for size, own in enumerate(scores, start=1)
    }


def test_tables_tell_means_ranges_and_the_gap_of_each_size(script: ModuleType) -> None:
    sizes = sizes_of((0.8, 0.7, 0.6, 0.5), (0.75, 0.75, 0.7, 0.75))
    facts = {task: {"teacher": [0.9, 0.92], "sizes": sizes} for task in ("sst2", "rte")}
    lines = script.markdown({"seeds": [0, 1], "tasks": facts}).splitlines()
    assert len({line.count("|") for line in lines[2:8]}) == 1  # one table
    assert "| 0.9100 (0.9000 to 0.9200) | 1M | 0.9000 (0.8000 to 1.0000), 1.00 to 1.05M |" in lines[4]
    assert lines[4].endswith("| +0.2000 (+0.2000 to +0.2000) | +0.1000 (+0.1000 to +0.1000) |")
    assert lines[-2:] == ["| 1M | +0.2000 | +0.1000 |", "| 2M | +0.0000 | +0.0000 |"]  # of the better one


def test_drawings_show_every_student_and_the_gap_of_every_size(script: ModuleType) -> None:
    from nas_bert_kit.figures import gap

    tau, sizes = {"points": [[1.0, 0.5], [2.0, 0.7], [3.0, 0.6]]}, sizes_of((0.8, 0.7, 0.6, 0.5), (0.8, 0.6, 0.5, 0.7))
    drawn = script.figures({"seeds": [0], "tau": [tau], "tasks": {"sst2": {"sizes": sizes}}})
    assert drawn["tau"].count("<circle") == 4  # and one in the legend
    assert "sst2, found-fresh" in drawn["tasks"]
    line = gap("sst2", [*reversed(sizes.values())], "found-fresh")
    assert (line.x, line.y) == (pytest.approx([1.025, 2.025]), pytest.approx([0.1, -0.1]))
    assert script.figures({"seeds": [0]}) == {}


def test_survivors_are_compared_pair_by_pair(script: ModuleType) -> None:
    from nas_bert_kit.summary import won

    pairs = [({"loss": 1.0}, {"loss": 2.0}), ({"loss": 3.0}, {"loss": 2.5}), ({"loss": 2.0}, {"loss": 4.5})]
    found = won(pairs)
    assert (found["pairs"], found["loss_stayed"], found["loss_dropped"]) == (3, 2.0, 3.0)
    share, low, high = found["better"]
    assert share == pytest.approx(2 / 3)
    assert low < 0.1
    assert high > 0.99  # three pairs say next to nothing
    assert "| all | 6 | 0.667 (" in script.markdown({"seeds": [0, 1], "survivors": [found, found]})


def test_times_that_are_added_up_may_be_off_to_one_side(script: ModuleType) -> None:
    from nas_bert_kit.summary import added_up

    times = ((9.0, 10.0), (22.0, 20.0), (21.0, 30.0))
    found = added_up([{"added": added, "measured": measured} for added, measured in times])
    assert (found["error"], found["bias"]) == pytest.approx((0.5 / 3, -0.1))


def test_berts_shape_has_the_largest_body_and_then_the_largest_table(script: ModuleType) -> None:
    from nas_bert_kit.students import of_berts_shape

    menu = scaled(teacher(384, 6))
    for limit in (3e6, 5e6, 10e6, 15e6):
        table, blocks = of_berts_shape(menu, limit)
        size, body = params(chain_card(menu, table, blocks)), params_body(chain_card(menu, table, blocks))
        assert size <= limit
        assert blocks[0].operations == ("attention", "feed-forward") * 2
        wider = [width for width in menu.widths if width > blocks[0].width]
        narrowest = (chain_card(menu, menu.embeddings[0], [Chain(width, blocks[0].operations)] * 3) for width in wider)
        assert all(params(card) > limit and params_body(card) > body for card in narrowest)
        beside = [params(chain_card(menu, other, blocks)) for other in menu.embeddings]
        assert size == max(one for one in beside if one <= limit)
        square, as_wide = of_berts_shape(menu, limit, square=True)
        assert square == as_wide[0].width
        assert as_wide[0].width <= blocks[0].width
    assert of_berts_shape(menu, 1.0) == (menu.embeddings[0], (Chain(menu.widths[0], blocks[0].operations),) * 3)


def test_data_that_would_be_downloaded_is_asked_for(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        script.main([str(tmp_path), "--parts", "tasks", "--tasks", "glue/rte"])
    assert "the part tasks reads glue/rte from files: name their folder with --data DIR" in capsys.readouterr().err


def test_a_seed_has_a_compression_of_its_own_where_there_are_several(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, (one, two) = script.Results(tmp_path / "results.jsonl"), (tmp_path / "a", tmp_path / "b")
    paired = [
        [(bench.out, bench.seed) for bench in script.benches_of(folders, results, (3, 4))]
        for folders in ((one,), (one, two))
    ]
    assert paired == [[(one, 3), (one, 4)], [(one, 3), (two, 4)]]
    with pytest.raises(SystemExit):
        script.main([str(one), str(two), "--seeds", "0", "1", "2"])
    assert "2 compressions and 3 seeds: name one, or one for each seed" in capsys.readouterr().err


def test_rows_of_another_compression_or_effort_do_not_count(script: ModuleType, tmp_path: Path) -> None:
    bench = script.Bench(tmp_path, script.Results(tmp_path / "results.jsonl"), 0)
    write_json(tmp_path / "run.json", {"pipeline": {"rounds": 1}, "contents": {}})
    write_json(tmp_path / "plan.json", {"steps": 4})
    write_json(tmp_path / "operation-times" / "times.json", {})
    write_json(table := tmp_path / "blocks" / "0" / "table.json", [])
    marks = [bench.mark(), bench.mark({"steps": 2}), bench.mark({"steps": 3}), replace(bench, seed=1).mark()]
    write_json(table, [{"loss": 1}])
    marks.append(bench.mark())
    write_json(tmp_path / "run.json", {"pipeline": {"rounds": 2}, "contents": {}})
    assert len({*marks, bench.mark()}) == 6
    assert bench.kept("a.safetensors", {"steps": 2}) != bench.kept("a.safetensors", {"steps": 3})


def test_whole_chains_are_measured_as_delivered_models_are(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    from nas_bert_kit import scores

    menu, times = scaled(teacher(64, 2)), iter((3.0, 5.0, 2.0, 6.0, 4.0, 7.0))  # two chains in three turns
    source = SimpleNamespace(menu=menu, longest=12)
    tables = [[(Chain(menu.widths[0], ("attention",)), 0.0)]] * menu.blocks
    bench = SimpleNamespace(tables=tables, source=source)
    chosen = scores.Assembly((0,) * (menu.blocks + 1), 0.0, {"latency_ms": 2.5})
    monkeypatch.setattr(scores, "drawn", lambda *_: chosen)
    monkeypatch.setattr(scores, "quick", lambda _: lambda _: next(times))
    assert scores.timed(bench, 2) == {"times": [{"added": 2.5, "measured": 2.0}, {"added": 2.5, "measured": 5.0}]}


@pytest.mark.slow
@pytest.mark.long
def test_every_part_runs_and_goes_on(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nas_bert_kit.scores.quick", lambda *_: pretended)
    with pytest.raises(SystemExit), pretended_times():
        main(line(tmp_path))
    task = tmp_path / "mine.csv"
    task.write_text(table(tmp_path).read_text(encoding="utf-8").replace("words,b", "sentence,label"), encoding="utf-8")
    capsys.readouterr()
    options = [str(tmp_path / "out"), "--results", str(tmp_path / "results.jsonl"), "--students", "5", "--pairs", "1"]
    options += ["--steps", "2", "--tasks", str(task), "--epochs", "0.3", "--rows", "40", "--length", "12"]
    options += ["--seeds", "0", "--json", str(tmp_path / "facts.json")]
    script.main(options)
    first = capsys.readouterr().out
    for place in ("scores.train", "students.train", "students.fit"):
        monkeypatch.setattr(f"nas_bert_kit.{place}", lambda *_: pytest.fail("it was computed before"))
    script.main(options)
    assert capsys.readouterr().out == first
    assert first.count("| 0 | 5 |") == 2  # tau and latency
    assert all(f"| {size} |" in first for size in ("3k", "6k"))
    facts = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    assert facts.keys() == {"seeds", "tau", "latency", "survivors", "tasks"}
    assert facts["tasks"][str(task)]["sizes"].keys() == {"3k", "6k"}
    rows = {row["key"].split("/", 2)[2]: row for row in script.Results(tmp_path / "results.jsonl").rows("tasks")}
    for size, most in (("3k", 3000), ("6k", 6000)):
        found, fresh, plain = (rows[f"{task}/{size}/{arm}"]["params"] for arm in ("found", "found-fresh", "bert"))
        assert found == fresh <= plain <= most
    bench = script.Bench(tmp_path / "out", script.Results(tmp_path / "results.jsonl"), 0)
    check_fresh(bench)


def check_fresh(bench: Any) -> None:
    """See that a fresh student begins as blocks begin: with BERT's small weights, and norms for its teacher's size."""
    from nas_bert_kit.students import _reinitialise, rivals

    table, blocks = rivals(bench, "6k")["bert"]
    model = bench.parts.student(table, blocks).model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    _reinitialise(model, blocks, bench)
    changed = {name.split(".")[1] for name, tensor in model.state_dict().items() if not tensor.equal(before[name])}
    assert changed == {"layers"}  # the embedding and the joints stay
    network = bench.training.network(bench.source, bench.parts.fitted.bases, 0)
    untaught = network.layer(blocks[0].width, 0, "attention").weights
    fresh = model.encoder.layers[0].state_dict()
    for name, tensor in untaught.items():
        if "norm" in name:
            assert torch.equal(tensor, fresh[name])
        elif tensor.ndim > 1:
            assert fresh[name].std() == pytest.approx(float(tensor.detach().std()), rel=0.5)
