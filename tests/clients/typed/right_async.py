"""The asynchronous client, as a user who runs `mypy --strict` calls it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from threadline import AsyncClient, Receipt

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
EVENT = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "key": "order-1"}
RULE: dict[str, Any] = {"conditions": {"field": "event.properties.total", "greater_than": 80}}


async def answers(shop: AsyncClient) -> list[str]:
    """Fields of answers have types."""
    receipts: list[Receipt] = await shop.record([EVENT])
    tracked: Receipt = await shop.track("ada", "Order Completed", {"total": 29.33}, occurred_at=SINCE)
    person = await shop.person("ada")
    return [*(each.status for each in (*receipts, tracked)), str(person.position)]


async def forms(shop: AsyncClient) -> None:
    """Parameters are what Python has for them: objects, times, several values, names that are words of the language."""
    await shop.people.list(when=RULE["conditions"])
    await shop.rules.write("big", rule=RULE)
    await shop.analytics.trend(event="purchase_completed", where={"total": {"gt": 50}}, per="week")
    await shop.features.of("ada", as_of=SINCE, known="now")
    await shop.events.of("ada", start="2026-03-01T00:00:00Z", types=("page", "identify"))
    await shop.suppression.import_(addresses=["a@example.com"])
    await shop.decisions.evaluate(event=EVENT)


async def main() -> None:
    async with AsyncClient("http://127.0.0.1:8000", token="tl_...") as server:
        await answers(server)


asyncio.run(main())
