"""The projection ``campaigns``: what became of each campaign that was sent to the person."""

from __future__ import annotations

import hashlib
from typing import Any

from threadline.kernel.event import Recorded
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.projection import Faster, Projection
from threadline.kernel.time import format_time

CAMPAIGN_DELIVERED = "campaign_delivered"
CAMPAIGN_ENGAGED = "campaign_engaged"
CAMPAIGN_IGNORED = "campaign_ignored"

CAMPAIGNS_MAX = 2_000
"""Campaigns known for one person: those with the smallest hashes, so that the cap does not depend on any order."""
CAMPAIGN_ID_LENGTH_MAX = 128

_PLACES = {CAMPAIGN_DELIVERED: 0, CAMPAIGN_ENGAGED: 1, CAMPAIGN_IGNORED: 2}

State = dict[str, list[int | None]]
"""Campaign id -> first time delivered, engaged with, ignored; None for what has not happened."""


def campaign_of(properties: dict[str, Any]) -> str | None:
    """The id of the campaign that an event is about, as text; None if it names none that can be kept."""
    value = properties.get("campaign_id")
    if type(value) is int:
        value = str(value)
    return value if type(value) is str and 0 < len(value) <= CAMPAIGN_ID_LENGTH_MAX else None


def _fold(state: State, recorded: Recorded) -> State | None:
    place = _PLACES.get(recorded.event.type)
    campaign = campaign_of(recorded.event.properties)
    if place is None or campaign is None:
        return None
    at = recorded.event.occurred_at
    times = state.get(campaign)
    if times is None:
        times = state[campaign] = [None, None, None]
        if len(state) > CAMPAIGNS_MAX:
            # Whatever is left out here has 2,000 smaller hashes before it and can never come back.
            del state[max(state, key=_hash)]
    known = times[place]
    if known is not None and known <= at:
        return None
    times[place] = at
    return state


def _merge(one: State, other: State) -> State:
    return keep_smallest(merge_entries(one, other, _first_times), CAMPAIGNS_MAX, _hash)


def _first_times(one: list[int | None], other: list[int | None]) -> list[int | None]:
    return [b if a is None else a if b is None else min(a, b) for a, b in zip(one, other, strict=True)]


def _hash(campaign: str) -> bytes:
    return hashlib.blake2b(campaign.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _view(state: State, now: int, events: list[Recorded]) -> dict[str, dict[str, str | None]]:
    shown = {}
    for campaign in sorted(state):
        delivered, engaged, ignored = state[campaign]
        shown[campaign] = {
            "delivered_at": _told(delivered, now),
            "engaged_at": _told(engaged, now),
            "ignored_at": _told(ignored, now),
        }
    return shown


def _told(at: int | None, now: int) -> str | None:
    return None if at is None or at >= now else format_time(at)


def campaigns_projection() -> Projection:
    """The projection. It commutes: of each kind of event it keeps the earliest time."""
    return Projection(
        name="campaigns",
        version=1,
        handles=frozenset(_PLACES),
        empty=dict,
        fold=_fold,
        view=_view,
        faster=Faster(merge=_merge),
    )
