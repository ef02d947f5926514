"""Types that are read with msgspec: made ready for several threads; mistakes in what is read, in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from threadline.kernel.suggestion import suggestion

T = TypeVar("T")


def prepared(type: T) -> T:
    """The same type, ready to be decoded or converted to from several threads at once; a decorator for classes.

    msgspec works out what it needs of a type, and of all types in it, when it is first asked for one. Two threads that
    are the first to ask at the same time crash the interpreter: seen with 0.22, always within a second.
    """
    msgspec.json.Decoder(type)
    return type


def converted(value: Any, type: type[T], *, strict: bool = True) -> T:
    """The value as this type. Raises `msgspec.ValidationError`; see `readable`."""
    try:
        return msgspec.convert(value, type, strict=strict)
    except msgspec.ValidationError as error:
        if not re.match(r"Expected `int( \| null)?`, got `float`", str(error)):
            raise
        # 268.0 is an integer to JSON Schema, and to every client that knows one kind of number only.
        return msgspec.convert(_whole(value), type, strict=strict)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def readable(error: msgspec.ValidationError, label: str = "", known: Iterable[str] = ()) -> str:
    """What is wrong with a value, after the name of the field; ``label`` names the value itself, and ``known`` are its
    fields, of which the nearest is named beside one that it does not have."""
    # "Expected `int`, got `str` - at `$.limit`" -> "limit: expected `int`, got `str`"
    message, _, path = str(error).partition(" - at ")
    name = (label + path.strip("`").removeprefix("$")).lstrip(".")
    if known and (unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)):
        message = f"unknown field {unknown[1][:80]!r}; {suggestion(unknown[1], known)}"
    missing = message.removeprefix("Object missing required field ")
    message = f"{missing} is missing" if missing != message else message[0].lower() + message[1:]
    return f"{name}: {message}" if name else message
