"""What the webhooks capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.webhooks.definition import DESTINATIONS, url_queues
from threadline.kernel.sender import Queue


def declare(definitions: Definitions) -> list[Queue]:
    """A queue for each destination, and those for addresses that rules name themselves."""
    destinations = DESTINATIONS.read(definitions).values
    return [*url_queues(), *(destination.queue for destination in destinations.values())]
