"""The JSON Schema of a dataclass, from the same annotations by which `formwright.core.codec` reads it."""

import dataclasses
from typing import Annotated, Any, Literal, get_args, get_origin

from formwright.core.codec import UNIONS, Leaf, OpenUnion, header, hints_of, write

_SCHEMA_TYPES = {int: "integer", bool: "boolean", str: "string", float: "number", type(None): "null"}


def json_schema(kind: type, title: str) -> dict[str, Any]:
    """Describe `kind` as a self-contained JSON Schema (draft 2020-12)."""
    definitions: dict[str, Any] = {}
    _describe(kind, definitions)
    top: dict[str, Any] = definitions.pop(kind.__name__)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return head | top | {"$defs": dict(sorted(definitions.items()))}


def _describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, members = get_origin(kind), get_args(kind)
    if origin is Annotated:
        base, extra = members
        if isinstance(extra, OpenUnion):
            return {"anyOf": [_describe(member, definitions) for member in extra.members().values()]}
        if isinstance(extra, Leaf):
            return extra.schema  # type: ignore[no-any-return]
        return _describe(base, definitions) | {"minimum": extra.least, "maximum": extra.most}
    if origin is tuple:
        return {"type": "array", "items": _describe(members[0], definitions)}
    if origin is Literal:
        return {"enum": list(members)}
    if origin in UNIONS:
        return {"anyOf": [_describe(member, definitions) for member in members]}
    if not dataclasses.is_dataclass(kind):
        return {"type": _SCHEMA_TYPES[kind]}
    name: str = kind.__name__  # type: ignore[union-attr]
    if name not in definitions:
        definitions[name] = {}  # reserves the name while its fields, which may mention it, are described
        definitions[name] = _describe_fields(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _describe_fields(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {"const": item} for name, item in header(kind).items()}
    required = list(properties)
    for field in dataclasses.fields(kind):
        properties[field.name] = _describe(hints_of(kind)[field.name], definitions)
        if field.default is dataclasses.MISSING:
            required.append(field.name)
        else:
            properties[field.name] = properties[field.name] | {"default": write(field.default)}
    about = (kind.__doc__ or "").strip().splitlines()[0]
    shape = {"properties": properties, "required": required, "additionalProperties": False}
    return {"description": about, "type": "object", **shape}
