"""What a person's points must be, from the list of all events of the thread, in the words of docs/points.md.

Which event earns depends on what had arrived before it, so this starts from everything that the thread holds and
asks two things: whether every line of the ledger was right to be written, and what the lines add up to.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from threadline.testing.audits.sent_events import DAY

Line = dict[str, Any]
"""An event with id, cause, thread, type, source_type, occurred_at, recorded_at, marks, historical and properties."""

EARNS = {
    "conversation_started": 10,
    "CONVERSATION_START": 10,
    "tool_used": 5,
    "TOOL_USE": 5,
    "app_opened": 1,
    "DAILY_OPEN": 1,
    "Application Opened": 1,
    "result_shared": 15,
    "SHARE_RESULT": 15,
}
_ONCE_A_DAY = ("app_opened", "DAILY_OPEN", "Application Opened")
_HOUR = 3_600_000_000


def points(lines: list[Line], now: int) -> dict[str, int]:
    """Balance, lifetime earned, spent, adjusted and expired at an instant."""
    sums: Counter[str] = Counter()
    for line in lines:
        amount = line["properties"].get("points")
        if line["source_type"] == "external" or line["occurred_at"] >= now or not _is_amount(amount):
            continue
        if line["type"] == "points_adjusted":
            sums["adjusted"] += amount
        elif line["type"] in ("points_earned", "points_spent", "points_expired") and amount > 0:
            sums[line["type"].removeprefix("points_")] += amount
    by_kind = {name: sums[name] for name in ("earned", "spent", "adjusted", "expired")}
    return {"balance": by_kind["earned"] + by_kind["adjusted"] - by_kind["spent"] - by_kind["expired"], **by_kind}


def _is_amount(amount: Any) -> bool:
    return isinstance(amount, int) and not isinstance(amount, bool) and 0 < abs(amount) <= 10**12


def problems(lines: list[Line]) -> list[str]:
    """What is wrong with the lines that Threadline wrote itself; nothing if all is well."""
    wrong = []
    by_id = {line["id"]: line for line in lines}
    written = [line for line in lines if line["type"] == "points_earned" and line["cause"]]
    causes = Counter(line["cause"] for line in written)
    days: Counter[tuple[str, int]] = Counter()
    hours = Counter(
        line["occurred_at"] // _HOUR
        for line in lines
        if line["type"] == "points_earned"
        and line["source_type"] != "external"
        and _is_amount(line["properties"].get("points"))
        and line["properties"]["points"] > 0
    )
    for line in written:
        cause = by_id.get(line["cause"])
        if cause is None or cause["type"] not in EARNS or line["properties"]["points"] != EARNS[cause["type"]]:
            wrong.append(f"{line['id']} earns what its cause does not give")
        elif not _is_in_time(cause):
            wrong.append(f"{line['id']} earns for what was told too late or lies too far ahead")
        elif cause["type"] in _ONCE_A_DAY:
            # By thread: two people who were joined afterwards may each have had their own.
            days[line["thread"], line["occurred_at"] // DAY] += 1
    wrong += [f"{id} earned {times} times" for id, times in causes.items() if times > 1]
    wrong += [f"day {day} was opened {times} times" for day, times in days.items() if times > 1]
    for line in lines:
        due = line["type"] in EARNS and line["type"] not in _ONCE_A_DAY and _is_in_time(line)
        full = hours[min(line["occurred_at"], line["recorded_at"]) // _HOUR] >= 100
        if due and not causes[line["id"]] and not full:
            wrong.append(f"{line['id']} earned nothing")
        answers = [answer for answer in lines if answer["cause"] == line["id"] and answer["type"] in _ANSWERS]
        if line["type"] == "points_spend_requested" and len(answers) != (line["source_type"] != "external"):
            wrong.append(f"{line['id']} was answered {len(answers)} times")
    return wrong


_ANSWERS = ("points_spent", "points_refused")


def _is_in_time(line: Line) -> bool:
    believed = line["historical"] and "claimed_history" not in line["marks"]
    age = 0 if believed else line["recorded_at"] - line["occurred_at"]
    return age <= 7 * DAY and "clamped" not in line["marks"]
