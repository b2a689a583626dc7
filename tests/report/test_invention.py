from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.invented import GOAL, SPACE, invented_log
from tests.report.studies import SPACE as OTHER
from tests.report.studies import small_study

from formwright.core.records import Objective
from formwright.report.invention import Invention, invention
from formwright.study.replay import Replay


def test_a_study_of_formulas_has_lives_and_scores_and_others_have_none(tmp_path: Path) -> None:
    for name in ("formulas", "others"):
        (tmp_path / name).mkdir()
    log = invented_log(tmp_path / "formulas", 7)
    replay = Replay(SPACE)
    replay.feed(log.read())
    found = invention(SPACE, replay.history.finished, GOAL, log.config)
    assert found is not None
    assert found.population.most == log.config["searcher"]["options"]["parents"]
    assert len(found.population.lives) + len(found.population.others) == 7
    assert found.operations.counts.any()
    assert invention(SPACE, (), GOAL, log.config) is None
    other = Replay(OTHER)
    other.feed(small_study(tmp_path / "others").read())
    assert invention(OTHER, other.history.finished, (Objective("accuracy", "max"),), log.config) is None


def found_with(tmp_path: Path, **searcher: Any) -> Invention:
    """Read what a study found that another searcher, or one with other options, is said to have done."""
    log = invented_log(tmp_path, 7)
    replay = Replay(SPACE)
    replay.feed(log.read())
    found = invention(SPACE, replay.history.finished, GOAL, {**log.config, "searcher": searcher})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("searcher", "expected"),
    [
        ({"name": "op-nas", "options": {}}, (True, True)),
        ({"name": "op-nas", "options": {"guided": False}}, (True, False)),
        ({"name": "regularized-evolution", "options": {"parents": 2}}, (False, False)),
        ({"name": "random"}, (False, False)),
    ],
)
def test_only_the_search_by_priorities_goes_by_the_scores(
    searcher: dict[str, Any], expected: tuple[bool, bool], tmp_path: Path
) -> None:
    found = found_with(tmp_path, **searcher)
    assert (found.breeds, found.guided) == expected


def test_scores_have_the_alpha_of_the_study(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(3)]
    for folder in folders:
        folder.mkdir()
    options = ({}, {"alpha": 0.01}, {"alpha": 1.0})
    tables = [
        found_with(folder, name="op-nas", options=given).operations.scores
        for folder, given in zip(folders, options, strict=True)
    ]
    assert np.array_equal(tables[0], tables[1])
    assert (tables[2] >= tables[0]).all()
    assert (tables[2] > tables[0]).any()
