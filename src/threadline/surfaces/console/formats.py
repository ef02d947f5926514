"""Times, numbers and names as every page shows them: one way for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import CLAIMED_HISTORY
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, duration_text, format_time, parse_duration, parse_time

MAIL_COUNTS = ("sent", "delivered", "opened", "clicked", "bounced", "complained", "replied")
"""What became of mails, in the order in which screens show it: members of the counts of `feedback_counters`."""
_SHARES = frozenset({"removal", "lift", "rate", "alive"})
REASONS = {"exit_on": "exit condition met", "holdout": "control group", "direct": "a program"}
"""What lists call reasons, and those who ask without an account, that have another name for programs."""
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z")
LATE = MINUTE
"""How long after an event it may be received before lists say that it came late."""
_STEPS = ((DAY * 365, "y"), (DAY * 30, "mo"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def ago(time: str | None, now: int) -> str:
    """How long ago an instant was, or how long ahead it is, in its largest unit."""
    if not time:
        return ""
    apart = now - parse_time(time)
    amount = next((f"{abs(apart) // size} {unit}" for size, unit in _STEPS if abs(apart) >= size), "")
    if not amount:
        return "now"
    return f"{amount} ago" if apart > 0 else f"in {amount}"


def badges(event: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What sets an event apart, each as (text, kind of badge, explanation): imported, late, and what was done to it."""
    shown: list[tuple[str, str, str]] = []
    marks = [mark for mark in event.get("marks") or () if mark != CLAIMED_HISTORY]
    # Of what Threadline itself notes it says nothing when that was written down.
    is_own = event.get("source_type") == "internal"
    is_imported = event.get("historical") and not is_own
    if is_imported:
        is_claimed = len(marks) < len(event.get("marks") or ())
        shown.append(("imported", "", "By a write key: it earns nothing." if is_claimed else ""))
    elif not is_own and event.get("received_at") and _delay(event) > LATE:
        shown.append(("came late", "", f"Received {at(event['received_at'])}"))
    shown += [(words(mark), "warn", "") for mark in marks]
    why = event.get("why")
    if why and why not in ("live", "time") and not is_imported:
        shown.append((words(why), "", "Why it happened"))
    return shown


def _delay(event: Mapping[str, Any]) -> int:
    return parse_time(event["received_at"]) - parse_time(event["occurred_at"])


def at(time: str | None) -> str:
    """An instant to the second, in UTC."""
    return "" if not time else f"{format_time(parse_time(time))[:19].replace('T', ' ')} UTC"


def timed(text: Any) -> str:
    """A text with each instant in it as pages show instants."""
    return _INSTANT.sub(lambda match: at(match[0]), str(text))


def date(time: str | None) -> str:
    """The day of an instant, in UTC."""
    return "" if not time else time[:10]


def day_field(text: Any) -> str:
    """An instant as a field for days has it; empty for what is none."""
    return _instant(text)[:10]


def time_field(text: Any) -> str:
    """An instant as a field for times has it, in UTC; empty for what is none."""
    return _instant(text)[:19].removesuffix(":00")


def _instant(text: Any) -> str:
    try:
        return format_time(parse_time(str(text))) if text else ""
    except InvalidValue:
        return ""


def digits_of(values: Iterable[Any]) -> int:
    """How many digits stand behind the point in a column of these, so that its points are below each other: none among
    whole numbers, four among those below one."""
    broken = [value for value in values if isinstance(value, float) and not value.is_integer()]
    return 0 if not broken else 4 if all(abs(value) < 1 for value in broken) else 2


def number(value: Any, digits: int | None = None) -> str:
    """A number with its thousands apart; anything else as it is. ``digits``: so many behind the point."""
    if digits is not None and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.{digits}f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def plain(value: Any) -> Any:
    """A single value as people read it, wherever it stands: a flag, a number or an instant; anything else as it is."""
    return number(value) if isinstance(value, bool | int | float) else timed(value) if isinstance(value, str) else value


def lasting(text: Any) -> str:
    """A duration as it is written, such as ``7d``, in words; anything else as it is."""
    try:
        return duration_text(parse_duration(str(text)))
    except InvalidValue:
        return str(text)


def spoken(reason: Any) -> str:
    """Why somebody left, got nothing or was not reached, in words."""
    return REASONS.get(str(reason), words(reason))


def percent(value: Any, digits: int = 1) -> str:
    """A share of one as per cent."""
    return "–" if value is None else f"{100 * value:.{digits}f}%"


def measured(value: Any, name: str, digits: int | None = None) -> str:
    """A number of an answer as its name says what it is: a share as per cent, seconds in their two largest units."""
    if value is None or not isinstance(value, (int, float)) or isinstance(value, bool):
        return number(value)
    if name.startswith("share") or name in _SHARES:
        return percent(value)
    return _lasting(value) if name.startswith("seconds") else number(value, digits)


def _lasting(seconds: float) -> str:
    parts: list[str] = []
    rest = round(seconds)
    for size, unit in _STEPS:
        amount, rest = divmod(rest, size // SECOND)
        if amount or parts:
            parts.append(f"{amount}\u202f{unit}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0\u202fs"


def short(text: Any, length: int = 60) -> str:
    """The beginning of a long text."""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def words(name: Any) -> str:
    """A name as words: ``purchase_completed`` is “purchase completed”."""
    return str(name).replace("_", " ").replace(".", " › ")


def label(name: Any) -> str:
    """A name as the label of a value: ``first_name`` is “First name”."""
    shown = "e-mail" if name == "email" else words(name)
    return shown[:1].upper() + shown[1:]


def outcome(status: Any) -> str:
    """What a rule came to, in words."""
    return "not matched" if status == "NoMatch" else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(status)).lower()
