"""Searchers by name or class, and their options as parts of a pipeline."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, cast, get_type_hints

from formwright.core.codec import range_faults
from formwright.core.errors import IllegalDesign, IllegalInput, UnknownName
from formwright.core.options import Part, PartReader
from formwright.core.protocols import Searcher
from formwright.core.records import Objective
from formwright.core.registry import Registry
from formwright.search.listing import differ_in_layers
from formwright.search.proposals import Legal, anything, listable
from formwright.search.scores import goals_of
from formwright.space import Space

_HERE = "formwright.search"
GIVEN = ("space", "objectives", "legal")  # by the study, not by the user: the first three arguments of a searcher
_OPTUNA = {"tpe": "Tpe", "gp": "GpSampler", "cmaes": "CmaEs"}

SEARCHERS: Registry[Callable[..., Searcher]] = Registry(
    "searcher",
    {
        "random": f"{_HERE}.baselines:RandomSearch",
        "largest-first": f"{_HERE}.baselines:LargestFirst",
        "regularized-evolution": f"{_HERE}.evolution:RegularizedEvolution",
        "op-nas": f"{_HERE}.op_nas:OpNas",
        "nsga2": f"{_HERE}.evolution:Nsga2",
        "linas": f"{_HERE}.linas:Linas",
        "halving": f"{_HERE}.rungs:Halving",
        "hurdles": f"{_HERE}.rungs:Hurdles",
        "local": f"{_HERE}.baselines:LocalSearch",
        "reinforce": f"{_HERE}.reinforce:Reinforce",
        "gp-bo": f"{_HERE}.surrogate_searchers:GpBo",
        "forest": f"{_HERE}.surrogate_searchers:Forest",
        "bananas": f"{_HERE}.bananas:Bananas",
        "boshnas": f"{_HERE}.boshnas:Boshnas",
        "coarse-to-fine": f"{_HERE}.coarse_to_fine:CoarseToFine",
        **{name: f"{_HERE}.optuna_search:{attribute}" for name, attribute in _OPTUNA.items()},
        **{f"optuna:{name}": f"{_HERE}.optuna_search:{attribute}" for name, attribute in _OPTUNA.items()},
        "optuna:random": f"{_HERE}.optuna_search:RandomSampler",
    },
    "formwright.searchers",
)


class SearcherPart(Part):
    """Base class of the options of a searcher, before its space, objectives and limits are known.

    Each searcher has a dataclass of its own below this one, made from what its class takes in addition to these three
    (`part_of`). An option that its `for_budget` sets by the number of trials and steps is None unless it is given.
    """

    KIND: ClassVar[Callable[..., Searcher]]
    SCALED: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def registry(cls) -> Registry[Any]:
        return SEARCHERS

    @property
    def name(self) -> str:
        return self.NAME or repr(self)

    @property
    def trains_in_slices(self) -> bool:
        """Return whether the searcher asks for a design again, with more steps each time."""
        return hasattr(self, "min_steps")

    @classmethod
    def read_options(cls, data: Mapping[str, Any], reader: PartReader, where: str) -> Any:
        options = {key: value for key, value in data.items() if key != "name"}
        return reader.record(part_of(data["name"]), options, where)

    def bind(
        self,
        space: Space,
        objectives: Sequence[Objective],
        legal: Legal = anything,
        trials: int | None = None,
        steps: int | None = None,
    ) -> Searcher:
        """Make the searcher.

        `legal` says which cards are within the limits known before an evaluation. `trials` is the planned number of
        evaluations and `steps` the length of a full one, both None where unknown.
        """
        kind = type(self).KIND
        scaled = kind.for_budget(trials, steps) if hasattr(kind, "for_budget") else {}
        options = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        given = {name: value for name, value in options.items() if value is not None or name not in self.SCALED}
        return kind(space, tuple(objectives), legal, **{**scaled, **given})

    def __reduce__(self) -> Any:  # the class is made at run time, where pickle does not find it
        options = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return partial(searcher, self.NAME or type(self).KIND, **options), ()


def part_of(kind: Any) -> type[SearcherPart]:
    """Give the class of the options of a searcher, which is a registered name or a class of the user's own."""
    if not callable(kind):
        return _part_of(SEARCHERS.get(kind), kind)
    if isinstance(kind, type) and not hasattr(kind, "ask"):
        raise IllegalInput(f"the class {kind.__name__} is no searcher: it has no method ask(history, rng)")
    try:
        inspect.signature(kind).bind_partial(*GIVEN)
    except (TypeError, ValueError):  # ValueError: a builtin without a signature
        needed = f"its first arguments must be {', '.join(GIVEN)}"
        raise IllegalInput(f"{kind!r} cannot be called to make a searcher: {needed}") from None
    return _part_of(kind, "")


@lru_cache(maxsize=256)
def _part_of(kind: Any, name: str) -> type[SearcherPart]:
    scaled = frozenset(kind.for_budget(1, 1)) if hasattr(kind, "for_budget") else frozenset()
    made = getattr(kind, "func", kind)  # below a choice of its arguments
    about = {"NAME": name, "KIND": staticmethod(kind), "SCALED": scaled, "__module__": made.__module__}
    declared = list(_declared(kind, made, scaled))
    return make_dataclass(made.__name__, declared, bases=(SearcherPart,), namespace=about, frozen=True, kw_only=True)


def _declared(kind: Any, made: Any, scaled: frozenset[str]) -> Iterator[tuple[str, Any, "Field[Any]"]]:
    """Give name, type and field of each option: the fields of a dataclass, or else the parameters of a function."""
    own = {one.name: one for one in fields(made)} if is_dataclass(made) else {}
    try:
        hints = get_type_hints(made if own or inspect.isfunction(made) else made.__init__)
    except NameError:  # a class of the user's own may name types that are known to its function alone
        hints = {}
    for name, parameter in list(inspect.signature(kind).parameters.items())[len(GIVEN) :]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint, metadata = hints.get(name, Any), own[name].metadata if name in own else None
        if name in scaled:
            yield name, hint | None, field(default=cast(Any, None), metadata=metadata, hash=False)
        elif name in own and own[name].default_factory is not MISSING:
            yield name, hint, field(default_factory=own[name].default_factory, metadata=metadata, hash=False)
        else:
            default: Any = MISSING if parameter.default is parameter.empty else parameter.default
            yield name, hint, field(default=default, metadata=metadata, hash=False)


def searcher(kind: Any, **options: Any) -> SearcherPart:
    """Choose a searcher by name or class, with options; raise `UnknownName` for an option that it does not have."""
    made, known = part_of(kind), option_names(kind)
    for name in options.keys() - set(known):
        raise UnknownName(f"option of the searcher {made.NAME or made.__name__}", name, known)
    for one in fields(made):  # type: ignore[arg-type]
        if one.name not in options and one.default is MISSING and one.default_factory is MISSING:
            raise IllegalInput(f"the searcher {made.NAME or made.__name__} needs its option {one.name!r}")
    return made(**options)


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
    """Build the searcher of that name; raise `IllegalDesign` that lists the faults of its options."""
    SEARCHERS.get(name)  # raises where there is none
    return _checked(SearcherPart, {"name": name, **options}, name).bind(space, objectives, legal, trials, steps)


@dataclass(frozen=True)
class CheckedSearcher:
    """Base class of our searchers: what a study gives to each of them, and the check of goals and options.

    Raise `IllegalDesign` that lists the options of the wrong type or out of range.
    """

    NEEDS_GOALS: ClassVar[bool] = True

    space: Space
    objectives: tuple[Objective, ...] = ()
    legal: Legal = anything

    def __post_init__(self) -> None:
        if self.NEEDS_GOALS:
            goals_of(self.objectives)
        kind = part_of(type(self))
        options = {one.name: getattr(self, one.name) for one in fields(kind)}  # type: ignore[arg-type]
        _checked(kind, options, kind.__name__)


def _checked(kind: type[SearcherPart], data: Mapping[str, Any], name: str) -> SearcherPart:
    reader = PartReader()
    found = reader.record(kind, data, "") if is_dataclass(kind) else reader.read(kind, data)
    faults = reader.faults or list(range_faults(found))
    if faults:
        raise IllegalDesign(faults, what=f"options of {name}")
    return found  # type: ignore[no-any-return]


def option_names(kind: Any) -> list[str]:
    """List the options of a searcher, which is a name or a class."""
    return [one.name for one in fields(part_of(kind))]  # type: ignore[arg-type]


def usual_searcher(space: Space, goals: int) -> str:
    """Name the default searcher for a number of goals; docs/methods/flexibert.md says what the choice rests on."""
    if goals > 1:
        return "nsga2"
    if not listable(space):
        return "regularized-evolution"
    return "boshnas" if differ_in_layers(space) else "forest"
