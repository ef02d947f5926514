"""What users declare: which events make which facts, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from threadline.capabilities.conditions import EVERY_EVENT, Where
from threadline.capabilities.features.definition import content, content_hash
from threadline.capabilities.memory.paths import Places, Template

TYPES = ("fact", "preference", "interest", "purchase", "support", "behavioral", "campaign", "form")
"""The types of facts."""

USER_DECLARED, EVENT_DERIVED, SYSTEM_COMPUTED, AGENT_INFERRED = SOURCES = (
    "user_declared",
    "event_derived",
    "system_computed",
    "agent_inferred",
)
"""Where a fact comes from, the strongest first."""

CERTAINTY = {
    USER_DECLARED: (1_000_000, 1_000_000),
    EVENT_DERIVED: (950_000, 950_000),
    SYSTEM_COMPUTED: (700_000, 900_000),
    AGENT_INFERRED: (500_000, 800_000),
}
"""Source -> confidence of one voice that tells none, and the most that one voice may have; millionths."""

PERMANENT = ("computed", "insight", "remembered")
"""Derivations that ship and cannot be replaced: what `remember` records is read by them."""

AGGREGATES = {
    "count": "how many events made the fact",
    "sum": "the sum of a number, exact to a millionth",
    "first": "the value in the earliest event",
    "last": "the value in the latest event",
    "first_at": "when the earliest event occurred",
    "last_at": "when the latest event occurred",
    "average_interval_days": "days from one event to the next, on average",
}
"""Ways in which a field of a fact's value is made of several events."""

PLACED = frozenset({"sum", "first", "last"})
"""Aggregates that read something in each event."""

COUNTED = frozenset({"count", "first_at", "last_at"})
"""Aggregates that tell that something happened. With one of them an event that has what the key needs is enough."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a fact's value."""

    name: str
    aggregate: str = "last"
    of: Places | None = None
    times: Places | None = None
    """A factor of a sum, such as a quantity; where it is absent it is 1."""
    currency: Places | None = None
    """Where the currency of a sum stands; the sum is then kept per currency."""


@dataclass(frozen=True, slots=True)
class Feed:
    """An event type that makes a fact, under which conditions, and constants that it puts into the value."""

    type: str
    where: Where = EVERY_EVENT
    constants: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """How events make facts of one kind."""

    name: str
    feeds: tuple[Feed, ...]
    type: Template
    key: Template
    each: Places | None = None
    """A list or mapping in the event whose every entry makes a fact."""
    otherwise: tuple[tuple[str, Places], ...] = ()
    """The one entry that is made of the event itself where that list is absent: name -> path."""
    source: str = EVENT_DERIVED
    value: Places | None = None
    """Path of the value, where a fact's value is one thing."""
    says: bool = False
    """True: each source's newest word is kept apart, because sources may contradict each other."""
    fields: tuple[Field, ...] = ()
    """The fields of the value, where it is a mapping, by name."""
    confidence: int | Places | None = None
    """Millionths, or where an event tells it; None: what `CERTAINTY` says."""
    expires_after: int | None = None
    """Microseconds after the newest event that made it."""
    expires_at: Places | None = None
    recalled: Places | None = None
    """Where an event names the facts that its producer had been given; those are not taken from it again."""
    derived_from: Places | None = None
    """Where an event names the facts that its own rests on."""
    most: int = 100
    """Facts of this derivation kept for one person."""
    description: str = ""
    version: int = 1
    place: str = field(default="", compare=False)
    """File and line of the declaration, for messages."""

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Names of the fields that are constants, by name."""
        return tuple(sorted({name for feed in self.feeds for name, _ in feed.constants}))

    @cached_property
    def told(self) -> tuple[tuple[str, str, int], ...]:
        """What a value that is a mapping holds, by name: name, how it is made, and its place among words or cells.

        A sum of money is told twice: as ``sums``, and under ``…_by_currency`` as ``amounts``.
        """
        found = []
        words = cells = 0
        for each in self.fields:
            money = each.aggregate == "sum" and each.currency is not None
            place = words if each.aggregate == "last" else cells
            found.append((each.name, "sums" if money else each.aggregate, place))
            if money:
                found.append((f"{each.name}_by_currency", "amounts", place))
            words += each.aggregate == "last"
            cells += each.aggregate in ("first", "sum")
        found += [(name, "last", words + number) for number, name in enumerate(self.constants)]
        # Of equal names the last one counts.
        return tuple(sorted({name: (name, made, place) for name, made, place in found}.values()))

    @cached_property
    def strength(self) -> int:
        """The position of its source in `SOURCES`: 0 is the strongest."""
        return SOURCES.index(self.source)

    @cached_property
    def usual(self) -> int:
        """How sure its facts are if no event says so, millionths."""
        return self.confidence if type(self.confidence) is int else CERTAINTY[self.source][0]


@dataclass(frozen=True)
class DerivationSet:
    """All derivations in force, by name."""

    derivations: tuple[Derivation, ...]

    @cached_property
    def event_types(self) -> frozenset[str]:
        """The event types that make facts."""
        return frozenset(feed.type for derivation in self.derivations for feed in derivation.feeds)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything that shapes facts, the same however files and keys were arranged."""
        return content_hash([content(derivation, ("place", "description")) for derivation in self.derivations])
