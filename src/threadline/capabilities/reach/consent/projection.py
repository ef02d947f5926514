"""The projections ``consent`` and ``suppression``: what a person said about topics, and their suppressed addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.capabilities.reach.consent.definition import Consent, Topic
from threadline.capabilities.reach.consent.events import SUPPRESSION, WORDS, statement_of, suppressed_of
from threadline.capabilities.reach.consent.rows import (
    Statements,
    statement_rows,
    suppression_rows,
)
from threadline.capabilities.reach.consent.standing import GETS_MAIL, status_of, subscriptions_in
from threadline.kernel.event import Recorded
from threadline.kernel.merging import keep_smallest, merge_entries, newest
from threadline.kernel.projection import Depends, Faster, Index, Projection
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

_THREAD = "\uffff"
"""Begins the place of a subscription without an address; addresses come before it, and so are kept first."""
ADDRESSES_MAX = 50
"""Addresses of one person that are remembered by topic: those with the smallest names."""

Mark = list[Any]
"""[occurred_at, event id, …] of the newest word."""
Words = list[Any]
"""Thread -> the newest marks of unsubscribing, with whatever address: by themselves, and imported; and address -> the
newest marks of having been confirmed, of having been subscribed, and the same imported. Without an address the thread
is in its place. None where there is none."""
State = dict[str, Words]
"""Topic -> what was said; under "" about all of them."""


def consent_projection(consent: Consent) -> Projection:
    """The projection of these topics. Undeclared ones are left out, so that nobody can fill a state with them."""
    topics = frozenset(consent.topics) | {""}

    def fold(state: State, recorded: Recorded) -> State | None:
        statement = statement_of(recorded.event)
        if statement is None or statement.topic not in topics:
            return None
        mark = [recorded.event.occurred_at, recorded.id]
        words = state.setdefault(statement.topic, [{}, {}])
        if statement.kind == "unsubscribed":
            left = words[0].setdefault(recorded.thread, [None, None])
            left[statement.imported] = _newer(left[statement.imported], mark)
            return state
        marks = words[1].setdefault(statement.address or f"{_THREAD}{recorded.thread}", [None, None, None, None])
        first = 2 if statement.imported else 0
        if statement.kind == "confirmed":
            marks[first] = _newer(marks[first], mark)
        marks[first + 1] = _newer(marks[first + 1], mark)
        keep_smallest(words[1], ADDRESSES_MAX)
        return state

    return Projection(
        name="consent",
        version=3,
        handles=WORDS,
        empty=dict,
        fold=fold,
        view=_viewed(consent),
        depends=Depends(parts=Parts(_LEFT | {"topics": Parts(dict.fromkeys(consent.topics, _TOPIC))})),
        index=Index(event_rows=statement_rows),
        faster=Faster(merge=_merge),
        fingerprint=consent.fingerprint,
    )


_LEFT = values("unsubscribed_at", "closed_at")
_SUBSCRIBED = Parts(values("confirmed_at", "subscribed_at", "imported_confirmed_at", "imported_at", "after"))
_TOPIC = Parts(
    _LEFT
    | values("status", "subscribed", "default", "double_opt_in")
    | {"addresses": Parts(named="", inside=_SUBSCRIBED)}
)


def _newer(first: Mark | None, second: Mark | None) -> Mark | None:
    return newest(first, second) if first is not None and second is not None else first or second


def _merge(first: State, second: State) -> State:
    return merge_entries(first, second, _merge_words)


def _merge_words(first: Words, second: Words) -> Words:
    left = merge_entries(first[0], second[0], _merge_marks)
    return [left, keep_smallest(merge_entries(first[1], second[1], _merge_marks), ADDRESSES_MAX)]


def _merge_marks(first: list[Mark | None], second: list[Mark | None]) -> list[Mark | None]:
    return list(map(_newer, first, second))


def _viewed(consent: Consent) -> Callable[[State, int, list[Recorded]], dict[str, Any]]:
    def view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
        every = _left(state.get("", _NOTHING)[0])
        shown = {name: _shown_topic(topic, state.get(name, _NOTHING), every) for name, topic in consent.topics.items()}
        return {**_latest(every), "topics": shown}

    return view


Left = dict[str, tuple[str, str]]
"""Thread -> when somebody unsubscribed last, and when they did so themselves."""
_NOTHING: Words = [{}, {}]


def _left(marks: dict[str, list[Mark | None]]) -> Left:
    return {thread: (max(_time(own), _time(imported)), _time(own)) for thread, (own, imported) in marks.items()}


def _later(first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
    return max(first[0], second[0]), max(first[1], second[1])


def _latest(left: Left) -> dict[str, str]:
    return {
        "unsubscribed_at": max((at for at, _ in left.values()), default=""),
        "closed_at": max((own for _, own in left.values()), default=""),
    }


def _shown_topic(topic: Topic, words: Words, every: Left) -> dict[str, Any]:
    left = merge_entries(_left(words[0]), every, _later)
    addresses: dict[str, dict[str, str]] = {}
    for place, marks in sorted(words[1].items()):
        thread = place.removeprefix(_THREAD) if place.startswith(_THREAD) else ""
        if not thread:
            addresses[place] = _subscribed(marks)
        elif not left.keys() - {thread}:
            # Without an address it is of whoever said it: what another part of the person has closed stays closed.
            entry = {**_subscribed(marks), "after": left.get(thread, ("", ""))[0]}
            before = addresses.get("")
            addresses[""] = entry if before is None else {name: max(entry[name], before[name]) for name in entry}
    latest = _latest(left)
    statements = Statements(latest["unsubscribed_at"], closed=latest["closed_at"])
    for entry in addresses.values():
        statements = statements.newest(subscriptions_in(entry))
    standing = status_of(topic, statements)
    return {
        "status": standing,
        "subscribed": standing in GETS_MAIL,
        "default": topic.default,
        "double_opt_in": bool(topic.confirm),
        **latest,
        "addresses": addresses,
    }


def _subscribed(marks: list[Mark | None]) -> dict[str, str]:
    names = ("confirmed_at", "subscribed_at", "imported_confirmed_at", "imported_at")
    return {name: _time(mark) for name, mark in zip(names, marks, strict=True)}


def _time(mark: Mark | None) -> str:
    return "" if mark is None else format_time(min(max(mark[0], EARLIEST), LATEST))


# --- suppression --------------------------------------------------------------------------------


def _suppress(state: dict[str, Mark], recorded: Recorded) -> dict[str, Mark] | None:
    verdict = suppressed_of(recorded.event)
    if verdict is None:
        return None
    # As in the rows: of one instant, suppressing counts.
    mark = [recorded.event.occurred_at, not verdict.lifted, recorded.id, verdict.reason]
    known = state.get(verdict.address)
    if known is not None and known >= mark:
        return None
    state[verdict.address] = mark
    return keep_smallest(state, ADDRESSES_MAX)


def _merge_suppression(first: dict[str, Mark], second: dict[str, Mark]) -> dict[str, Mark]:
    return keep_smallest(merge_entries(first, second, max), ADDRESSES_MAX)


def _suppression_view(state: dict[str, Mark], now: int, edges: list[Recorded]) -> dict[str, Any]:
    addresses = {
        address: {"reason": reason, "at": _time([at])}
        for address, (at, holds, _, reason) in sorted(state.items())
        if holds
    }
    return {"suppressed": bool(addresses), "addresses": addresses}


_SUPPRESSED = Parts(values("suppressed") | {"addresses": Parts(named="", inside=Parts(values("reason", "at")))})
SUPPRESSION_PROJECTION = Projection(
    name="suppression",
    version=1,
    handles=SUPPRESSION,
    empty=dict,
    fold=_suppress,
    view=_suppression_view,
    depends=Depends(parts=_SUPPRESSED),
    index=Index(event_rows=suppression_rows),
    faster=Faster(merge=_merge_suppression),
)
"""For views, rules and journeys. What decides whether an address gets mail are the rows, which reach across people."""
