"""Names for the command line and for files: one lazy table per kind, which installed packages may extend."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from formwright.core.errors import FormwrightError, IllegalInput, UnknownName
from formwright.core.remember import remember

T = TypeVar("T")
_OURS = "formwright"


@dataclass(frozen=True, eq=False)
class Registry(Generic[T]):
    """Resolve names of one kind (a singular noun) to objects, importing a module only when its name is asked for.

    `table` maps names to `"module:attribute"`; other packages join by an entry point in `group`, for example
    `formwright.spaces`. What a name stands for must be an instance of `of`, where that is given.
    """

    kind: str
    table: Mapping[str, str]
    group: str
    of: type[T] | tuple[type[Any], ...] | None = None

    def names(self) -> list[str]:
        """List every name in alphabetical order, without importing anything it stands for."""
        return sorted(self._entries())

    def get(self, name: str) -> T:
        """Import and return what `name` stands for; raise `UnknownName` with the nearest name if nothing does."""
        entries = self._entries()
        if name not in entries:
            raise UnknownName(self.kind, name, sorted(entries))
        found = self._load(entries[name])
        if self.of is not None and not isinstance(found, self.of):
            kinds = self.of if isinstance(self.of, tuple) else (self.of,)
            names = " or ".join(kind.__name__ for kind in kinds)
            reason = f"it is of type {type(found).__name__} and not {names}"
            raise IllegalInput(self._blame(entries[name], reason))
        return found

    @remember  # what is installed is looked up once: a look takes longer than counting a hundred cards
    def _entries(self) -> dict[str, EntryPoint]:
        entries = {name: EntryPoint(name, target, self.group) for name, target in self.table.items()}
        for entry in entry_points(group=self.group):
            if entry.name in entries:
                first, second = (f"{one.value} of {_owner(one)}" for one in (entries[entry.name], entry))
                raise IllegalInput(
                    f"two {self.kind}s are called {entry.name!r}: {first} and {second}. Uninstall one of the packages, "
                    f"or rename its entry point in {self.group!r}."
                )
            entries[entry.name] = entry
        return entries

    def _load(self, entry: EntryPoint) -> T:
        try:
            return cast(T, entry.load())
        except FormwrightError:
            raise
        except (Exception, SystemExit) as error:  # a foreign module may fail, or even leave, in any way it likes
            if _owner(entry) == _OURS:
                raise
            raise IllegalInput(self._blame(entry, f"{type(error).__name__}: {error}")) from error

    def _blame(self, entry: EntryPoint, reason: str) -> str:
        return (
            f"the {self.kind} {entry.name!r} of the installed package {_owner(entry)} cannot be loaded from "
            f"{entry.value}: {reason}. Repair or uninstall that package."
        )


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else _OURS


@dataclass(frozen=True)
class Late:
    """A function that is imported when it is first called, so that a table of parts can be read without its module.

    `where` is `"module:name"`.
    """

    where: str

    @property
    def function(self) -> Callable[..., Any]:
        """Import and return the function."""
        module, _, name = self.where.partition(":")
        return cast(Callable[..., Any], getattr(import_module(module), name))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(*arguments, **options)
