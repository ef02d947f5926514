"""Key fields: what people look at first in an entry of a list or in an answer, declared where its type is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

Declared = TypeVar("Declared", bound=type[msgspec.Struct])

_KEYS, _SUMMARY = "__key_fields__", "__summary_fields__"


def key_fields(*names: str) -> Callable[[Declared], Declared]:
    """Declare the fields of an entry that answer the question, in their order; a decorator for a Struct.

    Where there is little room surfaces show these and leave others out. A person is named by ``identifiers``, where
    there are any, and not by an id. Names are those of the wire.
    """
    return _declare(_KEYS, names)


def summary_fields(*names: str) -> Callable[[Declared], Declared]:
    """Declare the fields of an answer that are shown unless somebody asks for all; a decorator for a Struct."""
    return _declare(_SUMMARY, names)


def _declare(attribute: str, names: tuple[str, ...]) -> Callable[[Declared], Declared]:
    def declare(kind: Declared) -> Declared:
        unknown = set(names) - set(kind.__struct_encode_fields__)
        if unknown or not names:
            raise ValueError(f"{kind.__name__} has no fields {sorted(unknown)}; expected some of its own")
        setattr(kind, attribute, names)
        return kind

    return declare


def key_fields_of(kind: object) -> tuple[str, ...]:
    """The key fields of a type of entries; empty where it declares none."""
    names: tuple[str, ...] = getattr(kind, _KEYS, ())
    return names


def summary_fields_of(kind: object) -> tuple[str, ...]:
    """The fields that sum up an answer of a type; empty: all of them do."""
    names: tuple[str, ...] = getattr(kind, _SUMMARY, ())
    return names


@lru_cache(maxsize=1_000)
def key_columns(result: Any) -> Mapping[str, tuple[str, ...]]:
    """By the name of each field that has entries, at whatever depth of a type of results, the key fields of these."""
    return {name: keys for name, kind in _structs(result, set()) if (keys := key_fields_of(kind))}


def _structs(kind: Any, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or kind in seen:
        return
    seen.add(kind)
    hints = get_type_hints(kind)
    for field, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        for inner in _parts(hints[field]):
            yield name, inner
            yield from _structs(inner, seen)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
