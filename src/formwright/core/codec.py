"""JSON in and out of frozen dataclasses, collecting every fault instead of stopping at the first.

A dataclass says with its annotations what is legal; this module reads, writes and describes that. Members of a union
carry a ``TYPE`` class variable, written as ``"type"``, and a versioned whole a ``VERSION``, written as ``"schema"``.
Fields equal to their default are left out when writing, so that a field added later does not change the bytes of older
values. `core.options` extends the reader and the writer for parts, which have names.
"""

import dataclasses
import json
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from formwright.core.errors import Fault, IllegalDesign, IllegalInput, nearest, nearest_hint

T = TypeVar("T")
Json = Any
UNIONS = (Union, types.UnionType)
MOST = 2**63 - 1  # what a database, an index and numpy can hold
BAD = object()  # what a reader gives where it found a fault
_WORDS = {int: "a whole number", bool: "true or false", str: "text", float: "a number"}


@dataclass(frozen=True)
class Range:
    """Bound a number, as in ``Annotated[int, Range(1, 1024)]``; without bounds it is finite."""

    least: float | None = None
    most: float | None = None

    def fault(self, value: float) -> str | None:
        """Say what is wrong with a value, or None."""
        highest = MOST if self.most is None and isinstance(value, int) else self.most
        least, most = -math.inf if self.least is None else self.least, math.inf if highest is None else highest
        if least <= value <= most and abs(value) != math.inf:
            return None
        named = highest if value > most else self.most
        limits = [f"at {word} {end}" for word, end in (("least", self.least), ("most", named)) if end is not None]
        return f"must be {' and '.join(limits) or 'finite'}, not {show(value)}"


@dataclass(frozen=True)
class Leaf:
    """Read, write and describe a field whose JSON form the annotations cannot say.

    `read` returns the value, or raises ValueError with what is wrong.
    """

    read: Callable[[Json], Any]
    write: Callable[[Any], Json]
    schema: Json


@dataclass(frozen=True)
class OpenUnion:
    """Name the members of a union when it is read, so that installed packages may add some, by their ``TYPE``."""

    members: Callable[[], Mapping[str, type]]


_LARGEST = 10**12  # beyond any real size; keeps arithmetic on hostile input cheap
Positive = Annotated[int, Range(1, _LARGEST)]
Natural = Annotated[int, Range(0, _LARGEST)]


def _hints_of(kind: Any) -> dict[str, Any]:
    """Give the types of a dataclass' fields, with the ranges in their metadata as annotations."""
    hints = get_type_hints(kind, include_extras=True)
    fields = getattr(kind, "__dataclass_fields__", {}).values()
    bounds = {field.name: field.metadata["range"] for field in fields if field.metadata.get("range")}
    return hints | {name: Annotated[hints[name], one] for name, one in bounds.items()}


hints_of: Callable[[Any], dict[str, Any]] = lru_cache(maxsize=512)(_hints_of)


def read(kind: type[T], data: Json, what: str) -> T:
    """Build a `kind` from JSON data; raise `IllegalDesign` listing every fault and where it is."""
    reader = JsonReader()
    value: T = reader.read(kind, data)
    return reader.finished(value, what)


def write(value: Any) -> Json:
    """Turn a dataclass into JSON data, leaving out fields that equal their default."""
    return JsonWriter().value(value)


class JsonReader:
    """Read values by their types, collecting every fault; what cannot be read is `BAD`."""

    NOUN = "a field"

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def read(self, kind: Any, data: Json, where: str = "") -> Any:
        """Read a value of a type; what cannot be read becomes a fault."""
        origin, members = get_origin(kind), get_args(kind)
        if kind is Any:
            return data
        if origin is Annotated:
            return self._annotated(members[0], members[1], data, where)
        if origin in UNIONS:
            return self._union(members, data, where)
        if origin is Literal:
            return self._word(members, data, where)
        if origin in (tuple, list, Sequence):
            return self._list(members[0] if members else Any, data, where)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(members[1] if members else Any, data, where)
        if dataclasses.is_dataclass(kind):
            return self.record(kind, data, where)
        return self._plain(kind, data, where)

    def record(self, kind: Any, data: Json, where: str) -> Any:
        """Read the fields of a dataclass."""
        if not isinstance(data, Mapping):
            return self.fault(where, f"must be an object, not {show(data)}")
        fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
        known, hints = [*fields, *header(kind)], hints_of(kind)
        for name in [str(name) for name in data if name not in known]:
            close = nearest(name, known)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
            plain = name if name.isascii() and name.isidentifier() else show(name)  # what cannot be printed is escaped
            self.fault(at(where, plain), f"is not {self.NOUN}; {hint}")
        values = {}
        for name, field in fields.items():
            if name in data:
                values[name] = self.read(hints[name], data[name], at(where, name))
            elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                values[name] = self.fault(at(where, name), "is missing")
        return self.build(kind, values, where)

    def build(self, make: Callable[..., Any], values: Mapping[str, Any], where: str) -> Any:
        """Make a value of what was read; what it says is wrong with it becomes a fault."""
        if any(value is BAD for value in values.values()):
            return BAD
        try:
            return make(**values)
        except IllegalDesign as error:  # what a value says of itself, put where the value stands
            for fault in error.faults:
                self.fault(at(where, fault.where) if fault.where else where, fault.what)
        except IllegalInput as error:
            self.fault(where, str(error))
        return BAD

    def fault(self, where: str, what: str) -> Any:
        """Add what is wrong, and where."""
        self.faults.append(Fault(where or "the whole", what))
        return BAD

    def finished(self, value: T, what: str) -> T:
        """Give what was read; raise `IllegalDesign` that lists every fault."""
        if self.faults:
            raise IllegalDesign(self.faults, what=what)
        return value

    def _annotated(self, kind: Any, extra: Leaf | OpenUnion | Range, data: Json, where: str) -> Any:
        if isinstance(extra, OpenUnion):
            return self._tagged(extra.members(), data, where)
        if isinstance(extra, Leaf):
            try:
                return extra.read(data)
            except ValueError as error:
                return self.fault(where, str(error))
        value = data if kind is int and type(data) is int else self.read(kind, data, where)
        wrong = extra.fault(value) if isinstance(value, int | float) else None
        return value if wrong is None else self.fault(where, wrong)

    def _union(self, kinds: Sequence[Any], data: Json, where: str) -> Any:
        if data is None and type(None) in kinds:
            return None
        members = [kind for kind in kinds if kind is not type(None)]
        tags = {kind.TYPE: kind for kind in members if hasattr(kind, "TYPE")}
        if tags:
            return self._tagged(tags, data, where)
        if type(data) in members or (type(data) is int and float in members):
            return self._plain(type(data) if type(data) in members else float, data, where)
        others = [kind for kind in members if kind not in _WORDS] or members
        return self.read(others[-1] if isinstance(data, str) else others[0], data, where)

    def _tagged(self, tags: Mapping[str, Any], data: Json, where: str) -> Any:
        if not isinstance(data, dict):
            return self.fault(where, f"must be an object whose type is one of {', '.join(tags)}, not {show(data)}")
        found = data.get("type")
        if isinstance(found, str) and found in tags:
            return self.read(tags[found], data, where)
        hint = nearest_hint(found, tags) if isinstance(found, str) else ""
        return self.fault(at(where, "type"), f"is {show(found)}.{hint} Known: {', '.join(tags)}")

    def _word(self, words: Sequence[str | int], data: Json, where: str) -> Any:
        if any(type(data) is type(word) and data == word for word in words):
            return data
        return self.fault(where, f"is {show(data)}; allowed: {', '.join(map(str, words))}")

    def _list(self, kind: Any, data: Json, where: str) -> Any:
        if not isinstance(data, list | tuple):
            return self.fault(where, f"must be a list, not {show(data)}")
        items = tuple([self.read(kind, item, f"{where}[{index}]") for index, item in enumerate(data)])
        return BAD if any(item is BAD for item in items) else items

    def _mapping(self, kind: Any, data: Json, where: str) -> Any:
        if not isinstance(data, Mapping):
            return self.fault(where, f"must be an object, not {show(data)}")
        items = {str(name): self.read(kind, item, at(where, str(name))) for name, item in data.items()}
        return BAD if any(item is BAD for item in items.values()) else items

    def _plain(self, kind: Any, data: Json, where: str) -> Any:
        if kind is float and type(data) is int and abs(data) < 2**1000:  # a float holds nothing much larger
            return float(data)
        if kind not in _WORDS:
            return self.fault(where, "cannot be read from a file")
        if type(data) is not kind:  # bool is an int to isinstance, and must not pass for one
            return self.fault(where, f"must be {_WORDS[kind]}, not {show(data)}")
        if kind is int and abs(data) > MOST:
            return self.fault(where, f"must be at most {MOST} in size, not {show(data)}")
        return data


class JsonWriter:
    """Write dataclasses as JSON data, leaving out fields that equal their default."""

    def value(self, item: Any) -> Json:
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return self.record(item)
        if isinstance(item, Mapping):
            return {str(name): self.value(member) for name, member in item.items()}
        return [self.value(member) for member in item] if isinstance(item, list | tuple) else item

    def record(self, value: Any) -> dict[str, Json]:
        """Write the fields of a dataclass."""
        data, hints = header(value), hints_of(type(value))
        for field in dataclasses.fields(value):
            item = getattr(value, field.name)
            if self.wants(field, item):
                leaf = _leaf(hints[field.name])
                data[field.name] = leaf.write(item) if leaf else self.value(item)
        return data

    def wants(self, field: "dataclasses.Field[Any]", item: Any) -> bool:
        """Tell whether a field is written."""
        return not _is_default(field, item)


def _is_default(field: "dataclasses.Field[Any]", item: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return type(item) is type(field.default) and bool(item == field.default)
    return field.default_factory is not dataclasses.MISSING and bool(item == field.default_factory())


def range_faults(value: Any, where: str = "", closed: type | tuple[type, ...] = ()) -> Iterator[Fault]:
    """List the numbers of a dataclass, however deep inside, that are out of range; for values not read from JSON.

    What is inside values of the `closed` classes, and of classes that no annotation names, is not looked at.
    """
    for field in dataclasses.fields(value):
        kind, item = hints_of(type(value))[field.name], getattr(value, field.name)
        yield from _item_faults(kind, item, at(where, field.name), closed)


def _item_faults(kind: Any, item: Any, where: str, closed: Any) -> Iterator[Fault]:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    kinds = get_args(bare) if get_origin(bare) in UNIONS else (bare,)
    if isinstance(item, closed):
        return
    if isinstance(item, tuple) and get_origin(bare) is tuple:
        for index, member in enumerate(item):
            yield from _item_faults(get_args(bare)[0], member, f"{where}[{index}]", closed)
    elif dataclasses.is_dataclass(item):
        bases = [get_args(one)[0] if get_origin(one) is Annotated else one for one in kinds]
        if any(isinstance(one, type) and one is not Any and isinstance(item, one) for one in bases):
            yield from range_faults(item, where, closed)
    elif item is not None and all(_is_number(one) for one in kinds):
        extras = [extra for one in (kind, *kinds) for extra in getattr(one, "__metadata__", ())]
        faults = [one.fault(item) for one in extras] if isinstance(item, Real) else [f"must be a number, not {item!r}"]
        yield from (Fault(where, fault) for fault in faults if fault is not None)


def _is_number(kind: Any) -> bool:
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind) in (int, float, type(None))


def header(kind: Any) -> dict[str, Json]:
    """Give what a class writes of itself next to its fields: its ``TYPE`` in a union, its schema ``VERSION``."""
    found = {"type": getattr(kind, "TYPE", None), "schema": getattr(kind, "VERSION", None)}
    return {name: item for name, item in found.items() if item is not None}


def canonical(data: Json) -> str:
    """Write JSON data as the one text that stands for it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@lru_cache(maxsize=1 << 14)
def text(value: Any) -> str:
    """Give ``canonical(write(value))`` of a dataclass, remembering the text of every part that designs share."""
    items, hints = {name: canonical(item) for name, item in header(value).items()}, hints_of(type(value))
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if not _is_default(field, item):
            leaf = _leaf(hints[field.name])
            items[field.name] = canonical(leaf.write(item)) if leaf else _item_text(item)
    return "{" + ",".join([f'"{name}":{items[name]}' for name in sorted(items)]) + "}"


def _item_text(item: Any) -> str:
    if isinstance(item, tuple):
        return f"[{','.join(map(_item_text, item))}]"
    return text(item) if dataclasses.is_dataclass(item) else canonical(item)  # type: ignore[arg-type]


def loads(text: str | bytes) -> Json:
    """Parse JSON text strictly: no repeated keys, no NaN; raise ValueError saying where it breaks."""
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constants)
    except RecursionError:
        raise ValueError("is nested too deeply to be read") from None


def _no_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"repeats the key {next(name for name in names if names.count(name) > 1)!r}")
    return data


def _no_constants(name: str) -> Json:
    raise ValueError(f"holds {name}, which is not a number")


def _leaf(kind: Any) -> Leaf | None:
    return next((extra for extra in getattr(kind, "__metadata__", ()) if isinstance(extra, Leaf)), None)


def at(where: str, name: str) -> str:
    """Give the path of a field from the path of what it is a field of."""
    return f"{where}.{name}" if where else name


def show(data: Json) -> str:
    """Write data as JSON for a message, at most 60 characters of it."""
    try:
        text = json.dumps(data, default=str)
    except RecursionError:  # text can be read a few levels deeper than it can be written from further down the stack
        return "something nested too deeply"
    return text if len(text) <= 60 else f"{text[:57]}..."
