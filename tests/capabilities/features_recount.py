"""Every aggregate recounted from the raw list of events, slowly, sharing no code with the folds."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from threadline.kernel.event import Recorded
from threadline.kernel.time import parse_duration

NUMBERS = ["sum", "average", "min", "max"]


def amount_of(each: Recorded) -> Decimal | None:
    """The amount to six decimals, by decimal arithmetic."""
    value = each.event.properties["amount"]
    if type(value) not in (int, float, str):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    if not amount.is_finite() or abs(amount) > Decimal("9.2e12"):
        return None
    return amount.quantize(Decimal("0.000001"))


def scalar_of(each: Recorded) -> Any:
    value = each.event.properties["amount"]
    if type(value) is float and not isfinite(value):
        return None
    return value if type(value) in (bool, float, str) or (type(value) is int and abs(value) < 2**63) else None


def key_of(each: Recorded) -> Any:
    value = each.event.properties["amount"]
    if type(value) is float and not isfinite(value):
        return None
    return (
        None if value is None or isinstance(value, list) else (type(value) in (int, float), type(value) is str, value)
    )


def local_of(each: Recorded) -> datetime:
    zone = each.event.context.get("timezone", "UTC")
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=each.event.occurred_at)
    return moment.astimezone(ZoneInfo(zone if zone != "No/Where" else "UTC"))


def currency_of(each: Recorded) -> str:
    money = each.event.properties.get("money")
    code = money["currency"] if money else ""
    return code.upper() if type(code) is str else ""


def recount(aggregate: str, window: str, events: list[Recorded], now: int) -> tuple[Any, list[Recorded]]:
    """The value, and every event that ever fed the feature."""
    types = {"sale"} if aggregate == "money" else {"sale", "refund"}
    known = [each for each in events if each.event.type in types]
    if aggregate != "money":
        known = [each for each in known if each.event.properties.get("kind") not in (None, "test")]
    if aggregate in NUMBERS or aggregate == "money":
        known = [each for each in known if amount_of(each) is not None]
    elif aggregate in ("first", "last"):
        known = [each for each in known if scalar_of(each) is not None]
    elif aggregate == "distinct":
        known = [each for each in known if key_of(each) is not None]
    start = -(10**30) if window == "lifetime" else now - parse_duration(window)
    inside = [each for each in known if start <= each.event.occurred_at < now]
    return VALUES[aggregate](sorted(inside, key=lambda each: (each.event.occurred_at, each.id))), known


def unread_recount(aggregate: str, window: str, events: list[Recorded], now: int) -> str:
    """What the reason of a total ends with: how many values gave no amount; empty for none, or none in the window."""
    types = {"sale"} if aggregate == "money" else {"sale", "refund"}
    bad = [each for each in events if each.event.type in types and amount_of(each) is None]
    bad = [each for each in bad if each.event.properties["amount"] is not None]
    if aggregate != "money":
        bad = [each for each in bad if each.event.properties.get("kind") not in (None, "test")]
    if not bad:
        return ""
    newest = max(each.event.occurred_at for each in bad)
    if window != "lifetime" and newest < now - parse_duration(window):
        return ""
    values = [each.event.properties["amount"] for each in bad]
    beyond = sum(type(value) in (int, float) and abs(value) < float("inf") for value in values)
    counted = {"could not be read": len(bad) - beyond, "out of range": beyond}
    parts = [
        f"{count} value{'' if count == 1 else 's'} {'' if what[0] == 'c' else 'is ' if count == 1 else 'are '}{what}"
        for what, count in counted.items()
        if count
    ]
    return ", ".join(parts) + ("" if window == "lifetime" else " so far, the newest in the window")


def signed(inside: list[Recorded]) -> list[Decimal]:
    return [(-1 if each.event.type == "refund" else 1) * (amount_of(each) or Decimal(0)) for each in inside]


def mean(inside: list[Recorded]) -> float | None:
    units = sum(int(amount * 1_000_000) for amount in signed(inside))
    return units / (len(inside) * 1_000_000) if inside else None


def favourite(found: list[int]) -> int | None:
    counts = Counter(found)
    return min(counts, key=lambda each: (-counts[each], each)) if counts else None


def money(inside: list[Recorded]) -> Any:
    if not inside:
        return 0
    if len({currency_of(each) for each in inside}) > 1:
        return None
    return float(sum(signed(inside), Decimal(0)))


VALUES: dict[str, Any] = {
    "count": len,
    "any": bool,
    "preferred_hour": lambda inside: favourite([local_of(each).hour for each in inside]),
    "preferred_day": lambda inside: favourite([local_of(each).isoweekday() for each in inside]),
    "sum": lambda inside: float(sum(signed(inside), Decimal(0))) if inside else 0,
    "average": mean,
    "min": lambda inside: float(min(signed(inside))) if inside else None,
    "max": lambda inside: float(max(signed(inside))) if inside else None,
    "first": lambda inside: scalar_of(inside[0]) if inside else None,
    "first_or_null": lambda inside: scalar_of(inside[0]) if inside else None,
    "last": lambda inside: scalar_of(inside[-1]) if inside else None,
    "last_or_null": lambda inside: scalar_of(inside[-1]) if inside else None,
    "distinct": lambda inside: len({key_of(each) for each in inside}),
    "money": money,
}
