"""Which members of an answer are always written: those that have a value of their own where nothing else is said.

Of a request they may be left out, and its schema says so. Of an answer a client that is generated must know that they
are there, or it has to ask of each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec


def require_written(
    components: dict[str, Any], answers: Sequence[Any], answered: Sequence[Any], asked: Sequence[Any]
) -> None:
    """Say of what only answers have that its members with a default are there, if they are written in any case.

    ``answers`` are types, ``answered`` and ``asked`` the schemas of answers and of parameters.
    """
    sparing = {name for kind in _structs(answers) if kind.__struct_config__.omit_defaults for name in _names(kind)}
    for name in sorted(_reached(answered, components) - _reached(asked, components) - sparing):
        component = components[name]
        members = component.get("properties", {})
        needed = set(component.get("required", ()))
        always = [member for member, schema in members.items() if member in needed or "default" in schema]
        if always:
            component["required"] = always


def _names(kind: type) -> tuple[str, str]:
    """What a component may be called by its type: its name, or with its module where two have one name."""
    return kind.__name__, f"{kind.__module__}.{kind.__qualname__}"


def _structs(types: Iterable[Any]) -> set[type[msgspec.Struct]]:
    """The structs of which values of some types are made."""
    structs: set[type[msgspec.Struct]] = set()
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(types))
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, msgspec.inspect.StructType):
            if node.cls not in structs:
                structs.add(node.cls)
                waiting += [field.type for field in node.fields]
        elif isinstance(node, msgspec.inspect.Type):
            waiting += [getattr(node, name) for name in node.__struct_fields__]
    return structs


def _reached(schemas: Iterable[Any], components: dict[str, Any]) -> set[str]:
    """The names of the components to which some schemas lead."""
    reached: set[str] = set()
    waiting = list(schemas)
    while waiting:
        for name in _references(waiting.pop()):
            if name not in reached:
                reached.add(name)
                waiting.append(components[name])
    return reached


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(target := schema.get("$ref"), str):
            yield target.rpartition("/")[2]
        for inside in schema.values():
            yield from _references(inside)
    elif isinstance(schema, list | tuple):
        for inside in schema:
            yield from _references(inside)
