"""What is remembered about a person, and the events that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.capabilities.profile.memory.eviction import RETRACTIONS
from threadline.capabilities.profile.memory.projection import FactDerivations, facts_of
from threadline.kernel.personal import PersonFile, Subject, shown_time


def _facts(subject: Subject) -> Iterator[dict[str, Any]]:
    for type, facts in subject.views.get("memory", {}).items():
        if isinstance(facts, dict):
            yield from facts.values()
        else:
            yield from ({"was": type, **fact} for fact in facts)


MEMORY_FILE = PersonFile(
    "memory",
    "What is remembered about you",
    "Facts and preferences that were told or derived, how sure each is, and until when it counts.",
    _facts,
    ("memory",),
)


def sources_file(by_type: FactDerivations) -> PersonFile:
    """The file of the events that made, took back or restored each fact, by these derivations."""
    types = frozenset(by_type) | RETRACTIONS

    def lineage(subject: Subject) -> Iterator[dict[str, Any]]:
        for recorded in subject.events(types):
            for type, key in facts_of(by_type, recorded):
                event = recorded.event
                yield {
                    "fact": {"type": type, "key": key},
                    "event": recorded.id,
                    "type": event.type,
                    "occurred_at": shown_time(event.occurred_at),
                }

    return PersonFile(
        "memory_sources",
        "Where the memories come from",
        "Each event that made, took back or restored something that is remembered about you.",
        lineage,
    )
