import pytest
from tests.report.studies import SPACE, design_of

from formwright.core.records import Objective, Observation, Request, Trial
from formwright.report.population import Life, Population, parents_of, population

GOAL = (Objective("accuracy", "max"),)


def trials(*scores: float, **more: float) -> list[Trial]:
    requests = [Request(SPACE.card(design_of(0)), parent=None if number == 0 else 0) for number in range(len(scores))]
    return [
        Trial(number, request, "finished", Observation({"accuracy": score, **more}))
        for number, (request, score) in enumerate(zip(requests, scores, strict=True))
    ]


def test_a_design_lives_until_better_ones_have_taken_its_place() -> None:
    found = population(trials(0.5, 0.6, 0.4, 0.7, 0.55, 0.8), GOAL, most=2)
    assert found.lives == (
        Life(0, 0.5, 3),
        Life(1, 0.6, 5, 0),
        Life(3, 0.7, None, 0),
        Life(5, 0.8, None, 0),
    )
    assert found.others == ((2, 0.4), (4, 0.55))
    assert found.last == 5


def test_a_loss_is_better_when_it_is_smaller() -> None:
    found = population(trials(0.5, 0.6, 0.4), (Objective("accuracy", "min"),), most=1)
    assert [(life.number, life.ends) for life in found.lives] == [(0, 2), (2, None)]


def test_trials_beyond_a_limit_come_after_all_others() -> None:
    within, beyond = (
        trials(0.5, params=10)[0],
        Trial(1, trials(0.9)[0].request, "finished", Observation({"accuracy": 0.9, "params": 30})),
    )
    found = population([within, beyond], (*GOAL, Objective("params", "min", 20)), most=1)
    assert [life.number for life in found.lives] == [0]


def test_nobody_lives_in_a_study_without_trials() -> None:
    assert population([], GOAL, most=3) == Population(3)
    assert Population(3).last == 0


@pytest.mark.parametrize(
    ("config", "parents"),
    [
        ({"searcher": {"name": "op-nas", "options": {"parents": 4}}}, 4),
        ({"searcher": {"name": "op-nas", "options": {}}, "stop": {"trials": 40}}, 2),
        ({"searcher": {"name": "op-nas", "options": {"parents": "many"}}, "stop": {}}, 5),
        ({"searcher": "random"}, 5),
    ],
)
def test_the_number_of_parents_is_read_or_that_of_the_budget(config: dict[str, object], parents: int) -> None:
    assert parents_of(config) == parents
