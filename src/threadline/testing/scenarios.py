"""Generated histories: few people with several identifiers each, told late, twice, shuffled, in calls, with malice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st

from threadline.kernel.event import Event, Identifier, Recorded, event_id
from threadline.kernel.time import DAY, HOUR, MINUTE

NOW = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z: every scenario's events occurred before it."""

HISTORY_DAYS = 120
"""Longer than the longest window that ships, so that windows have an edge inside every history."""

TYPES = (
    "identify", "identify", "group", "tag_added", "tag_added", "tag_removed", "purchase_completed",
    "purchase_completed", "purchase_refunded", "purchase_abandoned", "campaign_delivered", "campaign_delivered",
    "campaign_engaged", "conversation_started", "conversation_ended", "sentiment_detected", "discount_requested",
    "page", "app_action", "app_action", "interest_detected", "product_viewed",
    "agent_insight", "fact_remembered", "fact_retracted", "form_submitted",
    "tool_used", "app_opened", "points_spend_requested", "points_earned", "points_adjusted",
)  # fmt: skip
"""What may happen; a type that stands twice happens twice as often."""

ZONES = ("UTC", "Europe/Rome", "America/Sao_Paulo", "Asia/Kathmandu", "No/Where", None)

Plain = dict[str, Any]


def history(random: Random, people: int = 3, count: int = 30, workspace: str = "default") -> list[Event]:
    """Events with keys of their own, in no order of time; who is who shows only in the identifiers they share.

    No identifier belongs to two people and no limit of a kind is reached, so that every order joins the same people.
    """
    return [_event(random, number, random.randrange(people), workspace) for number in range(count)]


def _event(random: Random, number: int, person: int, workspace: str) -> Event:
    type = random.choice(TYPES)
    zone = random.choice(ZONES)
    return Event(
        type=type,
        identifiers=_identifiers(random, person),
        occurred_at=_instant(random),
        key=f"{workspace}-{number}",
        source=random.choice(("web", "app")),
        workspace=workspace,
        properties=_properties(random, type),
        context={"timezone": zone, **_campaign(random)} if zone is not None else _campaign(random),
        object_ref=random.choice(("", "acme", "initech")) if type == "group" else "",
    )


def _identifiers(random: Random, person: int) -> tuple[Identifier, ...]:
    names = [
        Identifier("user_id", f"user-{person}"),
        Identifier("anonymous_id", f"anonymous-{person}-{random.randrange(3)}"),
        Identifier("email", random.choice((f"p{person}@example.com", f" P{person}@Example.COM "))),
        Identifier("phone", random.choice((f"+39 055 {person}000", f"0039055{person}000"))),
    ]
    chosen = random.sample(names, random.choice((1, 1, 1, 2, 2, 3)))
    if random.randrange(8) == 0:
        chosen.append(Identifier("user_id", random.choice(("null", "undefined", "0", "  ", "[object Object]"))))
    return tuple(chosen)


def _instant(random: Random) -> int:
    # 32 days after it occurred an event is late for streaks, and laws compare clocks that differ by hours: so that all
    # of them agree on what is late, none of these events becomes late within a day from NOW.
    at = _crowded_instant(random)
    return at - DAY if 0 <= at - (NOW - 32 * DAY) <= DAY else at


def _crowded_instant(random: Random) -> int:
    # Crowded hours fill window buckets, ties are frequent, and whole days back from NOW are edges of windows.
    choice = random.randrange(4)
    if choice == 0:
        return NOW - random.choice((7, 30, 90)) * DAY + random.choice((-1, 0, 1))
    if choice == 1:
        return NOW - 30 * DAY + random.randrange(-3, 4) * 10 * MINUTE
    if choice == 2:
        return NOW - random.randrange(1, 24 * 3) * HOUR
    return NOW - 1 - random.randrange(HISTORY_DAYS * DAY)


def _properties(random: Random, type: str) -> Plain:
    if type == "identify":
        traits: Plain = {
            "name": f"name {random.randrange(4)}",
            "plan": random.choice(("free", "pro", None)),
            "age": 1.5,
        }
        traits["tags"] = random.choice((["vip"], ["new", "città", 7, ""], [], "vip", None, 7))
        return {name: traits[name] for name in random.sample(sorted(traits), random.randrange(4))}
    if type == "group":
        return random.choice(({}, {"left": True}, {"left": False, "seats": 3}))
    if type.startswith("tag_"):
        return {"tag": random.choice(("vip", "new", "città", "", 7))}
    if type.startswith("purchase_"):
        total = random.choice((29.33, 0.1, 0.2, 10, "10.50", "10.50 EUR", None, True, -3, 1e-7, [1]))
        purchase: Plain = {"total": total, "currency": random.choice(("EUR", "EUR", "eur", "USD", None))}
        return purchase | _bought(random)
    if type.startswith("campaign_"):
        return {"campaign_id": random.choice(("spring", "summer", 7, None)), "action": random.choice(("open", "click"))}
    if type == "conversation_started":
        return {
            "channel": random.choice(("chat", "email", 1, 1.0, True)),
            "category": random.choice(("support", "sales")),
        }
    if type == "conversation_ended":
        return {"response_time_seconds": random.choice((12.5, 20, "7.25", "?")), "message_count": random.randrange(9)}
    if type in ("agent_insight", "fact_remembered", "fact_retracted"):
        return _fact(random)
    if type == "form_submitted":
        answers = {"How big?": random.choice((41, "42", None)), "Où ça?": "Orléans"}
        return {"form": random.choice(("sizes", " sizes ", 7)), "answers": answers}
    if type.startswith("points_"):
        return {"points": random.choice((1, 5, 12, -3, 0, True, "7", None)), "rule": random.choice(("tool_used", 7))}
    if type == "app_action":
        return _action(random)
    if type == "interest_detected":
        return {"topic": random.choice(("trails", "camping", 7, None))}
    if type == "product_viewed":
        return {"category": random.choice(("shoes", "tents", "tents", ["shoes", "bags"], ""))}
    if type == "page":
        search = random.choice(("", "?utm_source=news&utm_campaign=fall", "?q=utm_"))
        return {"url": f"https://shop.example.com/{search}"}
    return {"score": random.choice((0.8, -0.3, 0, 1))} if type == "sentiment_detected" else {}


def _bought(random: Random) -> Plain:
    product, name = random.choice((("tent", "Tent"), ("sock", "Wool sock"), (12, None)))
    line = {"product_id": product, "name": name, "price": random.choice((10, "2.5", None)), "quantity": 2}
    lines = random.choice((None, [line], [line, {**line, "price": 1}], [line, {"sku": "mat", "price": 3}], []))
    whole: Plain = {"product_id": product, "product_name": name, "payment_method": random.choice(("card", "pix", None))}
    return whole if lines is None else {**whole, "products": lines}


def _fact(random: Random) -> Plain:
    keys = ("colour", "colour", "size", "")
    fact: Plain = {"type": random.choice(("preference", "preference", "fact", "opinion")), "key": random.choice(keys)}
    more: list[Plain] = [
        {},
        {"confidence": random.choice((0.25, 2, "much"))},
        {"derived_from": ["preference/colour"]},
        {"recalled": random.choice((True, ["preference/colour"], ["fact/size"]))},
        {"expires_at": "2025-12-31T23:59:59.999999Z"},
        {"expires_at": "2026-01-01T00:00:00.000001Z"},
    ]
    return fact | {"value": random.choice(("blue", "green", 41, None))} | random.choice(more)


def _action(random: Random) -> Plain:
    scopes: list[Any] = [
        {"topic": random.choice(("category", "article")), "value": random.choice(("A", "B", "C", 12))}
        for _ in range(random.randrange(4))
    ]
    scopes += random.choice(([], [], [{"topic": "category"}], ["A"], [{"topic": "x" * 51, "value": "A"}]))
    action: Plain = {"topic": random.choice(("Article", "Article", "Course", " Course ", "", None)), "scopes": scopes}
    return action | random.choice(({}, {"application_id": "web"}, {"application_id": "app"}))


def _campaign(random: Random) -> Plain:
    choice = random.randrange(8)
    if choice == 0:
        return {"campaign": {"source": random.choice(("mail", "search")), "name": random.choice(("fall", 3, ""))}}
    return {"page": {"search": "utm_medium=cpc"}} if choice == 1 else {}


def plain(event: Event) -> Plain:
    """An event as the auditor reads it: a dict of what the producer said."""
    return {
        "workspace": event.workspace,
        "source": event.source,
        "key": event.key,
        "type": event.type,
        "identifiers": [[identifier.kind, identifier.value] for identifier in event.identifiers],
        "occurred_at": event.occurred_at,
        "properties": event.properties,
        "context": event.context,
        "object_ref": event.object_ref,
    }


# --- how it arrives -------------------------------------------------------------------------


def shuffled(random: Random, events: Sequence[Event]) -> list[Event]:
    """The same events in another order."""
    return random.sample(list(events), len(events))


def duplicated(random: Random, events: Sequence[Event], chance: float = 0.3) -> list[Event]:
    """The same order of first tellings, with some events told again at some time later."""
    repeated: list[Event] = []
    for event in events:
        repeated.append(event)
        while random.random() < chance:
            repeated.append(random.choice(repeated))
    return repeated


def batched(random: Random, events: Sequence[Event], size_max: int = 12) -> list[list[Event]]:
    """The same stream cut into calls of 1 to ``size_max`` events."""
    calls: list[list[Event]] = []
    rest = list(events)
    while rest:
        size = random.randint(1, size_max)
        calls.append(rest[:size])
        rest = rest[size:]
    return calls


randoms: st.SearchStrategy[Random] = st.builds(Random, st.integers(0, 2**32 - 1))
"""Sources of chance; a failing example shows the seed."""


def histories(people: int = 3, count_max: int = 30) -> st.SearchStrategy[list[Event]]:
    """Histories for Hypothesis. A shorter one of the same seed is a prefix of a longer, so that failures shrink."""
    return st.builds(history, randoms, st.just(people), st.integers(1, count_max))


# --- with malice ----------------------------------------------------------------------------

_texts = st.one_of(
    st.text(max_size=8), st.sampled_from(["", "\x00", "\ud800", "é" * 600, "null", "1e999", "NaN", "-0"])
)
_numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**400, float("nan"), float("-inf"), -0.0]),
)
hostile_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), _numbers, _texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_texts, inner, max_size=4)),
    max_leaves=12,
)
"""Whatever JSON can spell, and some that it cannot."""


def hostile_payloads(fields: Sequence[str]) -> st.SearchStrategy[Plain]:
    """Properties in which the fields that are read hold what nobody expects."""
    return st.dictionaries(st.one_of(st.sampled_from(list(fields)), _texts), hostile_values, max_size=5)


def recorded(events: Sequence[Event], thread: str = "0" * 32, recorded_at: int = NOW) -> list[Recorded]:
    """The events as one thread holds them, recorded in this order a microsecond apart."""
    return [
        Recorded(event, event_id(event.workspace, event.source, event.key), thread, sequence, recorded_at + sequence)
        for sequence, event in enumerate(events, 1)
    ]


def telling(
    order: Callable[[Random, Sequence[Event]], list[Event]], random: Random, events: Sequence[Event]
) -> list[list[Event]]:
    """One way to tell the events: put in this order, some of them twice, in calls."""
    return batched(random, duplicated(random, order(random, events)))
