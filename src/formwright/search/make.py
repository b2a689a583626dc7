"""Searchers by name, for the command line and for files."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from formwright.core.errors import IllegalInput, nearest
from formwright.core.protocols import Searcher
from formwright.core.records import Objective
from formwright.core.registry import Registry
from formwright.search.listing import differ_in_layers
from formwright.search.proposals import Legal, anything, listable
from formwright.space import Space

_HERE = "formwright.search"
GIVEN = ("space", "objectives", "legal", "sampler")  # by the study, not by the user
_OPTUNA = {"tpe": "TPE", "gp": "GP", "cmaes": "CMA_ES"}

SEARCHERS: Registry[Callable[..., Searcher]] = Registry(
    "searcher",
    {
        "random": f"{_HERE}.baselines:RandomSearch",
        "largest-first": f"{_HERE}.baselines:LargestFirst",
        "regularized-evolution": f"{_HERE}.evolution:RegularizedEvolution",
        "op-nas": f"{_HERE}.op_nas:OpNas",
        "nsga2": f"{_HERE}.evolution:Nsga2",
        "linas": f"{_HERE}.linas:Linas",
        "halving": f"{_HERE}.halving:Halving",
        "hurdles": f"{_HERE}.hurdles:Hurdles",
        "local": f"{_HERE}.baselines:LocalSearch",
        "reinforce": f"{_HERE}.reinforce:Reinforce",
        "gp-bo": f"{_HERE}.gp_bo:GpBo",
        "forest": f"{_HERE}.forest:Forest",
        "bananas": f"{_HERE}.bananas:Bananas",
        "boshnas": f"{_HERE}.boshnas.searcher:Boshnas",
        "coarse-to-fine": f"{_HERE}.coarse_to_fine:CoarseToFine",
        **{name: f"{_HERE}.optuna_search:{attribute}" for name, attribute in _OPTUNA.items()},
        **{f"optuna:{name}": f"{_HERE}.optuna_search:{attribute}" for name, attribute in _OPTUNA.items()},
        "optuna:random": f"{_HERE}.optuna_search:RANDOM",
    },
    "formwright.searchers",
)


def make_searcher(
    name: str,
    space: Space,
    objectives: Sequence[Objective],
    legal: Legal = anything,
    *,
    trials: int | None = None,
    steps: int | None = None,
    **options: Any,
) -> Searcher:
    """Build the searcher of that name.

    `legal` says which cards are within the limits known before an evaluation. `trials` is the planned number of
    evaluations and `steps` the length of a full one, both None where unknown; defaults of options depend on them. Raise
    `IllegalInput` that lists every fault of the options.
    """
    kind = SEARCHERS.get(name)
    known = option_names(name)
    faults = [_unknown(name, option, known, _inner(kind, options)) for option in options if option not in known]
    scaled = kind.for_budget(trials, steps) if hasattr(kind, "for_budget") else {}
    given = {option: value for option, value in options.items() if option in known}
    try:
        searcher = kind(space, tuple(objectives), legal, **{**scaled, **given})
    except IllegalInput as error:
        faults.append(str(error))
    if faults:
        raise IllegalInput(" ".join(faults))
    return searcher


def option_names(name: str) -> list[str]:
    return [option for option in inspect.signature(SEARCHERS.get(name)).parameters if option not in GIVEN]


def usual_searcher(space: Space, goals: int) -> str:
    """Name the default searcher for a number of goals; docs/methods/flexibert.md says what the choice rests on."""
    if goals > 1:
        return "nsga2"
    if not listable(space):
        return "regularized-evolution"
    return "boshnas" if differ_in_layers(space) else "forest"


def trains_in_slices(name: str) -> bool:
    """Return whether the searcher of that name asks for a design again, with more steps each time."""
    return "min_steps" in option_names(name)


def _inner(kind: Callable[..., Searcher], options: Mapping[str, Any]) -> str | None:
    """Name the searcher that a searcher of that kind asks, if it asks one."""
    own = inspect.signature(kind).parameters.get("searcher")
    name = None if own is None else options.get("searcher", own.default)
    return name if isinstance(name, str) and name in SEARCHERS.names() else None


def _unknown(name: str, option: str, known: Sequence[str], inner: str | None) -> str:
    if inner is not None and option in option_names(inner):
        told = f"{inner!r}, which it asks, has it: set options={{{json.dumps(option)}: VALUE}}"
        return f"the searcher {name!r} has no option {option!r}. {told}."
    close = nearest(option, known)
    hint = f" Nearest: {close[0]!r}." if close else ""
    return f"the searcher {name!r} has no option {option!r}.{hint} It has: {', '.join(known) or 'none'}."
