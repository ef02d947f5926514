"""GraphQL types made of the very types that operations read and write."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, Union, get_args, get_origin, get_type_hints

import msgspec
import strawberry
from strawberry.scalars import JSON

Long = NewType("Long", int)
Instant = NewType("Instant", str)


def _unchanged(value: Any) -> Any:
    return value


SCALARS: dict[object, Any] = {
    Long: strawberry.scalar(
        name="Long", description="A whole number of up to 64 bits.", serialize=_unchanged, parse_value=_unchanged
    ),
    Instant: strawberry.scalar(
        name="Instant", description="A time as RFC 3339, in UTC.", serialize=_unchanged, parse_value=_unchanged
    ),
}
_SUFFIXES = ("View", "Result")
_NAMES = {"MemberView": "Membership"}
"""Types whose names would be those of others."""


class Hint(NamedTuple):
    """A type without its annotations, and what these say."""

    type: Any
    optional: bool
    description: str
    is_instant: bool


def hint_of(annotated: Any) -> Hint:
    """What a type hint says."""
    kind, optional, description, is_instant = annotated, False, "", False
    while True:
        if get_origin(kind) is Annotated:
            for meta in kind.__metadata__:
                if isinstance(meta, msgspec.Meta):
                    description = description or meta.description or ""
                    is_instant = is_instant or (meta.extra_json_schema or {}).get("format") == "date-time"
            kind = kind.__origin__
        elif get_origin(kind) in (Union, types.UnionType) and type(None) in get_args(kind):
            optional = True
            kind = Union[tuple(arg for arg in get_args(kind) if arg is not type(None))]  # noqa: UP007
        else:
            return Hint(kind, optional or kind is Any, description, is_instant)


def hints_of(struct: type) -> Iterator[tuple[str, Hint]]:
    """The fields of a struct with their hints."""
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        yield field.name, hint_of(hints[field.name])


def argument_type(hint: Hint) -> Any:
    """The type of an argument that may be left out."""
    if hint.is_instant:
        return Instant | None
    if hint.type in (int, float, bool):
        return hint.type | None
    if get_origin(hint.type) is list:
        return list[str] | None
    return str | None


class Types:
    """The GraphQL type of each struct, made once."""

    def __init__(self, person: type, node: Callable[[str], Any], nodes: frozenset[type]) -> None:
        self._person = person
        self._node = node
        self._nodes = nodes
        """Structs that stand for a person, by their `id`."""
        self._made: dict[tuple[type, bool], type] = {}

    def of(self, annotated: Any) -> Any:
        """The type that a hint means in an answer."""
        hint = hint_of(annotated)
        mapped = self._type_of(hint)
        return mapped | None if hint.optional else mapped

    def of_field(self, struct: type, name: str) -> Any:
        """The type of one field of a struct."""
        return self.of(get_type_hints(struct, include_extras=True)[name])

    def _type_of(self, hint: Hint) -> Any:
        kind = hint.type
        if hint.is_instant:
            return Instant
        if kind is int:
            return Long
        if kind in (str, bool, float):
            return kind
        if get_origin(kind) is Literal:
            return str
        if get_origin(kind) is list and self.is_typed(get_args(kind)[0]):
            return list[self.of(get_args(kind)[0])]  # type: ignore[misc]  # made while the program runs
        if get_origin(kind) is dict and _is_struct(get_args(kind)[1]):
            return list[self.struct_type(get_args(kind)[1], named=True)]  # type: ignore[misc]  # likewise
        if kind in self._nodes:
            return self._person
        return self.struct_type(kind) if _is_struct(kind) else JSON

    def is_typed(self, annotated: Any) -> bool:
        """Whether GraphQL has a type for it that says more than that it is JSON."""
        return self._type_of(hint_of(annotated)) is not JSON

    def struct_type(self, struct: type, *, named: bool = False) -> type:
        """The type of a struct; ``named``: of an entry of a mapping, with its name beside its own fields."""
        if (struct, named) in self._made:
            return self._made[struct, named]
        name = _NAMES.get(struct.__name__, struct.__name__)
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        assert name not in {made_type.__name__ for made_type in self._made.values()}, f"two types would be named {name}"
        made = self._made[struct, named] = type(f"Named{name}" if named else name, (), {"__annotations__": {}})
        hints = get_type_hints(struct, include_extras=True)
        if named:
            made.__annotations__["name"] = str
        names = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
        for field, hint in hints_of(struct):
            self._add(made, field, names[field], hint, hints[field])
        return strawberry.type(made, description=struct.__doc__)

    def _add(self, made: type, field: str, name: str, hint: Hint, annotated: Any) -> None:
        """Add a field to a type, under its name on the wire. What is read as it stands gets no resolver, which would
        cost more than the field."""
        is_ref = field == "person" and hint.type is str
        kind = Optional[self._person] if is_ref else self.of(annotated)  # noqa: UP045 — made while the program runs

        def resolve(root: Any) -> Any:
            value = getattr(root, field)
            if is_ref:
                return self._node(value) if value else None
            return self.shown(hint, value)

        resolve.__annotations__ = {"return": kind}
        made.__annotations__[field] = kind
        how: Any = {"description": hint.description or None, "name": None if name == field else name}
        if is_ref or self._is_converted(hint):
            how["resolver"] = resolve
        setattr(made, field, strawberry.field(**how))

    def _is_converted(self, hint: Hint) -> bool:
        inner = [hint.type, *(hint_of(arg).type for arg in get_args(hint.type))]
        return any(inner_type in self._nodes for inner_type in inner) or (
            get_origin(hint.type) is dict and _is_struct(inner[-1])
        )

    def shown(self, hint: Hint, value: Any) -> Any:
        """A value as its GraphQL type is read: mappings to structs as lists of entries, people as nodes."""
        if value is None or not self._is_converted(hint):
            return value
        if get_origin(hint.type) is dict:
            return [SimpleNamespace(**{"name": name, **msgspec.structs.asdict(entry)}) for name, entry in value.items()]
        if get_origin(hint.type) is list:
            return [self._node(item.id) for item in value]
        return self._node(value.id)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
