"""What the interests capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.interests.definition import read_interests
from threadline.capabilities.profile.interests.operations import operations
from threadline.capabilities.profile.interests.projection import interests_projection
from threadline.kernel.lasting import Lasting, for_life
from threadline.kernel.reading import Readings


def declare(definitions: Definitions) -> list[Any]:
    """The projection and the operations that depend on what is declared."""
    interests = read_interests(definitions)
    lasting = Lasting("interests", for_life(interests.sources, "interests are counted from them"))
    read = Readings("interests", {type: source.values_read for type, source in interests.sources.items()})
    return [interests_projection(interests), lasting, read, *operations(interests)]
