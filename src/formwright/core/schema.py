"""JSON Schema of a dataclass, from the same annotations that `core.codec` reads."""

import dataclasses
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from formwright.core.codec import Leaf, header, write

_SIMPLE = {int: "integer", bool: "boolean", str: "string", float: "number"}


def json_schema(kind: type, title: str) -> dict[str, Any]:
    """Describe `kind` as a self-contained JSON Schema (draft 2020-12)."""
    definitions: dict[str, Any] = {}
    _describe(kind, definitions)
    top: dict[str, Any] = definitions.pop(kind.__name__)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | top | {"$defs": dict(sorted(definitions.items()))}


def _describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        base, extra = get_args(kind)
        return (
            extra.schema
            if isinstance(extra, Leaf)
            else _describe(base, definitions) | {"minimum": extra.least, "maximum": extra.most}
        )
    if origin is tuple:
        return {"type": "array", "items": _describe(get_args(kind)[0], definitions)}
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_describe(member, definitions) for member in get_args(kind)]}
    if kind is type(None):
        return {"type": "null"}
    if dataclasses.is_dataclass(kind):
        return _refer(kind, definitions)
    return {"type": _SIMPLE[kind]}


def _refer(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # reserves the name while its fields, which may mention it, are described
        definitions[name] = _record(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _record(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {"const": item} for name, item in header(kind).items()}
    required = list(properties)
    for field in dataclasses.fields(kind):
        properties[field.name] = _describe(field.type, definitions)
        if field.default is dataclasses.MISSING:
            required.append(field.name)
        else:
            properties[field.name] = properties[field.name] | {"default": write(field.default)}
    about = (kind.__doc__ or "").strip().splitlines()[0]
    return {
        "description": about,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
