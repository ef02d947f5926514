"""The projections ``consent`` and ``suppression``: what a person said about topics, and their suppressed addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.capabilities.consent.definition import Consent
from threadline.capabilities.consent.events import SUPPRESSION, WORDS, statement_of, suppressed_of
from threadline.capabilities.consent.rows import (
    Statements,
    statement_rows,
    suppression_rows,
)
from threadline.capabilities.consent.standing import GETS_MAIL, status_of
from threadline.kernel.event import Recorded
from threadline.kernel.merging import keep_smallest, merge_entries, newest
from threadline.kernel.projection import Faster, Index, Projection
from threadline.kernel.time import EARLIEST, LATEST, format_time

ADDRESSES_MAX = 50
"""Addresses of one person that are remembered by topic: those with the smallest names."""

Mark = list[Any]
"""[occurred_at, event id, …] of the newest word."""
Words = list[Any]
"""The newest mark of unsubscribing, with whatever address; and address -> the newest marks of having been confirmed
and of having been subscribed. None where there is none."""
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
        words = state.setdefault(statement.topic, [None, {}])
        if statement.kind == "unsubscribed":
            words[0] = _newer(words[0], mark)
            return state
        marks = words[1].setdefault(statement.address, [None, None])
        if statement.kind == "confirmed":
            marks[0] = _newer(marks[0], mark)
        marks[1] = _newer(marks[1], mark)
        keep_smallest(words[1], ADDRESSES_MAX)
        return state

    return Projection(
        name="consent",
        version=1,
        handles=WORDS,
        empty=dict,
        fold=fold,
        view=_viewed(consent),
        index=Index(event_rows=statement_rows),
        faster=Faster(merge=_merge),
        fingerprint=consent.fingerprint,
    )


def _newer(first: Mark | None, second: Mark | None) -> Mark | None:
    return newest(first, second) if first is not None and second is not None else first or second


def _merge(first: State, second: State) -> State:
    return merge_entries(first, second, _merge_words)


def _merge_words(first: Words, second: Words) -> Words:
    merged = merge_entries(first[1], second[1], lambda a, b: [_newer(a[0], b[0]), _newer(a[1], b[1])])
    return [_newer(first[0], second[0]), keep_smallest(merged, ADDRESSES_MAX)]


def _viewed(consent: Consent) -> Callable[[State, int, list[Recorded]], dict[str, Any]]:
    def view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
        every = _time(state[""][0]) if "" in state else ""
        topics = {}
        for name, topic in consent.topics.items():
            unsubscribed, marks = state.get(name, (None, {}))
            addresses = {
                address: {"confirmed_at": _time(confirmed), "subscribed_at": _time(subscribed)}
                for address, (confirmed, subscribed) in sorted(marks.items())
            }
            unsubscribed_at = max(_time(unsubscribed), every)
            best = Statements(unsubscribed_at)
            for entry in addresses.values():
                best = best.newest(Statements("", entry["confirmed_at"], entry["subscribed_at"]))
            standing = status_of(topic, best)
            topics[name] = {
                "status": standing,
                "subscribed": standing in GETS_MAIL,
                "default": topic.default,
                "double_opt_in": bool(topic.confirm),
                "unsubscribed_at": unsubscribed_at,
                "addresses": addresses,
            }
        return {"unsubscribed_at": every, "topics": topics}

    return view


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


SUPPRESSION_PROJECTION = Projection(
    name="suppression",
    version=1,
    handles=SUPPRESSION,
    empty=dict,
    fold=_suppress,
    view=_suppression_view,
    index=Index(event_rows=suppression_rows),
    faster=Faster(merge=_merge_suppression),
)
"""For views, rules and journeys. What decides whether an address gets mail are the rows, which reach across people."""
