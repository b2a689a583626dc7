"""The smallest study: ask, evaluate, remember."""

from dataclasses import replace

from formwright.core.errors import FormwrightError
from formwright.core.protocols import Evaluator, Searcher
from formwright.core.records import History, Observation, Request, Trial
from formwright.core.rng import derive


def ask(searcher: Searcher, history: History, seed: int) -> History:
    """Return the history with one more trial, pending; like in a study, the proposal depends on the seed and number."""
    number = len(history.trials)
    request = searcher.ask(history, derive(seed, "ask", number))
    return History((*history.trials, Trial(number, request)))


def tell(history: History, number: int, outcome: Observation | str) -> History:
    """Return the history with trial `number` finished by an observation, or failed for a reason."""
    trial = history.trials[number]
    if isinstance(outcome, str):
        ended = replace(trial, state="failed", reason=outcome)
    else:
        ended = replace(trial, state="finished", observation=outcome)
    return History((*history.trials[:number], ended, *history.trials[number + 1 :]))


def run(searcher: Searcher, evaluator: Evaluator, trials: int, seed: int = 0) -> History:
    """Ask for and evaluate `trials` designs, one after the other."""
    history = History()
    for number in range(trials):
        history = ask(searcher, history, seed)
        history = tell(history, number, evaluator.evaluate(history.trials[number].request, None))
    return history


def run_out(searcher: Searcher, evaluator: Evaluator, most: int, ending: type[FormwrightError]) -> History:
    """Ask for and evaluate designs until the searcher raises `ending`; fail if it has not after `most` of them."""
    history = History()
    for number in range(most):
        try:
            history = ask(searcher, history, seed=0)
        except ending:
            return history
        history = tell(history, number, evaluator.evaluate(history.trials[number].request, None))
    raise AssertionError(f"the searcher went on after {most} requests; {ending.__name__} was due")


def outline(history: History) -> list[Request]:
    """List the requests of a history, without their designs."""
    return [replace(trial.request, design=None) for trial in history.trials]
