"""A campaign that nobody reacts to becomes one event, whatever came first and however often."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.capabilities.profile.features import campaigns, campaigns_projection, ignored_policy
from threadline.capabilities.profile.features.campaigns import CAMPAIGNS_MAX
from threadline.engine.recording.reactions import stays
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import TIMER_FIRED, CancelTimer, Emit, Timer
from threadline.kernel.time import DAY, HOUR, parse_time

T0 = parse_time("2026-03-02T10:00:00Z")
CAMPAIGNS = campaigns_projection()


class Thread:
    """A person's thread with a clock, as much of an engine as the policy meets: fold, react, timers that fire."""

    def __init__(self, delay: int = 7 * DAY) -> None:
        self.policy = ignored_policy(delay)
        self.state: Any = CAMPAIGNS.empty()
        self.timers: dict[str, Timer] = {}
        self.now = T0
        self.ignored: list[Emit] = []
        self.sequence = itertools.count(1)

    def add(self, kind: str, properties: dict[str, Any], at: int | None = None, historical: bool = False) -> None:
        number = next(self.sequence)
        event = Event(
            type=kind,
            identifiers=(),
            occurred_at=self.now if at is None else at,
            key=str(number),
            properties=properties,
            historical=historical,
        )
        recorded = Recorded(event, f"{number:032x}", "thread", number, self.now)
        if CAMPAIGNS.handles is not None and kind in CAMPAIGNS.handles:
            self.state = CAMPAIGNS.after(self.state, recorded)
        if kind in self.policy.handles:
            self.obey(self.policy.react(recorded, {"campaigns": self.state}))

    def obey(self, wishes: Sequence[Any]) -> None:
        for wish in wishes:
            if isinstance(wish, Timer):
                pending = self.timers.get(wish.key)
                if pending is None or not stays(wish, [pending.due_at]):
                    self.timers[wish.key] = wish
            elif isinstance(wish, CancelTimer):
                self.timers.pop(wish.key, None)
            else:
                self.ignored.append(wish)
                self.add(wish.type, wish.properties, wish.occurred_at)

    def wait(self, until: int) -> None:
        while due := sorted(
            (each for each in self.timers.values() if each.due_at <= until), key=lambda each: each.due_at
        ):
            timer = due[0]
            self.now = max(self.now, timer.due_at)
            del self.timers[timer.key]
            self.fire(timer)
        self.now = until

    def fire(self, timer: Timer) -> None:
        self.add(TIMER_FIRED, {"policy": self.policy.name, "key": timer.key, "data": timer.data})


def delivered(thread: Thread, campaign: object = "c1", at: int | None = None, **more: Any) -> None:
    thread.add("campaign_delivered", {"campaign_id": campaign}, at, **more)


def engaged(thread: Thread, campaign: object = "c1", at: int | None = None) -> None:
    thread.add("campaign_engaged", {"campaign_id": campaign, "action": "open"}, at)


def test_a_delivery_without_reaction_is_ignored_after_seven_days_exactly() -> None:
    thread = Thread()
    delivered(thread)
    thread.wait(T0 + 7 * DAY - 1)
    assert thread.ignored == []
    thread.wait(T0 + 7 * DAY)
    expected = Emit(type="campaign_ignored", key="c1", occurred_at=T0 + 7 * DAY, properties={"campaign_id": "c1"})
    assert thread.ignored == [expected]


def test_the_delay_can_be_set() -> None:
    thread = Thread(3 * DAY)
    delivered(thread)
    thread.wait(T0 + 3 * DAY)
    assert len(thread.ignored) == 1


def test_a_delay_that_is_declared_longer_holds_for_what_was_delivered_before() -> None:
    thread = Thread()
    delivered(thread)
    thread.policy = ignored_policy(14 * DAY)
    thread.wait(T0 + 14 * DAY - 1)
    assert thread.ignored == []
    thread.wait(T0 + 14 * DAY)
    assert [each.occurred_at for each in thread.ignored] == [T0 + 14 * DAY]


def test_engagement_in_time_cancels_the_timer() -> None:
    thread = Thread()
    delivered(thread)
    thread.wait(T0 + 6 * DAY)
    engaged(thread)
    assert thread.timers == {}
    delivered(thread)
    thread.wait(T0 + 60 * DAY)
    assert thread.ignored == []


def test_a_timer_that_fires_although_cancelled_does_nothing() -> None:
    thread = Thread()
    delivered(thread)
    timer = thread.timers["campaign:c1"]
    engaged(thread)
    thread.fire(timer)
    assert thread.ignored == []


def test_a_timer_that_fires_twice_emits_once() -> None:
    thread = Thread()
    delivered(thread)
    timer = thread.timers["campaign:c1"]
    thread.wait(T0 + 7 * DAY)
    thread.fire(timer)
    delivered(thread)
    thread.wait(T0 + 90 * DAY)
    assert len(thread.ignored) == 1


def test_the_delay_runs_from_the_earliest_delivery() -> None:
    thread = Thread()
    delivered(thread)
    thread.wait(T0 + DAY)
    delivered(thread)
    delivered(thread, at=T0 - DAY)
    assert [timer.due_at for timer in thread.timers.values()] == [T0 + 6 * DAY]
    thread.wait(T0 + 30 * DAY)
    assert [each.occurred_at for each in thread.ignored] == [T0 + 6 * DAY]


def test_imported_deliveries_wait_for_the_rest_of_the_import() -> None:
    thread = Thread()
    delivered(thread, "old", T0 - 300 * DAY, historical=True)
    delivered(thread, "seen", T0 - 300 * DAY, historical=True)
    thread.wait(T0 + HOUR)
    engaged(thread, "seen", T0 - 299 * DAY)
    thread.wait(T0 + 2 * DAY)
    assert [(each.key, each.occurred_at) for each in thread.ignored] == [("old", T0 - 293 * DAY)]


@pytest.mark.parametrize("campaign", [None, "", True, 1.5, ["c1"], "c" * 129])
def test_what_names_no_campaign_sets_no_timer(campaign: object) -> None:
    thread = Thread()
    delivered(thread, campaign)
    engaged(thread, campaign)
    assert (thread.timers, thread.state) == ({}, [])


def test_a_number_and_its_text_name_one_campaign() -> None:
    thread = Thread()
    delivered(thread, 7)
    engaged(thread, "7")
    assert thread.timers == {}


def test_a_timer_of_something_unknown_does_nothing() -> None:
    thread = Thread()
    for data in ({}, None, {"campaign_id": "never"}):
        thread.add(TIMER_FIRED, {"policy": "campaign_ignored", "key": "campaign:never", "data": data})
    assert thread.ignored == []


arrivals = st.lists(
    st.tuples(
        st.sampled_from(["campaign_delivered", "campaign_engaged", "campaign_ignored", "page"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, 20),
        st.integers(0, 4),
    ),
    max_size=12,
)


@given(arrivals)
def test_one_event_per_campaign_and_none_after_engagement(script: list[tuple[str, str, int, int]]) -> None:
    thread = Thread()
    for kind, campaign, day, pause in script:
        thread.wait(thread.now + pause * DAY)
        known_engaged = {
            name
            for _, name, delivered_at, engaged_at, _ in thread.state
            if engaged_at is not None and (delivered_at is None or engaged_at <= delivered_at + 7 * DAY)
        }
        before = len(thread.ignored)
        thread.add(kind, {"campaign_id": campaign}, T0 + day * DAY - 20 * DAY)
        assert not {each.key for each in thread.ignored[before:]} & known_engaged
    thread.wait(thread.now + 400 * DAY)
    keys = [each.key for each in thread.ignored]
    assert len(keys) == len(set(keys))
    for campaign in ("a", "b"):
        kinds = {kind for kind, name, _, _ in script if name == campaign}
        if "campaign_delivered" in kinds and not kinds & {"campaign_engaged", "campaign_ignored"}:
            assert campaign in keys
        if "campaign_delivered" not in kinds:
            assert campaign not in keys


@given(arrivals, st.randoms())
def test_the_projection_commutes(script: list[tuple[str, str, int, int]], random: Any) -> None:
    events = [
        Recorded(
            Event(type=kind, identifiers=(), occurred_at=T0 + day, key=str(n), properties={"campaign_id": campaign}),
            f"{n:032x}",
            "t",
            n,
            T0,
        )
        for n, (kind, campaign, day, _) in enumerate(script)
    ]
    shuffled = list(events)
    random.shuffle(shuffled)
    assert folded(events) == folded(shuffled)


def folded(events: list[Recorded]) -> Any:
    state = CAMPAIGNS.empty()
    for each in events:
        state = CAMPAIGNS.after(state, each)
    return state


def test_campaigns_are_bounded_in_any_order() -> None:
    events = [
        Recorded(
            Event(type=kind, identifiers=(), occurred_at=T0, key=f"{kind}{n}", properties={"campaign_id": n}),
            f"{n:032x}",
            "t",
            n,
            T0,
        )
        for kind in ("campaign_delivered", "campaign_engaged")
        for n in range(CAMPAIGNS_MAX + 30)
    ]
    state = folded(events)
    assert len(state) == CAMPAIGNS_MAX
    assert state == folded(events[::-1])


def test_a_campaign_beyond_the_bound_costs_one_hash_and_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed, hash_of = list[str](), campaigns._hash
    monkeypatch.setattr(campaigns, "_hash", lambda campaign: hashed.append(campaign) or hash_of(campaign))
    # Each of them drops another one, which is the most that somebody can ask for.
    ids = sorted(map(str, range(3 * CAMPAIGNS_MAX)), key=hash_of, reverse=True)
    state = CAMPAIGNS.empty()
    for number, id in enumerate(ids):
        event = Event(type="campaign_delivered", identifiers=(), occurred_at=T0, key=id, properties={"campaign_id": id})
        state = CAMPAIGNS.after(state, Recorded(event, f"{number:032x}", "t", number, T0))
    assert hashed == ids
    assert [campaign for _, campaign, *_ in state] == ids[: -CAMPAIGNS_MAX - 1 : -1]


def test_a_view_tells_what_became_of_each_campaign() -> None:
    thread = Thread()
    delivered(thread)
    thread.wait(T0 + 8 * DAY)
    assert CAMPAIGNS.view(thread.state, T0 + 8 * DAY, []) == {
        "c1": {
            "delivered_at": "2026-03-02T10:00:00.000000Z",
            "engaged_at": None,
            "ignored_at": "2026-03-09T10:00:00.000000Z",
        }
    }
