"""The auditor of memory: the facts that ship, by the tables of docs/memory.md, computed from every event anew."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from threadline.testing.audits.sent_events import DAY, SentEvent, event_id

FactId = tuple[str, str]

_SOURCES = ["user_declared", "event_derived", "system_computed", "agent_inferred"]
_USUAL = {"user_declared": 1.0, "event_derived": 0.95, "system_computed": 0.7, "agent_inferred": 0.5}
_MOST = {"user_declared": 1.0, "event_derived": 0.95, "system_computed": 0.9, "agent_inferred": 0.8}
_TYPES = {"fact", "preference", "interest", "purchase", "support", "behavioral", "campaign", "form"}
_SAYING = {"fact_remembered": "user_declared", "fact_computed": "system_computed", "agent_insight": "agent_inferred"}

# Event type -> the facts it makes: (fact, source, fields by paths, name of the count, days until it expires).
_PLAIN: dict[str, list[tuple[str, str, dict[str, str], str, int | None]]] = {
    "purchase_refunded": [
        ("purchase/last_refund", "event_derived",
         {"order_id": "order_id", "total": "total", "currency": "currency", "reason": "reason"}, "refunds", None),
    ],
    "purchase_abandoned": [
        ("purchase/last_abandoned", "event_derived",
         {"product_id": "product_id", "product_name": "product_name name", "total": "total", "currency": "currency"},
         "abandoned", 90),
    ],
    "product_viewed": [
        ("behavioral/last_viewed_product", "event_derived",
         {"product_id": "product_id", "product_name": "product_name name", "category": "category"}, "", 90),
    ],
    "sentiment_detected": [
        ("behavioral/sentiment", "system_computed", {"label": "label", "score": "score"}, "", 30),
    ],
    "conversation_started": [
        ("behavioral/last_conversation", "event_derived",
         {"conversation_id": "conversation_id", "channel": "channel", "category": "category", "topic": "topic"},
         "conversations", None),
    ],
    "conversation_ended": [
        ("behavioral/last_conversation_outcome", "event_derived",
         {"conversation_id": "conversation_id", "channel": "channel", "resolved": "resolved",
          "message_count": "message_count"}, "", None),
    ],
    "campaign_delivered": [
        ("campaign/last_delivered", "event_derived", {"campaign_id": "campaign_id", "channel": "channel"},
         "deliveries", None),
    ],
    "campaign_engaged": [
        ("campaign/last_engaged", "event_derived",
         {"campaign_id": "campaign_id", "action": "action", "channel": "channel"}, "reactions", None),
    ],
    "campaign_ignored": [
        ("campaign/last_ignored", "system_computed", {"campaign_id": "campaign_id"}, "ignored", None),
    ],
    "discount_requested": [
        ("behavioral/discount_requested", "event_derived",
         {"product_id": "product_id", "percent": "requested_percent percent"}, "requests", None),
    ],
    "discount_accepted": [
        ("behavioral/discount_accepted", "event_derived",
         {"product_id": "product_id", "percent": "percent discount_percent", "code": "code"}, "accepted", None),
    ],
}  # fmt: skip


def memory(events: list[SentEvent], now: int) -> dict[str, Any]:
    """What the view must say: facts by type and key, and what was retracted, from events that occurred before now."""
    retracted = _retractions(events)
    sayings: dict[FactId, list[dict[str, Any]]] = {}
    for event in events:
        for fact, saying in _sayings(event):
            if event["occurred_at"] > retracted.get(fact, (-(10**30), ""))[0]:
                sayings.setdefault(fact, []).append({**saying, "event": event})
    claims = {fact: _claims(fact, claimed) for fact, claimed in sayings.items()}
    bounds = _cascade(claims, {fact: at for fact, (at, _) in retracted.items()}, now)
    view: dict[str, Any] = {}
    went = set(retracted)
    for fact, listed in claims.items():
        living = [c for c in listed if _lives(c, now)]
        known = [c for c in living if not any(b in bounds and c["at"] <= bounds[b][0] for b in c["premises"])]
        if known:
            view.setdefault(fact[0], {})[fact[1]] = _shown(fact, known, sayings[fact])
        elif living:
            went.add(fact)
    gone = []
    for fact in sorted(went):
        at, why = bounds[fact]
        own = retracted.get(fact)
        gone.append(
            {
                "type": fact[0],
                "key": fact[1],
                "retraction": own[1] if own else "",
                "retracted_at": _time(own[0] if own else at),
                "because_of": "" if own else "/".join(why),
            }
        )
    return {**view, "retracted": gone}


def _time(at: int) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


# --- what each event says -----------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """A value that a fact may hold; what is too long is left out by the tests that use this."""
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _at(properties: Any, paths: str) -> Any:
    for path in paths.split():
        if properties.get(path) is not None:
            return _plain(properties[path])
    return None


def _trimmed(value: Any) -> str:
    return value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""


def _slug(text: str) -> str:
    """The text as a plain word; those of the tests are short and bear marks on Latin letters only."""
    letters = [c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)]
    return "_".join(re.findall(r"[^\W_]+", "".join(letters).casefold()))


def _sayings(event: SentEvent) -> Iterator[tuple[FactId, dict[str, Any]]]:
    kind, given = event["type"], event["properties"]
    for name, source, fields, count, days in _PLAIN.get(kind, ()):
        words = {field: _at(given, paths) for field, paths in fields.items()}
        if any(text is not None for text in words.values()):
            made = {"by": name, "source": source, "words": words, "count": count, "days": days}
            type, _, key = name.partition("/")
            yield (type, key), made
    if kind == "purchase_completed":
        yield from _purchase(given)
    elif kind in ("subscription_created", "subscription_cancelled"):
        words = {field: _at(given, field) for field in ("plan", "total", "currency", "reason")}
        if any(text is not None for text in words.values()):
            status = "active" if kind.endswith("created") else "cancelled"
            yield ("purchase", "subscription"), {"by": "s", "words": {**words, "status": status}}
    elif kind == "product_asked" and (product := _trimmed(_at(given, "product_id sku"))):
        words = {"product_name": _at(given, "product_name name"), "question": _at(given, "question")}
        yield ("interest", f"product:{product}"), {"by": "p", "words": words, "count": "questions", "tail": 1}
    elif kind == "interest_detected" and (topic := _trimmed(given.get("topic"))):
        yield (
            ("interest", f"topic:{topic}"),
            {
                "by": "t",
                "source": "system_computed",
                "words": {},
                "count": "detections",
                "last": "last_at",
                "tail": 1,
                "sure": given.get("confidence"),
            },
        )
    elif kind == "objection_raised" and (slug := _slug(_trimmed(_at(given, "objection reason topic")))):
        words = {"text": _at(given, "text objection reason topic")}
        made = {"by": "o", "words": words, "count": "raised", "last": "last_at", "tail": 1}
        yield ("behavioral", f"objection:{slug}"), made
    elif kind == "form_submitted":
        yield from _form(given)
    if (
        kind == "conversation_started"
        and given.get("category") == "support"
        and (topic := _trimmed(given.get("topic")))
    ):
        words = {"channel": _at(given, "channel")}
        made = {"by": "r", "words": words, "count": "requests", "first": "first_at", "last": "last_at", "tail": 1}
        yield ("support", f"topic:{topic}"), made
    if kind in _SAYING:
        yield from _declared(event)


def _purchase(given: dict[str, Any]) -> Iterator[tuple[FactId, dict[str, Any]]]:
    lines = given.get("products")
    if not isinstance(lines, list) or not lines:
        lines = [
            {
                "product_id": given.get("product_id"),
                "name": given.get("product_name"),
                "price": given.get("total"),
            }
        ]
    first = lines[0] if isinstance(lines[0], dict) else {}
    words = {field: _at(given, field) for field in ("order_id", "total", "currency", "payment_method")}
    words["product_id"] = _at(given, "product_id") if given.get("product_id") is not None else first.get("product_id")
    words["product_name"] = _at(given, "product_name") if given.get("product_name") is not None else first.get("name")
    if any(text is not None for text in words.values()):
        yield ("purchase", "last_transaction"), {"by": "l", "words": words, "last": "purchased_at"}
    if given.get("payment_method") is not None:
        yield ("preference", "payment_method"), {"by": "m", "whole": given["payment_method"]}
    products: dict[str, dict[str, Any]] = {}
    for line in lines:
        product = _trimmed(_at(line, "product_id sku"))
        name, amount = _at(line, "name product_name"), _amount(line.get("price"))
        if amount is not None and line.get("quantity") is not None:
            factor = _amount(line["quantity"])
            amount = None if factor is None else amount * factor
        if product:
            made = products.setdefault(product, {"by": "b", "words": {"product_name": name}, "amounts": []})
            made["amounts"] += [] if amount is None else [(_currency(given.get("currency")), amount)]
    for product, made in products.items():
        yield ("purchase", f"product:{product}"), {**made, "count": "purchases", "product": True, "tail": 1}


def _amount(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value, re.ASCII):
        return None
    units = Fraction(Decimal(str(value))) * 1_000_000
    return Fraction(round(units), 1_000_000)


def _currency(value: Any) -> str:
    return value.upper() if isinstance(value, str) and value.isascii() and value.isalpha() else "unknown"


def _form(given: dict[str, Any]) -> Iterator[tuple[FactId, dict[str, Any]]]:
    form, answers = _trimmed(_at(given, "form form_id")), given.get("answers")
    if not form or not isinstance(answers, dict | list):
        return
    pairs = (
        list(answers.items())
        if isinstance(answers, dict)
        else [
            (_at(answer, "key question"), _at(answer, "value answer")) for answer in answers if isinstance(answer, dict)
        ]
    )
    seen = set()
    for question, answer in pairs:
        slug = _slug(_trimmed(question))
        if slug and answer is not None and slug not in seen:
            seen.add(slug)
            yield ("form", f"{form}:{slug}"), {"by": "f", "source": "user_declared", "whole": answer, "tail": 1}


def _declared(event: SentEvent) -> Iterator[tuple[FactId, dict[str, Any]]]:
    given, source = event["properties"], _SAYING[event["type"]]
    type, key, recalled = given.get("type"), _trimmed(given.get("key")), given.get("recalled")
    id = f"{type}/{key}"
    if type not in _TYPES or not key or given.get("value") is None:
        return
    if source != "user_declared" and (recalled is True or recalled == id or id in (recalled or [])):
        return
    yield (
        (type, key),
        {
            "by": event["type"],
            "source": source,
            "whole": given["value"],
            "voiced": True,
            "voice": "" if source == "user_declared" else event["source"],
            "until": given.get("expires_at"),
            "sure": None if source == "user_declared" else given.get("confidence"),
            "premises": [tuple(premise.split("/", 1)) for premise in given.get("derived_from") or []],
        },
    )


# --- what they come to --------------------------------------------------------------------------


def _claims(fact: FactId, sayings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest word of each voice of each kind of event, with what all of its kind add up to."""
    claims = []
    for by in dict.fromkeys(saying["by"] for saying in sayings):
        of_kind = [saying for saying in sayings if saying["by"] == by]
        for voice in sorted({saying.get("voice", "") for saying in of_kind}):
            newest = [saying for saying in of_kind if saying.get("voice", "") == voice][-1]
            claims.append(_claim(newest, of_kind, voice))
    return claims


def _claim(newest: dict[str, Any], of_kind: list[dict[str, Any]], voice: str) -> dict[str, Any]:
    source = newest.get("source", "event_derived")
    times = [saying["event"]["occurred_at"] for saying in of_kind]
    at = newest["event"]["occurred_at"]
    value: Any = newest["whole"] if "whole" in newest else dict(newest["words"])
    if "whole" not in newest:
        if newest.get("count"):
            value[newest["count"]] = len(of_kind)
        if newest.get("product"):
            value |= _product(of_kind, times)
        value |= {newest[name]: _time(pick(times)) for name, pick in (("first", min), ("last", max)) if name in newest}
        value = dict(sorted(value.items()))
    days, until = newest.get("days"), newest.get("until")
    expires_at = None if days is None else at + days * DAY
    if isinstance(until, str):
        expires_at = round(dt.datetime.fromisoformat(until).timestamp() * 1_000_000)
    sure: Any = newest.get("sure")
    is_number = isinstance(sure, int | float) and not isinstance(sure, bool)
    return {
        "source": source,
        "voice": voice,
        "value": value,
        "at": at,
        "id": event_id(newest["event"]),
        "expires_at": expires_at,
        "premises": newest.get("premises", []),
        "sure": Fraction(str(min(max(sure, 0), _MOST[source]) if is_number else _USUAL[source])),
    }


def _product(of_kind: list[dict[str, Any]], times: list[int]) -> dict[str, Any]:
    sums: dict[str, Fraction] = {}
    for saying in of_kind:
        for currency, amount in saying["amounts"]:
            sums[currency] = sums.get(currency, Fraction(0)) + amount
    amounts = {currency: float(amount) for currency, amount in sorted(sums.items())}
    gaps = len(times) - 1
    return {
        "total_spent": 0.0 if not amounts else next(iter(amounts.values())) if len(amounts) == 1 else None,
        "total_spent_by_currency": amounts,
        "average_interval_days": float(Fraction(max(times) - min(times), gaps * DAY)) if gaps else None,
        "first_at": _time(min(times)),
        "last_at": _time(max(times)),
    }


def _shown(fact: FactId, claims: list[dict[str, Any]], sayings: list[dict[str, Any]]) -> dict[str, Any]:
    groups: list[list[dict[str, Any]]] = []
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in sorted(claims, key=lambda claim: (claim["at"], claim["id"])):
        newest[claim["source"], claim["voice"]] = claim
    for claim in newest.values():
        for group in groups:
            if group[0]["source"] == claim["source"] and group[0]["value"] == claim["value"]:
                group.append(claim)
                break
        else:
            groups.append([claim])
    words = sorted((_together(group) for group in groups), key=lambda candidate: candidate["order"], reverse=True)
    words = [candidate for candidate in words if candidate is words[0] or candidate["value"] != words[0]["value"]]
    for candidate in words:
        del candidate["order"]
    kinds = {saying["by"]: saying.get("tail", 3) for saying in sayings}
    ids: list[tuple[int, str]] = []
    for by, size in kinds.items():
        ids += sorted((s["event"]["occurred_at"], event_id(s["event"])) for s in sayings if s["by"] == by)[-size:]
    return {
        "type": fact[0],
        "key": fact[1],
        **words[0],
        "events": len(sayings),
        "source_event_ids": [id for _, id in sorted(set(ids), reverse=True)[:3]],
        "created_at": _time(min(saying["event"]["occurred_at"] for saying in sayings)),
        "conflicts": words[1:],
    }


def _together(group: list[dict[str, Any]]) -> dict[str, Any]:
    doubt = Fraction(1)
    for claim in group:
        doubt *= 1 - claim["sure"]
    newest = max(group, key=lambda claim: (claim["at"], claim["id"]))
    confidence = round(float(1 - doubt), 4)
    expiries = [claim["expires_at"] for claim in group]
    return {
        "value": newest["value"],
        "source": newest["source"],
        "confidence": confidence,
        "updated_at": _time(newest["at"]),
        "expires_at": None if None in expiries else _time(max(expiries)),
        "voices": sorted({claim["voice"] for claim in group} - {""}),
        "order": (-_SOURCES.index(newest["source"]), confidence, newest["at"], newest["id"]),
    }


# --- what is taken back -------------------------------------------------------------------------


def _retractions(events: list[SentEvent]) -> dict[FactId, tuple[int, str]]:
    """Of each fact the newest retraction that was not undone."""
    undone = {event["properties"].get("retraction") for event in events if event["type"] == "fact_restored"}
    standing: dict[Any, tuple[int, str]] = {}
    for event in events:
        properties = event["properties"]
        fact = (properties.get("type"), properties.get("key"))
        named = fact[0] in _TYPES and isinstance(fact[1], str) and 0 < len(fact[1]) <= 128
        if event["type"] == "fact_retracted" and named and event_id(event) not in undone:
            standing[fact] = max(standing.get(fact, (-(10**30), "")), (event["occurred_at"], event_id(event)))
    return standing


def _lives(claim: dict[str, Any], now: int) -> bool:
    return claim["expires_at"] is None or bool(claim["expires_at"] > now)


def _cascade(claims: dict[FactId, list[dict[str, Any]]], retracted: dict[FactId, int], now: int) -> dict[FactId, Any]:
    """What voids each fact. One falls if something of it falls and nothing that lives stands."""
    bounds: dict[FactId, Any] = {fact: (at, fact) for fact, at in retracted.items()}
    while True:
        before = dict(bounds)
        for fact, listed in claims.items():
            reasons = {
                index: [before[b] for b in claim["premises"] if b in before and claim["at"] <= before[b][0]]
                for index, claim in enumerate(listed)
            }
            if all(reasons[index] or not _lives(claim, now) for index, claim in enumerate(listed)):
                voids = [reason for group in reasons.values() for reason in group]
                if fact in bounds:
                    voids.append(bounds[fact])
                if voids:
                    bounds[fact] = max(voids)
        if bounds == before:
            return bounds
