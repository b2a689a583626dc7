"""Shared weights of spaces that choose between kinds: libraries, which need not hold all designs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.shared_runs import MIXED, QUICK, Lines, after, files, made

from formwright.arch.card import Card
from formwright.arch.declared import tensors_of
from formwright.core.errors import IllegalInput
from formwright.core.records import History
from formwright.core.rng import derive
from formwright.evaluate.shared import SharedWeights
from formwright.pipeline import shared_start
from formwright.pipeline.draw_menu import DrawMenu
from formwright.pipeline.pipeline import Pipeline
from formwright.pipeline.run import PipelineRun, RunOptions
from formwright.pipeline.runner import run_pipeline
from formwright.pipeline.search import Search
from formwright.pipeline.shared_evaluator import SharedSubnetworks
from formwright.search import searcher
from formwright.space.zoo import load_space
from formwright.study.stop import Stop
from formwright.supernet.hull import find_hull
from formwright.supernet.inner_lessons import Anchor, HiddenStates
from formwright.supernet.lessons import Labels, TwoStage
from formwright.supernet.library import LIBRARY, Library
from formwright.supernet.rules import Phases, ProgressiveShrinking
from formwright.testing.stage_contract import Killed
from formwright.train import checkpoint


@pytest.mark.parametrize(
    "options",
    [{}, {"rule": Phases(), "lesson": TwoStage(Labels(), HiddenStates())}],
    ids=["labels", "two stages"],
)
def test_a_space_that_chooses_between_kinds_has_a_library_and_resumes_exactly(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline(replace(MIXED, **options))
    run = made(pipeline, tmp_path / "whole", every=1)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", after(2, checkpoint.write))
        with pytest.raises(Killed):
            made(pipeline, tmp_path / "killed", every=1)
    made(pipeline, tmp_path / "killed", every=1)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert (tmp_path / "whole" / "super-network" / LIBRARY).is_file()
    found = run.artifact(run.pipeline.stages[0])
    space = load_space("flexibert-nano")
    for turn in range(5):
        card = space.card(space.sample(derive(turn)))
        assert found.extracted(card).transformer.card == card
        assert found.views(card).missing == ()


def test_a_search_proposes_only_designs_that_the_library_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search("flexibert-nano", MIXED.task, ("params:max",), (), searcher("random"), SharedSubnetworks(MIXED))
    run = made(Pipeline(MIXED, replace(search, training=QUICK, stop=Stop(trials=1))), tmp_path / "run")
    stage = run.pipeline.of_kind(Search)[0]
    shared = run.artifact(stage.evaluator.weights)
    assert shared.holds(shared.card)

    def shallow(_: SharedWeights, card: Card) -> bool:
        return len(card.encoder.layers) == 2

    asks = stage.bound_searcher(run.stage(stage))
    assert not all(shallow(shared, asks.ask(History(), derive(turn)).card) for turn in range(20))
    monkeypatch.setattr(SharedWeights, "holds", shallow)
    assert all(shallow(shared, asks.ask(History(), derive(turn)).card) for turn in range(5))  # they are rare


@pytest.mark.parametrize(
    "options",
    [
        {"rule": Phases(), "lesson": TwoStage(Labels(), HiddenStates()), "steps": 4},
        {"rule": ProgressiveShrinking(), "lesson": Anchor(every=2)},
    ],
    ids=["two stages", "shrinking to an anchor"],
)
def test_lessons_are_given_in_a_library_too(options: dict[str, Any], tmp_path: Path) -> None:
    made(Pipeline(replace(MIXED, **options)), tmp_path)


def test_the_disk_of_a_library_is_more_than_that_of_a_design(tmp_path: Path) -> None:
    run = made(Pipeline(MIXED), tmp_path)
    expected = MIXED.forecast(run.stage(run.pipeline.stages[0])).disk
    folder = tmp_path / "super-network"
    found = sum((folder / name).stat().st_size for name in (LIBRARY, "model.safetensors"))
    assert expected == pytest.approx(found, rel=0.1)


def test_designs_that_a_library_does_not_hold_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told where it holds all of them."""
    told = []
    for name in ("whole", "small"):
        display = Lines()
        run_pipeline(PipelineRun(Pipeline(MIXED), tmp_path / name, RunOptions(), display))
        told.append([line for line in display.lines if "library" in line])
        space = load_space("flexibert-nano")
        few = [find_hull(space).largest, *(space.card(space.sample(derive(turn))) for turn in range(30))]
        monkeypatch.setattr(shared_start, "library_of", lambda space, head, few=few: Library.of(few, head))
    few_held, by = Library.of(few), ("design", "gene")
    held = [
        few_held.holds(tensors_of(space.card(space.sample(derive(0, "held", turn), by[turn % 2]))))
        for turn in range(200)
    ]
    assert 0 < sum(held) < 200
    none, (line,) = told
    assert none == []
    assert [int(word) for word in line.split() if word.isdigit()] == [sum(held), 200]


@pytest.mark.parametrize("option", [{"depth": "even"}, {"channels": "cyclic"}])
def test_layers_and_channels_are_the_first_also_in_a_menu_of_kinds(option: dict[str, str], tmp_path: Path) -> None:
    menu = DrawMenu("fast-bert-nano", MIXED.task)
    shared = replace(MIXED, space=menu, **option)
    with pytest.raises(IllegalInput, match="fast-bert-nano"):
        made(Pipeline(menu, shared), tmp_path / "out")
    assert not (tmp_path / "out").exists()
