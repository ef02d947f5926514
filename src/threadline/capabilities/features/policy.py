"""The policy ``campaign_ignored``: a campaign delivered some days ago without engagement becomes an event, once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.features.campaigns import (
    CAMPAIGN_DELIVERED,
    CAMPAIGN_ENGAGED,
    CAMPAIGN_IGNORED,
    campaign_of,
)
from threadline.kernel.event import Recorded
from threadline.kernel.policy import TIMER_FIRED, CancelTimer, Emit, Known, Policy, Timer, Wish
from threadline.kernel.time import DAY

HISTORY_SETTLES = DAY
"""How long back-filled deliveries wait: the engagement may stand further down in the same import."""


def ignored_policy(ignored_after: int = 7 * DAY) -> Policy:
    """The policy with this delay in microseconds. It needs the projection ``campaigns``.

    The projection says what is known whichever event came first, so each of these ends well: engagement that arrives
    before the delivery, a delivery told twice (the delay runs from the earliest), a timer that fires twice.
    """
    return Policy(
        name=CAMPAIGN_IGNORED,
        handles=frozenset({CAMPAIGN_DELIVERED, CAMPAIGN_ENGAGED, TIMER_FIRED}),
        react=partial(_react, ignored_after),
    )


def _react(ignored_after: int, recorded: Recorded, known: Known) -> Sequence[Wish]:
    event = recorded.event
    fired = event.type == TIMER_FIRED
    campaign = campaign_of(event.properties.get("data") or {} if fired else event.properties)
    times = known.get("campaigns", {}).get(campaign) if campaign is not None else None
    if campaign is None or times is None:
        return ()
    delivered_at, engaged_at, ignored_at = times
    key = f"campaign:{campaign}"
    if engaged_at is not None:
        return (CancelTimer(key=key),) if event.type == CAMPAIGN_ENGAGED else ()
    if ignored_at is not None or delivered_at is None:
        return ()
    due_at = delivered_at + ignored_after
    if fired:
        return (Emit(type=CAMPAIGN_IGNORED, key=campaign, occurred_at=due_at, properties={"campaign_id": campaign}),)
    if event.historical:
        due_at = max(due_at, recorded.recorded_at + HISTORY_SETTLES)
    return (Timer(key=key, due_at=due_at, data={"campaign_id": campaign}),)
