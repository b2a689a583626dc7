from pathlib import Path

from tests.report.invented import GOAL, SPACE, invented_log
from tests.report.studies import SPACE as OTHER
from tests.report.studies import small_study

from formwright.core.records import Objective
from formwright.report.invention import invention
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
