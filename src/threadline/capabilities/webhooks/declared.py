"""What the webhooks capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.webhooks.definition import DESTINATIONS, url_lanes
from threadline.kernel.sender import Lane


def declare(definitions: Definitions) -> list[Lane]:
    """A lane for each destination, and those for addresses that rules name themselves."""
    destinations = DESTINATIONS.read(definitions).values
    return [*url_lanes(), *(destination.lane for destination in destinations.values())]
