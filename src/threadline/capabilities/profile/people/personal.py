"""What the store has of a person as such: identifiers, profile, merges and splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.capabilities.profile.people.operations.person import identifier_uses, lead_id
from threadline.capabilities.profile.people.projection import GROUPS
from threadline.capabilities.profile.people.tags import TAGS
from threadline.kernel.event import identifier_named
from threadline.kernel.identity import ALIAS, MERGED, SPLIT
from threadline.kernel.personal import PersonFile, StoreTable, Subject, shown_events, shown_time, shown_views

_REPEATS = "it repeats the person's tags and groups, to find people by them"
TAGS_TABLE = StoreTable(TAGS, "state_rows", why=_REPEATS)
GROUPS_TABLE = StoreTable(GROUPS, "state_rows", why=_REPEATS)


def _person(subject: Subject) -> Iterator[dict[str, Any]]:
    person, rules = subject.person, subject.engine.catalogue.rules
    own = list(person.identifiers.values())
    yield {
        "id": person.id,
        "workspace": person.workspace,
        "created_at": shown_time(person.created_at),
        "lead_id": lead_id(rules, own),
        "position": person.position,
        "threads": sorted(person.heads),
        **subject.views.get("activity", {}),
    }


def _identifiers(subject: Subject) -> Iterator[dict[str, Any]]:
    rules = subject.engine.catalogue.rules
    for use in identifier_uses(rules, subject.person.identifiers.values(), subject.views.get("identifiers", {})):
        yield {
            "kind": use.kind,
            "value": use.value,
            "linked": use.linked,
            "first_used_at": use.first_used_at,
            "last_used_at": use.last_used_at,
        }


def _joins(subject: Subject) -> Iterator[dict[str, Any]]:
    """Without the other identifier, which may be somebody else's."""
    for entry in subject.quarantined():
        own = [identifier for identifier in entry["identifiers"] if subject.has(identifier_named(identifier))]
        yield {
            "identifiers": own,
            "reason": entry["reason"],
            "event": entry["event"],
            "at": shown_time(entry["at"]),
            "status": entry["status"],
        }


PERSON = PersonFile(
    "person",
    "You in short",
    "Since when you are known here, and how much is known of you.",
    _person,
    ("activity",),
    0,
)
IDENTIFIERS = PersonFile(
    "identifiers",
    "How you are recognised",
    "Names, addresses and numbers by which you are recognised, and when each "
    "was first and last used. One that is not linked came with your events and names somebody else or nobody.",
    _identifiers,
    ("identifiers",),
    1,
)
PROFILE = PersonFile(
    "profile",
    "Your profile",
    "What is noted about you: traits, tags and groups.",
    shown_views("profile"),
    ("profile",),
    2,
)
MERGES = PersonFile(
    "merges",
    "Profiles joined and separated",
    "When several profiles proved to be yours and were joined, or were separated again.",
    shown_events(MERGED, SPLIT, ALIAS),
)
JOINS_IN_REVIEW = PersonFile(
    "joins_in_review", "Joins in review", "Profiles that may be yours as well: somebody decides about them.", _joins
)
