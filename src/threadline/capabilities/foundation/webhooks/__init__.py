"""Webhooks: calls of rules to other systems over HTTP, signed, retried, and visible as dead letters.

What it promises: a call is made at least once under one id that every attempt has, and what came of it stands in the
person's thread exactly once. Each destination has a queue of its own, so that a slow one holds up no other. One that
fails is left alone for a while; one that says it is gone is called no more. What was given up on can be driven again.
"""

from threadline.capabilities.foundation.webhooks.definition import Destination, queue_of
from threadline.kernel.capability import Capability

CAPABILITY = Capability("webhooks", __name__)

__all__ = ["CAPABILITY", "Destination", "queue_of"]
