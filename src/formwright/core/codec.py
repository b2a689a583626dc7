"""JSON in and out of frozen dataclasses, collecting every fault instead of stopping at the first.

A dataclass says with its annotations what is legal; this module reads and writes that. Members of a union carry a
``TYPE`` class variable, written as ``"type"``, and a versioned whole a ``VERSION``, written as ``"schema"``. Fields
equal to their default are left out when writing, so that a field added later does not change the bytes of older
values.
"""

import dataclasses
import json
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from formwright.core.errors import Fault, IllegalDesign, nearest

T = TypeVar("T")
Json = Any


@dataclass(frozen=True)
class Range:
    """Bound an integer, as in ``Annotated[int, Range(1)]``."""

    least: int
    most: int = 10**12  # beyond any real size; keeps arithmetic on hostile input cheap

    def fault(self, value: int) -> str | None:
        """Say what is wrong with a value, or None."""
        if self.least <= value <= self.most:
            return None
        return f"must be at least {self.least} and at most {self.most}, not {_show(value)}"


@dataclass(frozen=True)
class Leaf:
    """Read, write and describe a field whose JSON form the annotations cannot say.

    `read` returns the value, or raises ValueError with what is wrong.
    """

    read: Callable[[Json], Any]
    write: Callable[[Any], Json]
    schema: Json


Positive = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
_BAD = object()


def read(kind: type[T], data: Json, what: str) -> T:
    """Build a `kind` from JSON data; raise `IllegalDesign` listing every fault and where it is."""
    faults: list[Fault] = []
    value = _read(kind, data, "", faults)
    if faults:
        raise IllegalDesign(faults, what=what)
    return value  # type: ignore[no-any-return]


def write(value: Any) -> Json:
    """Turn a dataclass into JSON data, leaving out fields that equal their default."""
    if dataclasses.is_dataclass(value):
        data = header(value)
        for field in dataclasses.fields(value):
            item = getattr(value, field.name)
            if item != field.default:
                leaf = _leaf(field.type)
                data[field.name] = leaf.write(item) if leaf else write(item)
        return data
    return [write(item) for item in value] if isinstance(value, tuple) else value


def range_faults(value: Any, where: str = "") -> Iterator[Fault]:
    """List the numbers of a dataclass, however deep inside, that are out of range; for values not read from JSON."""
    for field in dataclasses.fields(value):
        yield from _item_faults(field.type, getattr(value, field.name), _at(where, field.name))


def _item_faults(kind: Any, item: Any, where: str) -> Iterator[Fault]:
    if dataclasses.is_dataclass(item):
        yield from range_faults(item, where)
    elif isinstance(item, tuple) and get_origin(kind) is tuple:
        for index, member in enumerate(item):
            yield from _item_faults(get_args(kind)[0], member, f"{where}[{index}]")
    elif item is not None:
        found = (extra for part in (kind, *get_args(kind)) for extra in getattr(part, "__metadata__", ()))
        for wrong in (bounds.fault(item) for bounds in found if isinstance(bounds, Range)):
            if wrong is not None:
                yield Fault(where, wrong)


def header(kind: Any) -> dict[str, Json]:
    """Give what a class writes of itself beside its fields: its ``TYPE`` in a union, its schema ``VERSION``."""
    found = {"type": getattr(kind, "TYPE", None), "schema": getattr(kind, "VERSION", None)}
    return {name: item for name, item in found.items() if item is not None}


def canonical(data: Json) -> str:
    """Write JSON data as the one text that stands for it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@lru_cache(maxsize=1 << 14)
def text(value: Any) -> str:
    """Give ``canonical(write(value))`` of a dataclass, remembering the text of every part that designs share."""
    items = {name: canonical(item) for name, item in header(value).items()}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default:
            items[field.name] = _item_text(item, _leaf(field.type))
    return "{" + ",".join([f'"{name}":{items[name]}' for name in sorted(items)]) + "}"


def _item_text(item: Any, leaf: Leaf | None) -> str:
    if leaf is None and dataclasses.is_dataclass(item):
        return text(item)  # type: ignore[arg-type]
    if leaf is None and isinstance(item, tuple):
        return f"[{','.join(_item_text(member, None) for member in item)}]"
    return canonical(leaf.write(item) if leaf else item)


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


def _read(kind: Any, data: Json, where: str, faults: list[Fault]) -> Any:
    if get_origin(kind) is Annotated:
        return _read_annotated(kind, data, where, faults)
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, data, where, faults)
    if get_origin(kind) in (Union, types.UnionType):
        return _read_union(get_args(kind), data, where, faults)
    if get_origin(kind) is tuple:
        return _read_list(get_args(kind)[0], data, where, faults)
    if get_origin(kind) is Literal:
        return _read_word(get_args(kind), data, where, faults)
    if type(data) is not kind:  # bool is an int to isinstance, and must not pass for one
        return _fault(where, f"must be {_NAMES[kind]}, not {_show(data)}", faults)
    return data


def _read_annotated(kind: Any, data: Json, where: str, faults: list[Fault]) -> Any:
    leaf = _leaf(kind)
    if leaf is not None:
        try:
            return leaf.read(data)
        except ValueError as error:
            return _fault(where, str(error), faults)
    base, bounds = get_args(kind)
    value = _read(base, data, where, faults)
    wrong = None if value is _BAD else bounds.fault(value)
    return value if wrong is None else _fault(where, wrong, faults)


def _read_record(kind: Any, data: Json, where: str, faults: list[Fault]) -> Any:
    if not isinstance(data, dict):
        return _fault(where, f"must be an object, not {_show(data)}", faults)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    known = [*fields, *header(kind)]
    for name in [name for name in data if name not in known]:
        close = nearest(name, known)
        hint = f"did you mean {close[0]!r}?" if close else f"fields are {', '.join(known)}"
        plain = name if name.isascii() and name.isidentifier() else _show(name)  # what cannot be printed is escaped
        _fault(_at(where, plain), f"is not a field; {hint}", faults)
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _read(field.type, data[name], _at(where, name), faults)
        elif field.default is dataclasses.MISSING:
            values[name] = _fault(_at(where, name), "is missing", faults)
    return _BAD if any(value is _BAD for value in values.values()) else _build(kind, values, where, faults)


def _build(kind: Any, values: dict[str, Any], where: str, faults: list[Fault]) -> Any:
    try:
        return kind(**values)
    except IllegalDesign as error:  # what a value says of itself, put where the value stands
        for fault in error.faults:
            _fault(_at(where, fault.where) if fault.where else where, fault.what, faults)
        return _BAD


def _read_union(kinds: tuple[Any, ...], data: Json, where: str, faults: list[Fault]) -> Any:
    if data is None and type(None) in kinds:
        return None
    members = [kind for kind in kinds if kind is not type(None)]
    if len(members) == 1 and not hasattr(members[0], "TYPE"):
        return _read(members[0], data, where, faults)
    tags = {member.TYPE: member for member in members}
    if not isinstance(data, dict):
        return _fault(where, f"must be an object whose type is one of {', '.join(tags)}, not {_show(data)}", faults)
    found = data.get("type")
    if not isinstance(found, str) or found not in tags:
        close = nearest(found, tags) if isinstance(found, str) else []
        hint = f"Nearest: {close[0]!r}. " if close else ""
        return _fault(_at(where, "type"), f"is {_show(found)}. {hint}Known: {', '.join(tags)}", faults)
    return _read(tags[found], data, where, faults)


def _read_list(kind: Any, data: Json, where: str, faults: list[Fault]) -> Any:
    if not isinstance(data, list):
        return _fault(where, f"must be a list, not {_show(data)}", faults)
    items = [_read(kind, item, f"{where}[{index}]", faults) for index, item in enumerate(data)]
    return _BAD if any(item is _BAD for item in items) else tuple(items)


def _read_word(words: tuple[str | int, ...], data: Json, where: str, faults: list[Fault]) -> Any:
    if any(type(data) is type(word) and data == word for word in words):
        return data
    return _fault(where, f"is {_show(data)}; allowed: {', '.join(map(str, words))}", faults)


def _fault(where: str, what: str, faults: list[Fault]) -> Any:
    faults.append(Fault(where or "the whole", what))
    return _BAD


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _show(data: Json) -> str:
    try:
        text = json.dumps(data, default=str)
    except RecursionError:  # text can be read a few levels deeper than it can be written from further down the stack
        return "something nested too deeply"
    return text if len(text) <= 60 else f"{text[:57]}..."


_NAMES = {int: "a whole number", bool: "true or false", str: "text", float: "a number"}
