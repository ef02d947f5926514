"""What the section ``destinations`` brings: a queue for each, what fills in their requests, and trying them."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.webhooks.definition import DESTINATIONS, url_queues
from threadline.capabilities.foundation.webhooks.operations import requests
from threadline.capabilities.foundation.webhooks.preparation import webhook_preparation


def declare(definitions: Definitions) -> list[Any]:
    """A queue for each destination, those for addresses that rules name themselves, the preparation of calls."""
    destinations = DESTINATIONS.read(definitions).values
    queues = [*url_queues(), *(destination.queue for destination in destinations.values())]
    return [*queues, webhook_preparation(destinations), *requests.operations(destinations)]
