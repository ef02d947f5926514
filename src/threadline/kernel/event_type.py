"""An event type: what happened, who may say so, what the event carries and how it reads, declared where it is made.

The registry of events, a tracking plan in code: columns in SQL, JSON Schema, the sentence in a timeline, and protection
against forged events come from one value. Types are free all the same: what nobody has declared is recorded as well.

    >>> from threadline.kernel.event_type import EventType, Properties
    >>> class Earned(Properties):
    ...     points: int
    ...     rule: str
    >>> earned = EventType(
    ...     "points_earned", "Somebody has earned points.", Earned, speaker="threadline",
    ...     sentence="Earned {points} points for {rule}",
    ... )
    >>> sorted(earned.property_schemas), earned.acts
    (['points', 'rule'], False)

Options: ``speaker`` (``threadline``, ``process`` or ``anyone``: an event that its source may not say counts for
nothing), ``is_activity``, ``shown`` (properties that are not personal), ``lasts`` (why it never expires).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, UnsetType

from threadline.kernel.analytics import literal
from threadline.kernel.event import BY_MACHINE, Event
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.suggestion import nearest

Speaker = Literal["threadline", "process", "anyone"]
"""Who may say that such an event happened.

``threadline``: this engine alone, in the commit of a cause or by one of its operations. ``process``: besides it the
program that has opened the store, such as an import of another system's ledger; nothing that came over a wire.
``anyone``: whoever has a write key, which may stand in a page.
"""

Origin = Literal["threadline", "schema", "definitions", "seen", "unknown"]
"""From where a type is known, the first of these that is true.

``threadline``: it ships. ``schema``: users have written a schema for it. ``definitions``: something that users declare
makes such events, such as a rule. ``seen``: somebody has sent one. ``unknown``: none of these.
"""

UNSPOKEN = f"{SYSTEM_PREFIX}unspoken"
"""The type as which an event counts that its speaker may not say: nothing folds it and no policy reacts to it."""

T = TypeVar("T")
Maybe: TypeAlias = T | UnsetType
"""A property that is left out where there is nothing to say: ``reason: Maybe[str] = UNSET``."""

MILLIONTHS = Meta(extra={"unit": "millionths"})
"""Annotation of a property that is stored as a whole number of millionths, see `threadline.kernel.fixed`."""


class Properties(msgspec.Struct, kw_only=True):
    """The properties of a type's events, a field each. Whatever else an event carries is left as it is."""


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of events. Declared at the top level of a module, alone or in a tuple; discovery finds it.

    The catalogue folds and hands to policies only events whose speaker may say them: what a write key says in the name
    of Threadline stands in the log, and counts for nothing.
    """

    name: str
    about: str = ""
    """What happened, in a sentence."""
    properties: type[Properties] = Properties
    """Its fields are the columns of the type in SQL, and its JSON Schema."""
    speaker: Speaker = "anyone"
    sentence: str = ""
    """How an event reads, with the names of properties in braces: ``Earned {points} points for {rule}``. Used where
    the event has all of them."""
    is_activity: bool | None = None
    """Whether it is something that the person did. None: if anyone may say it. A type that Threadline records may be
    activity as well, such as a click that it was the first to hear of."""
    of_machine: str = ""
    """The type as which an event of it counts that bears the mark `BY_MACHINE`; empty: none does. It reads as what it
    is, and no fold, policy or question about events has to ask who did it."""
    shown: tuple[str, ...] = ()
    """Its properties that are not personal although they are text, see `threadline.kernel.disclosure`."""
    lasts: str = ""
    """Why events of it can never be erased by their age, to end a sentence: ``the balance is made of them``. What reads
    a type may say so besides, and for how long, see `threadline.kernel.lasting`."""
    written: Mapping[str, Any] | None = None
    """The JSON Schema that users have written for the properties, in place of `properties`."""
    origin: Origin = "threadline"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The properties as JSON Schema (2020-12)."""
        return self.written if self.written is not None else _schema(self.properties)

    @property
    def property_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """What is declared of each property, by its name. Others may be there as well."""
        members: Mapping[str, Mapping[str, Any]] = self.schema.get("properties", {})
        return members

    @property
    def acts(self) -> bool:
        """Whether it is something that the person did."""
        return self.speaker == "anyone" if self.is_activity is None else self.is_activity

    def may_be_from(self, event: Event) -> bool:
        """Whether the speaker of an event of this type may say it."""
        return may_say(self.speaker, event)


class SeenTypes(NamedTuple):
    """Types of events that a log has."""

    names: frozenset[str]
    is_complete: bool
    """Whether no event has any other type. Without that nothing follows from a type's absence."""


class EventTypes:
    """Which types of events there are: one value for each, whoever declared it. Any other type is as good: types are
    free.

    A catalogue has those that are declared (`Catalogue.event_types`). With those that the log has (`and_seen`, see
    `threadline.capabilities.foundation.events.seen`) it is what fields offer and what a name is compared with.
    """

    def __init__(
        self,
        declared: Iterable[EventType] = (),
        written: Mapping[str, Mapping[str, Any]] = {},
        named: Iterable[str] = (),
        seen: Iterable[str] = (),
    ) -> None:
        self.declared = {type.name: type for type in declared}
        """Threadline's own, and those that the shipped definitions know, by name."""
        self._written = written
        self._named, self._seen = frozenset(named), frozenset(seen)
        self._speakers = {type.name: type.speaker for type in self.declared.values() if type.speaker != "anyone"}
        self._of_machine = {type.name: type.of_machine for type in self.declared.values() if type.of_machine}

    def and_seen(self, names: Iterable[str]) -> EventTypes:
        """These, and those that somebody has sent."""
        return EventTypes(self.declared.values(), self._written, self._named, self._seen.union(names))

    @property
    def names(self) -> frozenset[str]:
        """The names of all that are known."""
        return self._named.union(self.declared, self._written, self._seen)

    @property
    def known(self) -> list[EventType]:
        """All that are known, by name."""
        return [self.of(name) for name in sorted(self.names)]

    def of(self, name: str) -> EventType:
        """What is known of a type; its name alone if nothing is, with the origin ``unknown``."""
        declared = self.declared.get(name) or EventType(name, origin=self._origin(name))
        return replace(declared, written=self._written[name]) if name in self._written else declared

    @property
    def speakers(self) -> EventTypes:
        """These by name and speaker alone: what another process needs to know whose events count."""
        return EventTypes(EventType(name, speaker=speaker) for name, speaker in self._speakers.items())

    def near(self, name: str, likeness: float = 0.6) -> str | None:
        """The known type that is spelled most like a name; None if none is near."""
        return nearest(name, self.names, likeness)

    def _origin(self, name: str) -> Origin:
        if name in self._written:
            return "schema"
        if name in self._named:
            return "definitions"
        return "seen" if name in self._seen else "unknown"

    def counts_as(self, event: Event) -> str:
        """The type as which an event counts: its own, another where a machine caused it, `UNSPOKEN` where its speaker
        may not say it."""
        speaker = self._speakers.get(event.type)
        if speaker is None:
            return event.type
        if event.source_type != "internal" and not may_say(speaker, event):
            return UNSPOKEN
        return self._of_machine.get(event.type, event.type) if BY_MACHINE in event.marks else event.type

    @property
    def counts_sql(self) -> str:
        """`counts` in SQL, over the columns of the log."""
        by_speaker = {speaker: sorted(t for t, s in self._speakers.items() if s == speaker) for speaker in SPEAKER_SQL}
        parts = [
            f"({SPEAKER_SQL[speaker]} OR type NOT IN ({', '.join(map(literal, types))}))"
            for speaker, types in by_speaker.items()
            if types
        ]
        if self._of_machine:
            types = ", ".join(map(literal, sorted(self._of_machine)))
            parts.append(f"(NOT list_contains(marks, {literal(BY_MACHINE)}) OR type NOT IN ({types}))")
        return " AND ".join(parts) or "true"

    def counts(self, event: Event) -> bool:
        """Whether an event counts as what its type says."""
        return self.counts_as(event) == event.type

    def is_unspoken(self, event: Event) -> bool:
        """Whether the speaker of an event may not say it: it stands in the log and counts for nothing."""
        return self.counts_as(event) is UNSPOKEN


NO_TYPES = EventTypes()


def may_say(speaker: Speaker, event: Event) -> bool:
    """Whether whoever said an event is such a speaker."""
    if speaker == "anyone" or event.source_type == "internal":
        return True
    return speaker == "process" and event.source_type != "external"


SPEAKER_SQL: Mapping[Speaker, str] = {
    "threadline": "source_type = 'internal'",
    "process": "source_type <> 'external'",
    "anyone": "true",
}
"""`may_say` in SQL, over the columns of the log."""
ACTIVITY = f"(source_type <> 'internal' AND NOT starts_with(type, '{SYSTEM_PREFIX}'))"
"""`Event.is_activity` in SQL: neither emitted by Threadline nor noted by it."""


def is_in_millionths(properties: type[Properties], name: str) -> bool:
    """Whether a property is stored in millionths."""
    return _metas(properties).get(name, {}).get("unit") == "millionths"


@cache
def _schema(properties: type[Properties]) -> Mapping[str, Any]:
    _, components = msgspec.json.schema_components([properties])
    schema = components.pop(properties.__name__)
    del schema["title"]
    return {**schema, "$defs": components} if components else schema


@cache
def _metas(properties: type[Properties]) -> Mapping[str, Mapping[str, Any]]:
    hints = get_type_hints(properties, include_extras=True)
    return {name: merged for name, hint in hints.items() if (merged := _extras(hint))}


def _extras(hint: Any) -> dict[str, Any]:
    """The ``extra`` of all `Meta` in a hint, also within a union."""
    merged: dict[str, Any] = {}
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        merged |= _extras(inner)
        for meta in metas:
            if isinstance(meta, Meta) and meta.extra:
                merged |= meta.extra
    else:
        for part in get_args(hint):
            merged |= _extras(part)
    return merged
