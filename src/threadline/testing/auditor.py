"""The auditor: what is true of each person, computed slowly from a plain list of what was told.

It shares no code with the folds and the engine, on purpose: it keeps every event, walks over all of them for every
question and takes its formulas from the documentation (docs/features.md), so that the same mistake would have to be
made twice. Amounts and means are exact fractions until the last step.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

from threadline.testing.audits.interests import attribution, interests
from threadline.testing.audits.memory import memory
from threadline.testing.audits.sent_events import DAY, PASSIVE, SentEvent, event_id
from threadline.testing.audits.streaks import streaks

_NOBODY = {"null", "undefined", "anonymous", "-1", "[object object]", ""}
_PURCHASE, _REFUND = "purchase_completed", "purchase_refunded"


def audit(sent: Iterable[SentEvent], now: int) -> list[dict[str, Any]]:
    """Every person at ``now``, with the fields of `_picture`, in the order of their identifiers.

    ``sent`` is what was accepted, in the order in which it was told; of what has the same key the first stands.
    """
    events = _distinct(sent)
    pictures = []
    for workspace, identifiers in _people(events):
        own = [event for event in events if event["workspace"] == workspace and _named(event) & identifiers]
        pictures.append(_picture(workspace, identifiers, sorted(own, key=_order), now))
    return sorted(pictures, key=lambda person: (person["workspace"], person["identifiers"]))


def _distinct(sent: Iterable[SentEvent]) -> list[SentEvent]:
    first: dict[tuple[str, str, str], SentEvent] = {}
    for event in sent:
        first.setdefault((event["workspace"], event["source"], event["key"]), event)
    return list(first.values())


def _order(event: SentEvent) -> tuple[int, str]:
    return event["occurred_at"], event_id(event)


# --- who is who -----------------------------------------------------------------------------


def _named(event: SentEvent) -> frozenset[str]:
    """The identifiers of an event as ``kind:value`` in their normal form, without those that name nobody."""
    named = set()
    for kind, value in event["identifiers"]:
        normal = value.strip()
        if kind == "email":
            normal = normal.lower() if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", normal) else ""
        elif kind in ("phone", "whatsapp"):
            international = normal.startswith(("+", "00"))
            digits = re.sub("[^0-9]", "", normal)
            normal = "+" + re.sub("^00", "", digits) if international else ""  # without a region it is of nowhere
        if normal.lower() not in _NOBODY and set(normal) != {"0"}:
            named.add(f"{kind}:{normal}")
    return frozenset(named)


def _people(events: list[SentEvent]) -> list[tuple[str, frozenset[str]]]:
    """Sets of identifiers that were named together, directly or over others, within one workspace."""
    groups: list[tuple[str, frozenset[str]]] = []
    for event in events:
        workspace, union = event["workspace"], _named(event)
        apart = []
        for group in groups:
            if group[0] == workspace and group[1] & union:
                union |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (workspace, union)]
    return groups


# --- what is known --------------------------------------------------------------------------


def _picture(workspace: str, identifiers: frozenset[str], events: list[SentEvent], now: int) -> dict[str, Any]:
    times = [event["occurred_at"] for event in events]
    return {
        "workspace": workspace,
        "identifiers": sorted(identifiers),
        "events": [event_id(event) for event in events],
        "traits": _last_words(events, "identify", _traits),
        "tags": _tags(events),
        "groups": _last_words(events, "group", _group_change),
        "first_seen_at": min(times),
        "last_seen_at": max(times),
        "events_by_type": dict(Counter(event["type"] for event in events)),
        "features": _features([event for event in events if event["occurred_at"] < now], now),
        "streaks": streaks(events, now),
        "interests": interests(events, now),
        "attribution": attribution(events, now),
        "memory": memory([event for event in events if event["occurred_at"] < now], now),
    }


def _last_words(events: list[SentEvent], prefix: str, words: Callable[[SentEvent], dict[str, Any]]) -> dict[str, Any]:
    """The last word on each name, over events in the order in which they occurred; None takes a name away."""
    known: dict[str, Any] = {}
    for event in events:
        if event["type"].startswith(prefix):
            known.update(words(event))
    return {name: value for name, value in known.items() if value is not None}


def _traits(event: SentEvent) -> dict[str, Any]:
    return {name: value for name, value in event["properties"].items() if name != "tags"}


def _tags(events: list[SentEvent]) -> list[str]:
    """Added ones until they are removed, and those of the newest list; what is removed waits for the next list."""
    added: set[str] = set()
    listed: set[str] = set()
    for event in events:
        if event["type"] == "identify":
            tags = event["properties"].get("tags", 0)
            tags = [tags] if isinstance(tags, str) else [] if tags is None else tags
            listed = {tag for tag in tags if isinstance(tag, str) and tag} if isinstance(tags, list) else listed
        elif event["type"] in ("tag_added", "tag_removed"):
            for tag, is_added in _tag_change(event).items():
                added = added | {tag} if is_added else added - {tag}
                listed = listed if is_added else listed - {tag}
    return sorted(added | listed)


def _tag_change(event: SentEvent) -> dict[str, Any]:
    tag = event["properties"].get("tag")
    return {tag: True if event["type"] == "tag_added" else None} if isinstance(tag, str) and tag else {}


def _group_change(event: SentEvent) -> dict[str, Any]:
    value = None if event["properties"].get("left") is True else event["properties"]
    return {event["object_ref"]: value} if event["object_ref"] else {}


# --- features -------------------------------------------------------------------------------

Answer = tuple[Any, bool]
"""The value of a feature and whether any event, however old, has fed it."""


def _features(events: list[SentEvent], now: int) -> dict[str, Answer]:
    """Every feature that ships, by its formula in the documentation."""

    def of(*types: str, days: int | None = None) -> list[SentEvent]:
        start = -(10**30) if days is None else now - days * DAY
        return [event for event in events if event["type"] in types and event["occurred_at"] >= start]

    def count(type: str, days: int | None = None) -> Answer:
        return len(of(type, days=days)), bool(of(type))

    active = [event for event in events if event["type"] not in PASSIVE]
    answers: dict[str, Answer] = {
        "recency_days": _days_since(active, now),
        "preferred_hour_of_day": (_favourite(_local(event).hour for event in active), bool(active)),
        "preferred_day_of_week": (_favourite(_local(event).isoweekday() for event in active), bool(active)),
        "frequency_purchases_90d": count(_PURCHASE, 90),
        "days_since_last_purchase": _days_since(of(_PURCHASE), now),
        "has_purchased": (bool(of(_PURCHASE)), bool(of(_PURCHASE))),
        "monetary_total": _money(of(_PURCHASE, _REFUND), sum),
        "monetary_gross_total": _money(of(_PURCHASE), sum),
        "monetary_avg_ticket": _money(of(_PURCHASE), _mean),
        "conversion_rate": _ratio(of(_PURCHASE), of(_PURCHASE, "purchase_abandoned")),
        "frequency_conversations_30d": count("conversation_started", 30),
        "avg_response_time_seconds": _average(of("conversation_ended"), None, "response_time_seconds"),
        "avg_messages_per_conversation": _average(of("conversation_ended"), None, "message_count"),
        "sentiment_avg_30d": _average(of("sentiment_detected"), of("sentiment_detected", days=30), "score"),
        "discount_request_rate": _ratio(of("discount_requested"), of("conversation_started")),
        "support_ticket_rate_30d": _support_rate(of("conversation_started", days=30), of("conversation_started")),
        "channel_diversity": _different(of("conversation_started"), "channel"),
        "campaigns_received_30d": count("campaign_delivered", 30),
        "campaign_open_rate": _campaign_rate(of("campaign_engaged"), of("campaign_delivered"), "open"),
        "campaign_click_rate": _campaign_rate(of("campaign_engaged"), of("campaign_delivered"), "click"),
        "campaign_ignored": _different(of("campaign_ignored"), "campaign_id"),
    }
    answers["engagement_score"] = _score(answers)
    return answers


def _days_since(events: list[SentEvent], now: int) -> Answer:
    return ((now - max(event["occurred_at"] for event in events)) // DAY, True) if events else (None, False)


def _local(event: SentEvent) -> dt.datetime:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=event["occurred_at"])
    try:
        return moment.astimezone(zoneinfo.ZoneInfo(event["context"].get("timezone", "UTC")))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return moment


def _favourite(numbers: Iterable[int]) -> int | None:
    counts = Counter(numbers)
    return min(counts, key=lambda number: (-counts[number], number)) if counts else None


def _amount(event: SentEvent, field: str) -> Fraction | None:
    """The number in a field, exact to a millionth."""
    value = event["properties"].get(field)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value, re.ASCII):
        return None
    exact = Decimal(str(value))
    if not exact.is_finite() or abs(exact) > Decimal("9.2e12"):
        return None
    return Fraction(exact.quantize(Decimal("0.000001"), ROUND_HALF_EVEN, Context(prec=200)))


def _mean(amounts: Iterable[Fraction]) -> Fraction:
    listed = list(amounts)
    return sum(listed, Fraction(0)) / len(listed)


def _money(events: list[SentEvent], reckon: Callable[[Iterable[Fraction]], Any]) -> Answer:
    """One currency: its amount. Several: null, since the definitions that ship have no rates. None: nothing."""
    amounts: dict[str, list[Fraction]] = {}
    for event in events:
        amount = _amount(event, "total")
        if amount is not None:
            currency = event["properties"].get("currency")
            code = currency.upper() if isinstance(currency, str) else ""
            amounts.setdefault(code, []).append(-amount if event["type"] == _REFUND else amount)
    if not amounts:
        return (0 if reckon is sum else None), False
    listed = next(iter(amounts.values()))
    return (float(reckon(listed)) if len(amounts) == 1 else None), True


def _average(ever: list[SentEvent], inside: list[SentEvent] | None, field: str) -> Answer:
    fed = [amount for event in ever if (amount := _amount(event, field)) is not None]
    amounts = [
        amount for event in (ever if inside is None else inside) if (amount := _amount(event, field)) is not None
    ]
    return (float(_mean(amounts)) if amounts else None), bool(fed)


def _ratio(above: list[SentEvent], below: list[SentEvent]) -> Answer:
    return (len(above) / len(below) if below else None), bool(above or below)


def _support_rate(inside: list[SentEvent], ever: list[SentEvent]) -> Answer:
    support = [event for event in inside if event["properties"].get("category") == "support"]
    return (len(support) / len(inside) if inside else None), bool(ever)


def _different(events: list[SentEvent], field: str) -> Answer:
    """How many different plain values: 1 and 1.0 are one, 1, "1" and true are three."""
    values = [event["properties"].get(field) for event in events]
    kinds = {(isinstance(value, bool), isinstance(value, str), value) for value in values if _is_plain(value)}
    return len(kinds), bool(kinds)


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and abs(value) < float("inf"))


def _campaign_rate(engaged: list[SentEvent], delivered: list[SentEvent], action: str) -> Answer:
    above = _different([event for event in engaged if event["properties"].get("action") == action], "campaign_id")
    below = _different(delivered, "campaign_id")
    return (above[0] / below[0] if below[0] else None), above[1] or below[1]


def _score(answers: dict[str, Answer]) -> Answer:
    parts = {
        "recency_days": (30, Fraction(14)),
        "frequency_purchases_90d": (25, Fraction(2)),
        "frequency_conversations_30d": (20, Fraction(4)),
        "channel_diversity": (15, Fraction(1)),
        "campaign_open_rate": (10, Fraction(1, 2)),
    }
    if not any(answers[name][1] for name in parts):
        return 0, False
    points = Fraction(0)
    for name, (weight, half) in parts.items():
        value = answers[name][0]
        if value is not None:
            exact = max(Fraction(value), Fraction(0))
            points += weight * (half if name == "recency_days" else exact) / (exact + half)
    return round(float(points), 4), True
