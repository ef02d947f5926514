"""What a projection asks of events, found by letting it fold some and watching: so that the laws reach a new one."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from threadline.kernel.event import Event, Identifier
from threadline.kernel.projection import Projection
from threadline.testing.scenarios import NOW, TYPES, recorded

_ROUNDS = 4
"""A field that is read only where another one is there is found a round later."""
_PLAUSIBLE: tuple[Any, ...] = ("one", "two", "10.50", 1, 2.5, -3, True, None, ["one"], {"one": 1})


class Asked(NamedTuple):
    """The event types that a projection folds, and the names it looks up in their properties and context."""

    types: tuple[str, ...]
    properties: tuple[str, ...]
    context: tuple[str, ...]


def asked_of(projection: Projection) -> Asked:
    """What a projection asks for; of one that folds every type, with the types that histories have."""
    types = tuple(sorted(TYPES if projection.handles is None else projection.handles))
    properties: dict[str, None] = {}
    context: dict[str, None] = {}
    for _ in range(_ROUNDS):
        for type in dict.fromkeys(types):
            for value in _PLAUSIBLE:
                _fold(projection, type, _Watched(properties, value), _Watched(context, value))
    return Asked(types, tuple(properties), tuple(context))


def events_for(asked: Asked, random: Random, count: int) -> list[Event]:
    """Events of these types in which the fields that are asked for hold something, as a producer might tell them."""
    return [_event(asked, random, number) for number in range(count)]


def _event(asked: Asked, random: Random, number: int) -> Event:
    return Event(
        type=random.choice(asked.types),
        identifiers=(Identifier("user_id", "u"),),
        occurred_at=NOW - random.randrange(1, 1_000),
        key=f"asked-{number}",
        properties=_random_fields(asked.properties, random),
        context=_random_fields(asked.context, random),
    )


def _random_fields(names: tuple[str, ...], random: Random) -> dict[str, Any]:
    return {name: random.choice(_PLAUSIBLE) for name in names if random.randrange(4)}


def _fold(projection: Projection, type: str, properties: _Watched, context: _Watched) -> None:
    event = Event(
        type=type,
        identifiers=(Identifier("user_id", "u"),),
        occurred_at=NOW - 1,
        key="k",
        properties=properties,
        context=context,
    )
    with suppress(Exception):  # a fold that raises breaks a law, and the law says so
        projection.fold(projection.empty(), recorded([event])[0])


class _Watched(dict[str, Any]):
    """A mapping in which everything is found, and which remembers what was looked for."""

    def __init__(self, names: dict[str, None], value: Any) -> None:
        super().__init__(dict.fromkeys(names, value))
        self._names = names
        self._value = value

    def __missing__(self, name: str) -> Any:
        self._names[name] = None
        return self._value

    def __contains__(self, name: object) -> bool:
        self._names[str(name)] = None
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]
