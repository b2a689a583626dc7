from dataclasses import replace

from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.parents import breeding, warming_up, youngest
from formwright.testing.spaces import small


def mixed() -> History:
    space = small()
    design = space.sample(derive(0))
    known, foreign = Request(space.card(design), design=design), Request(space.card(design))
    done = Observation({"accuracy": 1.0})
    return History(
        (
            Trial(0, known, "finished", done),
            Trial(1, foreign, "finished", done),
            Trial(2, known),
            Trial(3, known, "failed", reason="no memory"),
        )
    )


def test_finished_trials_of_the_space_breed() -> None:
    assert [trial.number for trial in breeding(mixed())] == [0]


def test_failed_trials_do_not_count_as_warming_up() -> None:
    assert warming_up(mixed(), 4)
    assert not warming_up(mixed(), 3)


def test_the_youngest_are_the_last_that_may_breed() -> None:
    finished = [replace(mixed().trials[0], number=number) for number in range(4, 7)]
    history = History((*mixed().trials, *finished))
    assert [trial.number for trial in breeding(history)] == [0, 4, 5, 6]
    assert [trial.number for trial in youngest(history, 2)] == [5, 6]
    assert [trial.number for trial in youngest(history, 9)] == [0, 4, 5, 6]
