"""Assignment: the events of a call in groups that have no person in common, each in the order of the call."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.recording.validation import ValidatedEvent, threads_of
from threadline.engine.recording.working_set import WorkingSet


def assign(events: Sequence[ValidatedEvent], people: WorkingSet) -> list[list[ValidatedEvent]]:
    """The events in groups, in the order of the first event of each.

    Events that name the same person, or the same new identifier, are one group; an event with identifiers of several
    people joins their groups. The person of each event is decided when its group is worked on.
    """
    groups: dict[str, list[ValidatedEvent]] = {}
    merged: dict[str, str] = {}
    owners = people.owners
    for event in events:
        names = event.names
        owner = owners.get(names[0].thread)
        key = owner.id if owner is not None else people.group_of(names[0].thread)
        while key in merged:
            key = merged[key]
        for thread in threads_of(names)[1:]:
            if owner is not None and owners.get(thread) is owner:
                continue
            other = people.group_of(thread)
            while other in merged:
                other = merged[other]
            if other != key:
                merged[other] = key
                earlier = groups.pop(other, None)
                if earlier is not None:
                    groups[key] = sorted([*groups.get(key, ()), *earlier], key=_position)
        groups.setdefault(key, []).append(event)
    return list(groups.values())


def _position(event: ValidatedEvent) -> int:
    return event.position
