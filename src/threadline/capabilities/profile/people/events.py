"""The event types that say who a person is."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties
from threadline.kernel.reading import Reading, Readings

IDENTIFY = "identify"
GROUP = "group"
TAG_ADDED = "tag_added"
TAG_REMOVED = "tag_removed"


class _Group(Properties):
    left: Maybe[Annotated[bool, Meta(description="True ends the membership.")]] = UNSET


class _Tag(Properties):
    tag: Annotated[str, Meta(description="The tag.")]


EVENT_TYPES = (
    EventType(
        IDENTIFY,
        "The properties are traits: of each the newest counts, and null removes it.",
        lasts="a profile is made of it",
    ),
    EventType(
        GROUP,
        "The person belongs to the group that the object names; the other properties are the group's traits.",
        _Group,
        lasts="a profile is made of it",
    ),
    EventType(
        TAG_ADDED,
        "The person has a tag.",
        _Tag,
        sentence="Tagged {tag}",
        shown=("rule", "tag"),
        lasts="a profile is made of it",
    ),
    EventType(
        TAG_REMOVED,
        "The person has a tag no more.",
        _Tag,
        sentence="Tag {tag} removed",
        shown=("rule", "tag"),
        lasts="a profile is made of it",
    ),
)
READ = Readings(
    "people",
    {
        IDENTIFY: [Reading(("timezone",), "zone")],
        **dict.fromkeys((TAG_ADDED, TAG_REMOVED), (Reading(("tag",), "text"),)),
    },
)
