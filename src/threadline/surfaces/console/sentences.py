"""Events and timers in words, and what Threadline made of an event under what the person did."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from threadline.kernel.fixed import from_fixed
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.surfaces.console.formats import label, number, outcome, short, words

SENTENCES: Mapping[str, str] = {
    "points_earned": "Earned {points} points for {rule}",
    "points_spent": "Spent {points} points, {balance} left",
    "points_adjusted": "Balance changed by {points} points: {reason}",
    "points_expired": "{points} points expired",
    "points_refused": "{points} points were not spent: {why}",
    "points_anomaly_detected": "Unusual points: {kind}",
    "streak_milestone_reached": "Reached {length} in a row: {streak}",
    "leaderboard_scored": "Score on {board} is now {score}",
    "segment_entered": "Entered the segment {segment}",
    "segment_left": "Left the segment {segment}",
    "segment_kept": "Stays in the segment {segment}",
    "journey_entered": "Entered the journey {journey}",
    "journey_moved": "Went on in the journey {journey}",
    "journey_exited": "Left the journey {journey}: {reason}",
    "mail_sent": "Mail “{template}” was sent",
    "mail_delivered": "Mail “{template}” was delivered",
    "mail_fetched": "A picture or link of the mail “{template}” was asked for",
    "mail_scanned": "A machine looked through the mail “{template}”",
    "mail_opened": "Opened the mail “{template}”",
    "mail_clicked": "Clicked a link in the mail “{template}”",
    "mail_replied": "Answered the mail “{template}”",
    "mail_bounced": "Mail “{template}” bounced",
    "mail_complained": "Marked the mail “{template}” as spam",
    "mail_skipped": "Mail “{template}” was not sent: {reason}",
    "broadcast_addressed": "Addressed by the broadcast {broadcast}",
    "tag_added": "Tagged {tag}",
    "tag_removed": "Tag {tag} removed",
    "decision_made": "Rule {rule} decided: {status}",
    "fact_computed": "Known from now on: {key} is {value}",
    "campaign_ignored": "Ignored the campaign {campaign_id}",
    "threadline.timer_fired": "Checked {policy} again",
    "threadline.effect_parked": "Given up on after {attempts} tries",
}
"""Type -> what is said of it; a sentence is used where the event has all that it names."""
TIMERS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("journeys", re.compile(r"rest/"), "Goes on in its journeys"),
    ("journeys", re.compile(r"(?P<journey>[^/]+)/"), "Goes on in the journey {journey}"),
    ("segments", re.compile(r""), "May enter or leave a segment"),
    ("leaderboards", re.compile(r""), "May go up or down on a leaderboard"),
    ("streaks", re.compile(r""), "May reach a milestone of a streak"),
    ("points", re.compile(r"lot (?P<month>\d{1,6})$"), "Points of {month} expire"),
    ("mail_fetches", re.compile(r""), "Decides whether a person or a machine looked at a mail"),
    ("campaign_ignored", re.compile(r"campaign:(?P<id>.+)", re.DOTALL), "Will have ignored the campaign {id}"),
    ("campaign_ignored", re.compile(r"after:"), "May have ignored a campaign"),
)
"""Policy, the form of a timer's key, and what is said of such a timer: the first that fits."""
ACTS = frozenset({"mail_opened", "mail_clicked", "mail_replied", "mail_complained"})
"""Noted by Threadline, and done by the person all the same."""
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_CONDITIONED = re.compile(r"(.*?) (\{.*\})", re.DOTALL)
_PLACE = re.compile(r"\{(\w+)\}")
_ONE = re.compile(r"\b1 (point|trie)s\b")
_IDS = re.compile(r"[0-9a-f]{12,}([./]|$)")
_UNSAID = frozenset({"policy", "kind", "occurrence", "draw", "provider_id", "transactional"})
"""Members that say nothing to a reader of a list; the page of the event has them."""


def is_own(event: Mapping[str, Any]) -> bool:
    """Whether the person did it; else Threadline made it of that, or noted it."""
    type = str(event["type"])
    is_internal = event.get("source_type") == "internal" or type.startswith(SYSTEM_PREFIX)
    return not is_internal or (type in ACTS and not event.get("properties", {}).get("machine"))


def event_name(type: Any) -> str:
    """A type of events as its name: ``purchase_completed`` is “Purchase completed”, ``*`` is any."""
    return "Any event" if type == "*" else label(str(type).removeprefix(SYSTEM_PREFIX))


def step_name(step: str) -> str:
    """A step of an analysis as its name: a type of events, or one with conditions as JSON behind it."""
    match = _CONDITIONED.fullmatch(step)
    return f"{event_name(match[1])} {match[2]}" if match else event_name(step)


def sentence(event: Mapping[str, Any]) -> str:
    """What happened, as a sentence where there is one for the type, else its name."""
    type, properties = str(event["type"]), event.get("properties") or {}
    pattern = SENTENCES.get(type, "")
    values = {name: _shown(type, name, properties.get(name)) for name in _PLACE.findall(pattern)}
    if not pattern or not all(values.values()):
        return event_name(type)
    return _ONE.sub(lambda match: f"1 {match[1].replace('trie', 'try')}", pattern.format_map(values))


def timer_sentence(timer: Mapping[str, Any]) -> str:
    """What a pending timer is for, as a sentence where there is one for its policy, else the policy's name."""
    policy, key = str(timer["policy"]), str(timer["key"])
    for of, form, pattern in TIMERS:
        if of == policy and (match := form.match(key)):
            return pattern.format_map({name: _named(name, part) for name, part in match.groupdict().items()})
    return label(policy)


def _named(name: str, text: str) -> str:
    """A part of a timer's key in words; months are counted from the year 0 on."""
    return f"{MONTHS[int(text) % 12]} {int(text) // 12}" if name == "month" else short(words(text), 60)


def details(event: Mapping[str, Any], length: int = 140) -> str:
    """The plain properties in one line; nothing where the sentence has said what there is to say."""
    return "" if sentence(event) != event_name(event["type"]) else gist(event.get("properties") or {}, length)


def gist(values: Mapping[str, Any], length: int = 90) -> str:
    """The plain members of an object in one line, such as the properties of an event in a list."""
    plain = (
        f"{words(name)} {number(value)}"
        for name, value in values.items()
        if isinstance(value, (str, int, float)) and value != "" and name not in _UNSAID and not _IDS.match(str(value))
    )
    return short(" · ".join(plain), length)


def _shown(type: str, name: str, value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    if name == "status":
        return outcome(value)
    value = _plain(type, name, value)
    return number(value) if isinstance(value, (int, float)) else short(words(value), 60)


def properties(event: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an event as they are read: a score is stored in millionths."""
    return {name: _plain(str(event["type"]), name, value) for name, value in (event.get("properties") or {}).items()}


def _plain(type: str, name: str, value: Any) -> Any:
    is_score = (type, name) == ("leaderboard_scored", "score") and isinstance(value, int)
    return from_fixed(value) if is_score else value


def folded(events: Sequence[Mapping[str, Any]], is_flat: Any = False) -> list[dict[str, Any]]:
    """Rows of a list: what people did, each with what it ``led_to``, and ``noted`` for what only Threadline noted.

    What follows from no event among these is noted by itself, together with what stands next to it. ``is_flat``: a
    row for each event.
    """
    if is_flat:
        return [{"event": event, "own": is_own(event), "led_to": []} for event in events]
    by_id = {event["id"]: event for event in events}
    rows: dict[str, dict[str, Any]] = {}
    listed: list[dict[str, Any]] = []
    for event in events:
        if is_own(event):
            rows[event["id"]] = {"event": event, "own": True, "led_to": []}
            listed.append(rows[event["id"]])
        elif not _is_under(event, by_id):
            if not listed or "noted" not in listed[-1]:
                listed.append({"noted": []})
            listed[-1]["noted"].append(event)
    for event in events:
        if not is_own(event) and (root := _is_under(event, by_id)):
            rows[root]["led_to"].append(event)
    return listed


def _is_under(event: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str:
    """The id of what the person did that an event follows from, through other such events; empty: not among these."""
    seen: set[str] = set()
    while (cause := str(event.get("cause", ""))) in by_id and cause not in seen:
        seen.add(cause)
        event = by_id[cause]
        if is_own(event):
            return cause
    return ""
