"""What `interests` and `attribution` must say of a person as shipped: action by action, in the words of the docs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qs

from threadline.testing.audits.sent_events import SentEvent

Action = tuple[dt.date, str, str, str]
"""The UTC day, the topic, the scope and the value; an action with three scopes is three of these."""

_LENGTH = dt.timedelta(days=30)
_FLOOR = Fraction(1, 10)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PARAMETERS = {
    "source": "utm_source",
    "medium": "utm_medium",
    "name": "utm_campaign",
    "term": "utm_term",
    "content": "utm_content",
    "id": "utm_id",
}


def interests(events: list[SentEvent], now: int) -> dict[str, Any]:
    """Topic -> scope -> value -> (weight, current, previous), by the formula of mode ``periods``."""
    actions = [action for event in events if event["occurred_at"] < now for action in _actions(event)]
    return {
        topic: ranked
        for topic in {action[1] for action in actions}
        if (ranked := _ranked([action for action in actions if action[1] == topic], _date(now)))
    }


def _actions(event: SentEvent) -> Iterator[Action]:
    topic, scopes = _named(event["type"], event["properties"])
    if topic:
        for scope, value in sorted(set(scopes)) or [("", "")]:
            yield _date(event["occurred_at"]), topic, scope, value


def _named(type: str, properties: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    if type == "product_viewed":
        category = properties.get("category")
        values = category if isinstance(category, list) else [category]
        return "product", [("category", text) for value in values if (text := _text(value, 100))]
    if type == "interest_detected":
        text = _text(properties.get("topic"), 100)
        return "interest", [("topic", text)] if text else []
    if type != "app_action":
        return "", []
    listed = properties.get("scopes")
    scopes = [
        (_text(scope.get("topic"), 50), _text(scope.get("value"), 100))
        for scope in (listed if isinstance(listed, list) else [])
        if isinstance(scope, dict)
    ]
    return _text(properties.get("topic"), 50), [scope for scope in scopes if scope != ("", "")]


def _text(value: Any, longest: int) -> str:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return text.strip() if len(text) <= longest else ""


def _ranked(actions: list[Action], today: dt.date) -> dict[str, dict[str, tuple[float, int, int]]]:
    """Period by period from the day of the first action on, each of thirty days, to the one that today lies in."""
    start = min(day for day, *_ in actions)
    periods = []
    while start <= today:
        periods.append([action for action in actions if start <= action[0] < start + _LENGTH])
        start += _LENGTH
    remaining = (start - today).days - 1
    weighed = [
        (Counter((scope, value) for _, _, scope, value in period), _weight(age, remaining))
        for age, period in enumerate(reversed(periods))
        if period
    ][:2]
    current, previous = (
        Counter((scope, value) for _, _, scope, value in period) for period in (periods[-1], periods[-2:][0])
    )
    if len(periods) == 1:
        previous = Counter()
    ranked: dict[str, dict[str, tuple[float, int, int]]] = {}
    for scope, value in {(action[2], action[3]) for action in actions}:
        total = sum((counts[scope, value] * weight for counts, weight in weighed), Decimal(0))
        if total:
            ranked.setdefault(scope, {})[value] = float(total), current[scope, value], previous[scope, value]
    return ranked


def _weight(age: int, remaining: int) -> Decimal:
    exact = Fraction(1) if age == 0 else max(_FLOOR, Fraction(remaining, 30)) * _FLOOR ** (age - 1)
    # Far more digits than two, so that rounding them once more rounds the fraction itself.
    return (Decimal(exact.numerator) / Decimal(exact.denominator)).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _date(at: int) -> dt.date:
    return (_EPOCH + dt.timedelta(microseconds=at)).date()


def attribution(events: list[SentEvent], now: int) -> list[dict[str, str] | None]:
    """The campaigns of the first and of the last event that names one; ``events`` are in occurred order."""
    touches = [campaign for event in events if event["occurred_at"] < now and (campaign := _campaign(event))]
    return [touches[0], touches[-1]] if touches else [None, None]


def _campaign(event: SentEvent) -> dict[str, str]:
    campaign = event["context"].get("campaign")
    if isinstance(campaign, dict):
        fields = {
            name: campaign[name] for name in _PARAMETERS if isinstance(campaign.get(name), str) and campaign[name]
        }
        if fields:
            return fields
    for page in (event["context"].get("page", {}), event["properties"]):
        for field in ("search", "url"):
            address = page.get(field)
            query = parse_qs(address.rpartition("?")[2]) if isinstance(address, str) else {}
            fields = {name: query[key][-1] for name, key in _PARAMETERS.items() if key in query}
            if fields:
                return fields
    return {}
