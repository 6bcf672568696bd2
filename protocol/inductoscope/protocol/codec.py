"""Dataclasses to JSON and back, strict about what it knows and deaf to what it does not.

Unknown fields are ignored, so that an older reader understands a newer writer; a missing field without a default or a
value of the wrong type is a `CodecError` that names the path.  A field whose JSON name is no Python name says so in
its metadata: `field(metadata={"json": "from"})`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from typing import Any, TypeVar

T = TypeVar("T")


class CodecError(ValueError):
    """A JSON value does not fit the type it should have; the message names the path."""


@dataclasses.dataclass(frozen=True)
class _Field:
    name: str
    json_name: str
    type: Any
    required: bool


@functools.cache
def _fields(cls: type) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(cls)
    return tuple(
        _Field(
            name=f.name,
            json_name=f.metadata.get("json", f.name),
            type=hints[f.name],
            required=f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
        )
        for f in dataclasses.fields(cls)
    )


def to_json(value: Any) -> Any:
    """The JSON form of a dataclass, enum, tuple, dict or plain value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.json_name: to_json(getattr(value, f.name)) for f in _fields(type(value))}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CodecError(f"{type(value).__name__} has no JSON form")


def from_json(cls: type[T], value: Any) -> T:
    """The `cls` that `value` (parsed JSON) describes.  Raises `CodecError`."""
    return typing.cast(T, _read(cls, value, cls.__name__))


def _read(kind: Any, value: Any, path: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _read_union(typing.get_args(kind), value, path)
    if origin is tuple:
        return _read_tuple(typing.get_args(kind), value, path)
    if origin is dict:
        _expect(isinstance(value, dict), value, "an object", path)
        item_type = typing.get_args(kind)[1]
        return {key: _read(item_type, item, f"{path}[{key!r}]") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(typing.cast(type, kind), value, path)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise CodecError(f"{path}: {value!r} is not a {kind.__name__}") from None
    return _read_plain(kind, value, path)


def _read_union(options: tuple[Any, ...], value: Any, path: str) -> Any:
    if value is None:
        _expect(type(None) in options, value, "a value", path)
        return None
    options = tuple(option for option in options if option is not type(None))
    for option in options[:-1]:
        try:
            return _read(option, value, path)
        except CodecError:
            continue
    return _read(options[-1], value, path)


def _read_tuple(items: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    _expect(isinstance(value, list), value, "an array", path)
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_read(items[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    _expect(len(value) == len(items), value, f"an array of {len(items)}", path)
    return tuple(_read(kind, item, f"{path}[{i}]") for i, (kind, item) in enumerate(zip(items, value, strict=True)))


def _read_dataclass(cls: type, value: Any, path: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", path)
    found: dict[str, Any] = {}
    for f in _fields(cls):
        if f.json_name in value:
            found[f.name] = _read(f.type, value[f.json_name], f"{path}.{f.json_name}")
        elif f.required:
            raise CodecError(f"{path}: {f.json_name!r} is missing")
    return cls(**found)


def _read_plain(kind: Any, value: Any, path: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    _expect(fits, value, kind.__name__, path)
    return value


def _expect(condition: bool, value: Any, what: str, path: str) -> None:
    if not condition:
        raise CodecError(f"{path}: expected {what}, got {type(value).__name__}")
