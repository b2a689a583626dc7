"""Which trials may have children."""

from itertools import islice

from formwright.core.records import History, Trial


def breeding(history: History) -> tuple[Trial, ...]:
    """Return the finished trials whose design is known, in the order asked; a card of the user's own has none."""
    return tuple([trial for trial in history.finished if trial.request.design is not None])


def youngest(history: History, number: int) -> tuple[Trial, ...]:
    """Return the last `number` trials of `breeding`, without a look at the others."""
    found = (trial for trial in reversed(history.finished) if trial.request.design is not None)
    return tuple(islice(found, number))[::-1]


def warming_up(history: History, population: int) -> bool:
    """Tell whether fewer than `population` trials are finished or under way; failed ones are replaced."""
    alive = (trial for trial in history.trials if trial.state != "failed")
    return sum(1 for _ in islice(alive, population)) < population
