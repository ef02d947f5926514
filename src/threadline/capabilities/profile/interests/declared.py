"""What the interests capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.interests.actions import reader_of
from threadline.capabilities.profile.interests.definition import Interests, read_interests
from threadline.capabilities.profile.interests.operations import operations
from threadline.capabilities.profile.interests.projection import interests_projection
from threadline.kernel.event import Event
from threadline.kernel.names import INTEREST, NameKind
from threadline.kernel.reading import Readings


def declare(definitions: Definitions) -> list[Any]:
    """The projection and the operations that depend on what is declared."""
    interests = read_interests(definitions)
    read = Readings("interests", {type: source.values_read for type, source in interests.sources.items()})
    return [interests_projection(interests), read, _topics(interests), *operations(interests)]


def _topics(interests: Interests) -> NameKind:
    """The topics of interest, which are free: those that are counted by rules of their own, and those of events."""
    readers = {type: reader_of(source) for type, source in interests.sources.items()}
    declared = {*interests.topics, *(source.topic for source in interests.sources.values() if source.topic)}

    def brought(event: Event) -> Iterator[str]:
        reader = readers.get(event.type)
        action = None if reader is None else reader(event.properties)
        if action is not None:
            yield action[0]

    return NameKind(
        INTEREST,
        lambda definitions: None,
        never="nobody ever had an interest in the topic",
        of_types=lambda types: declared,
        brought=brought,
    )
