"""Searches with shared weights: what is refused before the weights are trained, and judging in groups."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.shared_runs import DIGITS, MIXED, QUICK, made, stage

from formwright.arch.card import Card
from formwright.core.errors import IllegalInput
from formwright.core.records import History
from formwright.core.rng import derive
from formwright.evaluate.context import Context
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline import runner
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.search import searcher
from formwright.space.combinators import Choice
from formwright.space.space import Space
from formwright.space.zoo import load_space
from formwright.study.stop import Stop
from formwright.supernet.hull import find_hull


@pytest.mark.parametrize(("limit", "told"), [("latency_ms<=1e-6", "latency_ms"), ("params<=10", "params")])
def test_a_limit_that_no_design_keeps_is_refused_before_the_super_network_is_trained(
    limit: str, told: str, tmp_path: Path
) -> None:
    ends = find_hull(load_space("autoformer-nano"))
    space = Space("two", Choice((1, 2)), lambda size: ends.smallest if size == 1 else ends.largest)
    shared, by = replace(stage(), space=space), searcher("random")
    search = Search(space, DIGITS, (), (limit,), by, SharedSubnetworks(shared), QUICK, Stop(trials=2))
    with pytest.raises(IllegalInput, match=told):
        made(Pipeline(shared, search), tmp_path / "run")
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_search_of_designs_that_no_trained_weights_hold_is_refused_before_they_are_trained(tmp_path: Path) -> None:
    nano = load_space("autoformer-nano")
    ends, designs = find_hull(nano), [nano.card(nano.sample(derive(turn), "gene")) for turn in range(3)]
    small = Space("small", Choice((1,)), lambda _: ends.smallest)
    some = Space("some", Choice((1, 2, 3)), lambda number: designs[number - 1])
    by = searcher("random")
    shared = replace(stage(steps=1), space=small)
    search = Search(nano, DIGITS, (), (), by, SharedSubnetworks(shared), QUICK, Stop(trials=1))
    with pytest.raises(IllegalInput, match=r"autoformer-nano.*small"):
        made(Pipeline(shared, search), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    library = replace(MIXED, steps=1)  # which of its designs a library holds is known when it is made
    for one, space in ((stage(steps=1), nano), (stage(steps=1), some), (library, MIXED.space)):
        search = Search(space, one.task, (), (), by, SharedSubnetworks(one), QUICK, Stop(trials=1))
        runner.prepare(PipelineRun(Pipeline(one, search), tmp_path / "accepted"))


def test_designs_are_looked_for_in_the_weights_unless_their_space_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Card]()
    monkeypatch.setattr(SharedWeights, "holds", lambda self, card: bool(asked.append(card)) or len(asked) > 1)
    shared, nano = stage(steps=1), load_space("autoformer-nano")
    made(Pipeline(shared), tmp_path)
    designs = [nano.card(nano.sample(derive(turn), "gene")) for turn in range(3)]
    some = Space("some", Choice((1, 2, 3)), lambda number: designs[number - 1])
    for space, looked_at in ((nano, []), ("autoformer-nano", []), (some, designs)):
        search = Search(space, DIGITS, (), (), searcher("random"), SharedSubnetworks(shared), QUICK, Stop(trials=1))
        run = PipelineRun(Pipeline(shared, search), tmp_path)
        runner.prepare(run)
        one = run.pipeline.of_kind(Search)[0]
        one.bound_searcher(run.stage(one)).ask(History(), derive(0))
        assert len(asked) == (2 if looked_at else 0)
        assert set(asked) <= set(looked_at)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_search_judges_designs_in_groups_where_that_is_asked_for(tmp_path: Path) -> None:
    shared = stage(steps=2)
    judged = SharedSubnetworks(shared, together=3)
    search = Search(shared.space, DIGITS, (), (), searcher("random"), judged, QUICK, Stop(trials=5))
    run = run_pipeline(PipelineRun(Pipeline(shared, search), tmp_path, RunOptions(workers=1)))
    search = run.pipeline.stages[-1]
    with run.artifact(search) as opened:
        asked = [event.kind for event in opened.log.read() if event.kind in ("asked", "told")]
        trials = opened.study().history().trials
    assert asked == ["asked"] * 3 + ["told"] * 3 + ["asked"] * 2 + ["told"] * 2
    judge = search.evaluator.bind(search.setting(run.stage(search)))
    for trial in trials[:3]:  # which have no rivals: nothing was known when they were proposed
        assert trial.observation.metrics["accuracy"] == judge.evaluate(trial.request, Context()).metrics["accuracy"]


def test_a_study_on_a_server_belongs_to_one_run_also_where_weights_are_shared(tmp_path: Path) -> None:
    def run(out: str, seed: int) -> PipelineRun:
        shared = stage(steps=1, seed=seed)
        judged = SharedSubnetworks(shared)
        search = Search(shared.space, DIGITS, (), (), searcher("random"), judged, QUICK, Stop(trials=1))
        return PipelineRun(
            Pipeline(shared, search), tmp_path / out, storage=f"sqlite:///{tmp_path}/all.db", study_name="x"
        )

    run_pipeline(run("first", 0))
    with pytest.raises(IllegalInput, match="has a study called"):
        run_pipeline(run("second", 1))
    assert not (tmp_path / "second").exists()
    run_pipeline(run("first", 0))
