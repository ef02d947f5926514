"""The Python API, as a user who runs `mypy --strict` calls it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import threadline
from threadline import Client, Receipt, Threadline

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
EVENT = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "key": "order-1"}
RULE: dict[str, Any] = {"conditions": {"field": "event.properties.total", "greater_than": 80}}


def answers(shop: Threadline | Client) -> list[str]:
    """Fields of answers have types."""
    receipts: list[Receipt] = shop.record([EVENT])
    tracked: Receipt = shop.track("ada", "Order Completed", {"total": 29.33}, occurred_at=SINCE)
    identified: Receipt = shop.identify("ada", {"plan": "pro"})
    position: int = shop.person("ada").position
    ids: list[str] = [member.person for member in shop.segments.members("vip", limit=10).members]
    value: object = shop.features.of("ada").features["monetary_total"].value
    return [*ids, *(each.status for each in (*receipts, tracked, identified)), f"{position} {value}"]


def forms(shop: Threadline | Client) -> None:
    """Parameters are what Python has for them: objects, times, several values, names that are words of the language."""
    shop.people.list(when=RULE["conditions"])
    shop.rules.write("big", rule=RULE)
    shop.analytics.trend(event="purchase_completed", where={"total": {"gt": 50}}, per="week")
    shop.features.of("ada", as_of=SINCE, known="now")
    shop.events.of("ada", start="2026-03-01T00:00:00Z", types=("page", "identify"))
    shop.suppression.import_(addresses=["a@example.com"])
    shop.decisions.evaluate(event=EVENT)


with threadline.open("memory:") as store:
    answers(store)
with Client("http://127.0.0.1:8000", token="tl_...") as server:
    answers(server)
