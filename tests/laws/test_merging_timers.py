"""Law: timers go with their people; what a merge has moved or cancelled is there again once it is undone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import event
from threadline.capabilities.profile.features.policy import TIMERS_MAX
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY
from threadline.testing import scenarios

A, B = "anonymous_id:a", "anonymous_id:b"


class Campaigns:
    """An engine with a clock to move and a dispatcher that fires what is due."""

    def __init__(self) -> None:
        self.now = scenarios.NOW
        self.on = staging.engine(clock=lambda: self.now)
        self.dispatcher = Dispatcher(self.on, {}, "test")

    def happens(self, type: str, who: str, key: str, campaign: str = "spring", at: int | None = None) -> None:
        properties = {"campaign_id": campaign, "action": "open"}
        told = event(type, {"anonymous_id": who}, key, self.now if at is None else at, properties=properties)
        assert staging.statuses(self.on.recorder.record([told])) == ["accepted"]

    def fire(self) -> None:
        while self.dispatcher.run_once():
            pass

    def ignored(self, ref: str) -> int:
        self.fire()
        return len(self.dates(ref))

    def dates(self, ref: str) -> list[tuple[str, int]]:
        """The campaigns that the person has ignored, each with the instant from which it counts."""
        found = self.on.reader.events(
            self.on.reader.person("default", ref), types=frozenset({"campaign_ignored"}), limit=500
        )
        return sorted((each.event.properties["campaign_id"], each.event.occurred_at) for each in found)

    def known(self, ref: str) -> dict[str, list[int | None]]:
        """When each campaign was first delivered, engaged with and ignored."""
        state = self.on.reader.person("default", ref).states[self.on.catalogue.index["campaigns"]]
        return {campaign: times for _, campaign, *times in state}

    def after(self, days: float) -> None:
        self.now += int(days * DAY)

    def merge(self) -> None:
        self.on.identity.merge("default", A, B, request=f"m{self.now}")

    def unmerge(self) -> None:
        person = self.on.reader.person("default", A)
        merge = self.on.reader.events(person, types=frozenset({MERGED}), reverse=True, limit=1)[0]
        self.on.identity.unmerge("default", merge.id, request=f"u{self.now}")


def two_with_a_campaign() -> Campaigns:
    world = Campaigns()
    world.happens("campaign_delivered", "a", "d1")
    world.after(1)
    world.happens("campaign_delivered", "b", "d2")
    return world


def test_a_campaign_ignored_by_a_merged_person_is_ignored_once() -> None:
    world = two_with_a_campaign()
    world.merge()
    world.after(10)
    assert world.ignored(A) == 1
    assert world.on.reader.person("default", A).timers == {}
    staging.assert_refold_changes_nothing(world.on)


def test_a_campaign_that_two_ignored_before_they_were_joined_counts_once() -> None:
    world = two_with_a_campaign()
    world.after(10)
    assert (world.ignored(A), world.ignored(B)) == (1, 1)
    world.merge()
    assert world.ignored(A) == 2
    person = world.on.reader.person("default", A)
    assert world.on.reader.views(person, world.now, names=["features"])["features"]["campaign_ignored"]["value"] == 1


def test_engagement_of_the_one_counts_for_both() -> None:
    world = two_with_a_campaign()
    world.merge()
    world.happens("campaign_engaged", "b", "e")
    assert world.on.reader.person("default", A).timers == {}
    world.after(10)
    assert world.ignored(A) == 0


def test_timers_are_undone_with_the_merge() -> None:
    world = two_with_a_campaign()
    world.merge()
    world.unmerge()
    world.happens("campaign_engaged", "b", "e")
    world.after(10)
    assert (world.ignored(A), world.ignored(B)) == (1, 0)


def test_timers_that_fire_late_on_a_merged_person_date_a_campaign_by_its_first_delivery_to_either() -> None:
    world = Campaigns()
    for who in ("b", "a"):
        world.happens("campaign_delivered", who, who, "summer")
        world.now += 10
    first = scenarios.NOW + 7 * DAY
    world.merge()
    world.after(8)
    world.fire()
    world.unmerge()
    world.fire()
    world.now += 1
    world.fire()
    # The timer of the second delivery fires first, because the shards of timers are seen to one after the other.
    assert world.dates(A) == [("summer", first)]
    assert world.dates(B) == [("summer", first)]


@pytest.mark.parametrize("type", ["campaign_delivered", "campaign_engaged"])
def test_what_an_event_of_the_other_did_to_a_timer_is_undone_with_the_merge(type: str) -> None:
    world = Campaigns()
    began = world.now
    world.happens("campaign_delivered", "a", "d1")
    world.happens("page", "b", "p")
    world.after(1)
    world.merge()
    # The delivery is told late, so that it moves the timer; the engagement cancels it.
    world.happens(type, "b", "x", at=began - DAY)
    world.after(1)
    world.unmerge()
    world.after(30)
    assert world.ignored(A) == 1
    assert world.dates(A) == [("spring", began + 7 * DAY)]


def test_all_campaigns_that_are_waited_for_get_their_timers_back() -> None:
    campaigns = [f"c{number:02d}" for number in range(3 * TIMERS_MAX + 1)]
    world = Campaigns()
    began = world.now
    world.happens("page", "b", "p")
    for campaign in campaigns:
        world.happens("campaign_delivered", "a", f"d {campaign}", campaign)
    world.merge()
    for campaign in campaigns:
        world.happens("campaign_engaged", "b", f"e {campaign}", campaign)
    assert world.on.reader.person("default", A).timers == {}
    world.unmerge()
    while any("/after:" in name for name in world.on.reader.person("default", A).timers):
        world.now += 10
        world.fire()
    assert sorted(set(world.on.reader.person("default", A).timers.values())) == [began + 7 * DAY]
    world.after(8)
    world.fire()
    assert world.dates(A) == [(campaign, began + 7 * DAY) for campaign in campaigns]


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(["campaign_delivered", "campaign_delivered", "campaign_engaged", "merge", "unmerge"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["spring", "summer"]),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=10,
)


def played(world: Campaigns, script: list[tuple[str, str, str, int, bool]], joining: bool) -> bool:
    """Whether the two are one person in the end; without ``joining`` they never are."""
    merged = False
    for who in ("a", "b"):
        world.happens("page", who, f"first {who}", at=scenarios.NOW - 9 * DAY)
    for number, (type, who, campaign, days, late) in enumerate(script):
        world.now += days * DAY + 10
        world.fire()
        if type not in ("merge", "unmerge"):
            world.happens(type, who, f"k{number}", campaign, world.now - DAY if late else None)
        elif joining and merged == (type == "unmerge"):
            getattr(world, type)()
            merged = not merged
    return merged


@given(HAPPENINGS)
def test_who_was_merged_and_parted_again_ignores_what_they_would_have_ignored(
    script: list[tuple[str, str, str, int, bool]],
) -> None:
    together, never = Campaigns(), Campaigns()
    if played(together, script, joining=True):
        together.unmerge()
    played(never, script, joining=False)
    for world in (together, never):
        world.after(30)
        world.fire()
    either = {*never.dates(A), *never.dates(B)}
    for ref in (A, B):
        engaged = {campaign for campaign, times in never.known(ref).items() if times[1] is not None}
        found = set(together.dates(ref))
        ignored, expected = {campaign for campaign, _ in found}, {campaign for campaign, _ in never.dates(ref)}
        assert ignored - engaged == expected - engaged
        # While they were one, one event told it for both, by the first delivery to either; engagement since then is
        # enough for the other.
        assert ignored <= expected
        assert found <= either


@given(HAPPENINGS)
def test_whoever_is_merged_waits_for_what_either_waited_for(script: list[tuple[str, str, str, int, bool]]) -> None:
    world = Campaigns()
    if not played(world, script, joining=True):
        world.merge()
    world.after(30)
    world.fire()
    waiting = [
        campaign
        for campaign, (delivered_at, engaged_at, ignored_at) in world.known(A).items()
        if delivered_at is not None and engaged_at is None and ignored_at is None
    ]
    assert (waiting, world.on.reader.person("default", A).timers) == ([], {})
