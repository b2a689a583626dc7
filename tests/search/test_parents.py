from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive
from formwright.search.parents import breeding, warming_up
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
