"""The short forms of recording, for a store here and for a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from threadline.kernel.event import Receipt
from threadline.surfaces.python.messages import Instant, identified, tracked


class Recording(ABC):
    """Records single events."""

    @abstractmethod
    def record(self, events: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record events and answer one receipt each, in order."""
        ...

    def track(
        self,
        user_id: str,
        event: str,
        properties: Mapping[str, Any] | None = None,
        *,
        occurred_at: Instant | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Record that a user did something and answer the receipt. ``key`` makes a retry harmless.

        ``event`` means what it means to Segment's clients: `Order Completed` is recorded as ``purchase_completed``.
        """
        return self.record([tracked(user_id, event, properties, occurred_at, key, context)])[0]

    def identify(
        self,
        user_id: str,
        traits: Mapping[str, Any] | None = None,
        *,
        anonymous_id: str | None = None,
        occurred_at: Instant | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Record traits of a user and answer the receipt.

        ``anonymous_id`` and the traits ``email`` and ``phone`` join what was known under these.
        """
        return self.record([identified(user_id, traits, anonymous_id, occurred_at, key, context)])[0]


class AsyncRecording(ABC):
    """The same, to be awaited."""

    @abstractmethod
    async def record(self, events: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record events and answer one receipt each, in order."""
        ...

    async def track(
        self,
        user_id: str,
        event: str,
        properties: Mapping[str, Any] | None = None,
        *,
        occurred_at: Instant | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Record that a user did something; see `Recording.track`."""
        return (await self.record([tracked(user_id, event, properties, occurred_at, key, context)]))[0]

    async def identify(
        self,
        user_id: str,
        traits: Mapping[str, Any] | None = None,
        *,
        anonymous_id: str | None = None,
        occurred_at: Instant | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Record traits of a user; see `Recording.identify`."""
        return (await self.record([identified(user_id, traits, anonymous_id, occurred_at, key, context)]))[0]
