"""The policy ``campaign_ignored``: a campaign delivered some days ago without engagement becomes an event, once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice

from threadline.capabilities.profile.features.campaigns import (
    CAMPAIGN_DELIVERED,
    CAMPAIGN_ENGAGED,
    CAMPAIGN_IGNORED,
    State,
    campaign_of,
    times_of,
)
from threadline.kernel.event import Recorded
from threadline.kernel.identity import SPLIT
from threadline.kernel.policy import (
    TIMER_FIRED,
    CancelTimer,
    Emit,
    Policy,
    PolicyView,
    Read,
    Timer,
    TimerSentence,
    Wish,
)
from threadline.kernel.time import DAY

HISTORY_SETTLES = DAY
"""How long back-filled deliveries wait: the engagement may stand further down in the same import."""

TIMERS_MAX = 8
"""Timers of one reaction to a split. Whoever waits for more campaigns gets the next ones by a timer of its own."""


def ignored_policy(ignored_after: int = 7 * DAY) -> Policy:
    """The policy with this delay in microseconds. It needs the projection ``campaigns``.

    The projection says what is known whichever event came first, so each of these ends well: engagement that arrives
    before the delivery, a delivery told twice (the delay runs from the earliest), a timer that fires twice, one that
    was set for a delay that has been declared longer since. A merge brings the timers of both sides along; a split may
    leave one side without those that the other side's events have moved or cancelled, and sets them anew.
    """
    return Policy(
        name=CAMPAIGN_IGNORED,
        handles=frozenset({CAMPAIGN_DELIVERED, CAMPAIGN_ENGAGED, TIMER_FIRED, SPLIT}),
        react=partial(_react, ignored_after),
        timers=(
            TimerSentence("Will have ignored the campaign {id}", "(?s:campaign:(?P<id>.+))"),
            TimerSentence("May have ignored a campaign", "after:"),
        ),
        emits=frozenset({CAMPAIGN_IGNORED}),
        sends=frozenset(),
        reads=(Read("campaigns"),),
    )


def _react(ignored_after: int, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    fired = event.type == TIMER_FIRED
    data = (event.properties.get("data") or {}) if fired else event.properties
    campaigns: State = known.get("campaigns", [])
    if event.type == SPLIT:
        return _set_anew(campaigns, ignored_after, recorded, after="")
    if fired and "after" in data:
        return _set_anew(campaigns, ignored_after, recorded, after=data["after"])
    campaign = campaign_of(data)
    times = times_of(campaigns, campaign) if campaign is not None else None
    if campaign is None or times is None:
        return ()
    delivered_at, engaged_at, ignored_at = times
    due_at = None if delivered_at is None else delivered_at + ignored_after
    # Whoever engages later than that has ignored it until then: without this, a read of the past would depend on
    # whether the timer ran before the engagement was known, which after an import it never does.
    if engaged_at is not None and (due_at is None or engaged_at <= due_at):
        return (CancelTimer(key=_key(campaign)),) if event.type == CAMPAIGN_ENGAGED else ()
    if ignored_at is not None or due_at is None:
        return ()
    if fired and due_at <= recorded.recorded_at:
        return (Emit(type=CAMPAIGN_IGNORED, key=campaign, occurred_at=due_at, properties={"campaign_id": campaign}),)
    if event.historical:
        due_at = max(due_at, recorded.recorded_at + HISTORY_SETTLES)
    # What is imported moves a timer that is due before the import has settled; otherwise an earlier one stays.
    return (_timer(campaign, due_at, unless_earlier=not event.historical),)


def _key(campaign: str) -> str:
    return f"campaign:{campaign}"


def _timer(campaign: str, due_at: int, **unless: bool) -> Timer:
    return Timer(key=_key(campaign), due_at=due_at, data={"campaign_id": campaign}, **unless)


def _set_anew(campaigns: State, ignored_after: int, recorded: Recorded, after: str) -> Sequence[Wish]:
    """Timers for the campaigns that are waited for, in the order of their ids, from the one behind ``after`` on.

    A timer that is there stays, as it may wait for an import to settle. One that is overdue fires right after the
    event: at its own instant it may have fired already, when there was nothing to say.
    """
    at_once = recorded.recorded_at + 1
    waited_for = (
        (campaign, delivered_at)
        for campaign, delivered_at, engaged_at, ignored_at in sorted(known[1:] for known in campaigns)
        if campaign > after
        and delivered_at is not None
        and (engaged_at is None or engaged_at > delivered_at + ignored_after)
        and ignored_at is None
    )
    chosen = list(islice(waited_for, TIMERS_MAX))
    wishes = [
        _timer(campaign, max(delivered_at + ignored_after, at_once), unless_pending=True)
        for campaign, delivered_at in chosen
    ]
    if next(waited_for, None) is not None:
        last = chosen[-1][0]
        wishes.append(Timer(key=f"after:{last}", due_at=at_once, data={"after": last}))
    return wishes
