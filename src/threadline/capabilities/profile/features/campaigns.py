"""The projection ``campaigns``: what became of each campaign that was sent to the person."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from typing import Any

from threadline.kernel.event import Recorded
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.reading import Reading, Readings
from threadline.kernel.time import format_time
from threadline.kernel.view_parts import Parts, values

CAMPAIGN_DELIVERED = "campaign_delivered"
CAMPAIGN_ENGAGED = "campaign_engaged"
CAMPAIGN_IGNORED = "campaign_ignored"


CAMPAIGNS_MAX = 2_000
"""Campaigns known for one person: those with the smallest hashes, so that the cap does not depend on any order."""
CAMPAIGN_ID_LENGTH_MAX = 128

_DELIVERED = 2
_PLACES = {CAMPAIGN_DELIVERED: _DELIVERED, CAMPAIGN_ENGAGED: 3, CAMPAIGN_IGNORED: 4}

State = list[list[Any]]
"""[hash, campaign id, first time delivered, engaged with, ignored] of each campaign, in order; None for what has not
happened. The order is that of hashes, so that the one to drop is always the last."""

READ = Readings("campaigns", dict.fromkeys(_PLACES, (Reading(("campaign_id",), "label", CAMPAIGN_ID_LENGTH_MAX),)))


def campaign_of(properties: dict[str, Any]) -> str | None:
    """The id of the campaign that an event is about, as text; None if it names none that can be kept."""
    value = properties.get("campaign_id")
    if type(value) is int:
        value = str(value)
    return value if type(value) is str and 0 < len(value) <= CAMPAIGN_ID_LENGTH_MAX else None


def _fold(state: State, recorded: Recorded) -> State | None:
    column = _PLACES.get(recorded.event.type)
    campaign = campaign_of(recorded.event.properties)
    if column is None or campaign is None:
        return None
    at, key = recorded.event.occurred_at, [_hash(campaign), campaign]
    row = bisect_left(state, key)
    if row == len(state) or state[row][:_DELIVERED] != key:
        if row == CAMPAIGNS_MAX:
            # It has 2,000 smaller hashes before it. What is dropped for this reason can never come back.
            return None
        state.insert(row, [*key, None, None, None])
        del state[CAMPAIGNS_MAX:]
    known = state[row][column]
    if known is not None and known <= at:
        return None
    state[row][column] = at
    return state


def times_of(state: State, campaign: str) -> list[int | None] | None:
    """When a campaign was first delivered, engaged with and ignored; None if it is not known."""
    key = [_hash(campaign), campaign]
    row = bisect_left(state, key)
    return state[row][_DELIVERED:] if row < len(state) and state[row][:_DELIVERED] == key else None


def _merge(first: State, second: State) -> State:
    merged: State = []
    for known in sorted(first + second, key=lambda entry: entry[:_DELIVERED]):
        if merged and merged[-1][:_DELIVERED] == known[:_DELIVERED]:
            merged[-1][_DELIVERED:] = map(_earlier, merged[-1][_DELIVERED:], known[_DELIVERED:])
        else:
            merged.append(known)
    return merged[:CAMPAIGNS_MAX]


def _earlier(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else min(first, second)


def _hash(campaign: str) -> int:
    return int.from_bytes(hashlib.blake2b(campaign.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _view(state: State, now: int, events: list[Recorded]) -> dict[str, dict[str, str | None]]:
    return {
        campaign: {
            "delivered_at": _shown(delivered, now),
            "engaged_at": _shown(engaged, now),
            "ignored_at": _shown(ignored, now),
        }
        for campaign, delivered, engaged, ignored in sorted(known[1:] for known in state)
    }


def _shown(at: int | None, now: int) -> str | None:
    return None if at is None or at >= now else format_time(at)


def campaigns_projection() -> Projection:
    """The projection. It commutes: of each kind of event it keeps the earliest time."""
    return Projection(
        name="campaigns",
        version=2,
        handles=frozenset(_PLACES),
        empty=list,
        fold=_fold,
        view=_view,
        depends=Depends(parts=Parts(named="", inside=Parts(values("delivered_at", "engaged_at", "ignored_at")))),
        faster=Faster(merge=_merge),
    )
