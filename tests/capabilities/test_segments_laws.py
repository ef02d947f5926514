"""Law: at every instant the events say of each segment what its conditions say, by whatever way time and events go."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED
from threadline.capabilities.profile.segments.projection import SEGMENTS
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.limits import SEGMENTS_MAX
from threadline.kernel.time import DAY, HOUR, SECOND, format_time
from threadline.testing.auditor import SentEvent, audit
from threadline.testing.audits.segments import segments
from threadline.testing.projection_laws import LAWS, Law

DEFINITIONS = """
segments:
  recent: {when: {field: features.recency_days, less_than: 3}}
  lapsed: {when: {field: features.days_since_last_purchase, greater_than_or_equal: 30}}
  talkative: {when: {field: features.frequency_conversations_30d, greater_than_or_equal: 2}}
  strangers: {when: {not: {field: traits.plan, exists: true}}}
  never_bought: {when: {field: features.has_purchased, equals: false}}
  spenders:
    when:
      all:
        - {field: features.monetary_total, greater_than: "80"}
        - not: {field: traits.plan, equals: free}
  cherished:
    when:
      any:
        - {field: tags, contains: vip}
        - all:
            - {field: features.frequency_purchases_90d, greater_than: 1}
            - {field: features.engagement_score, greater_than: 30}
"""

DECLARED = yaml.safe_load(DEFINITIONS)["segments"]

Picture = dict[str, Any]

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes a second to live, so that shrinking one would take many minutes; the failure prints it as it is."""

CONDITIONS: dict[str, Callable[[Picture], bool]] = {
    "recent": lambda p: of(p, "recency_days", lambda days: days < 3),
    "lapsed": lambda p: of(p, "days_since_last_purchase", lambda days: days >= 30),
    "talkative": lambda p: of(p, "frequency_conversations_30d", lambda count: count >= 2),
    "strangers": lambda p: "plan" not in p["traits"],
    "never_bought": lambda p: of(p, "has_purchased", lambda bought: not bought),
    "spenders": lambda p: of(p, "monetary_total", lambda total: total > 80) and p["traits"].get("plan") != "free",
    "cherished": lambda p: (
        "vip" in p["tags"]
        or (
            of(p, "frequency_purchases_90d", lambda count: count > 1)
            and of(p, "engagement_score", lambda score: score > 30)
        )
    ),
}
"""The same segments by hand, asked of the auditor, which knows nothing of conditions."""


def of(picture: Picture, feature: str, test: Callable[[Any], bool]) -> bool:
    value = picture["features"][feature][0]
    return value is not None and test(value)


DRAWN = (
    ("purchase_completed", {"total": 45, "currency": "EUR"}),
    ("purchase_refunded", {"total": 45, "currency": "EUR"}),
    ("conversation_started", {"channel": "email"}),
    ("identify", {"plan": "free"}),
    ("identify", {"plan": "pro"}),
    ("tag_added", {"tag": "vip"}),
    ("tag_removed", {"tag": "vip"}),
    ("page", {}),
    ("campaign_delivered", {}),
)
GAPS = (1, SECOND, HOUR, DAY - 1, DAY, 3 * DAY, 3 * DAY + 1, 12 * DAY, 30 * DAY, 95 * DAY)


class Lived:
    """One person whose life is told as it happens, with a dispatcher that is never late."""

    def __init__(self, asked: Asked | None = None) -> None:
        self.asked = asked or Asked(definitions=DEFINITIONS)
        self.dispatcher = Dispatcher(self.asked.engine, {}, "test")
        self.told: list[SentEvent] = []

    def tell(self, type: str, properties: dict[str, Any], ago: int = 0, name: str = "u") -> None:
        at, key = self.asked.now - ago, str(len(self.told))
        event = Event(
            type=type, identifiers=(Identifier("user_id", name),), occurred_at=at, key=key, properties=properties
        )
        (receipt,) = self.asked.engine.recorder.record([event])
        assert receipt.status == "accepted", receipt
        # Whatever is told at an instant counts from the next one on.
        self.asked.now += 1
        self.told.append(
            {
                "workspace": "default",
                "source": "direct",
                "key": key,
                "type": type,
                "occurred_at": at,
                "context": {},
                "identifiers": [("user_id", name)],
                "properties": properties,
                "object_ref": "",
            }
        )

    def until(self, instant: int) -> int:
        """Let time go by, with a look right before and at every instant at which something may turn; counts timers."""
        fired = 0
        while (due := self.next_timer()) is not None and due <= instant:
            self.asked.now = max(due - 1, self.asked.now)
            self.check()
            self.asked.now = max(due, self.asked.now)
            self.dispatcher.run_once()
            fired += 1
            self.check()
        self.asked.now = instant
        self.check()
        return fired

    def next_timer(self) -> int | None:
        people = self.asked.engine.reader.all_people("default")
        return min((due for person in people for due in person.timers.values()), default=None)

    def check(self) -> None:
        """What the events say, what is computed at reading, and what the auditor says."""
        now = self.asked.now
        picture = next(iter(audit([each for each in self.told if each["occurred_at"] < now], now)), None)
        if picture is None:
            return
        truth = {name: test(picture) for name, test in CONDITIONS.items()}
        assert segments(picture, DECLARED) == truth
        person = self.asked.engine.reader.person("default", "user_id:u")
        by_events = self.asked.engine.reader.views(person, now + TICKS, names=("segments",))["segments"]
        assert {name: name in by_events for name in truth} == truth
        assert self.read() == truth

    def read(self, name: str = "u") -> dict[str, bool]:
        """Where somebody belongs at this very instant, as the operation computes it."""
        operation = self.asked.operations["segments_of"]
        context = Context(self.asked.engine, "default", self.asked.now)
        result = operation.run(context, operation.params(id=f"user_id:{name}"))
        return {each.segment: each.member for each in result.segments}


TICKS = 1_000
"""Two words on a segment are never said at one instant: the second of one instant is a microsecond later."""

lives = st.lists(
    st.tuples(st.sampled_from(DRAWN), st.sampled_from(GAPS), st.sampled_from((0, 0, 0, HOUR, 31 * DAY))),
    min_size=1,
    max_size=8,
)
ahead = st.lists(
    st.tuples(st.sampled_from(DRAWN), st.sampled_from(GAPS), st.sampled_from((0, 0, -HOUR, -7 * HOUR, -23 * HOUR))),
    min_size=2,
    max_size=8,
)
"""Lives of which some events are dated ahead of the clock."""


@pytest.mark.slow
@given(lives | ahead)
@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
def test_events_say_at_every_instant_what_the_conditions_say(life: list[Any]) -> None:
    lived = Lived()
    for (type, properties), gap, late in life:
        lived.tell(type, properties, ago=late)
        lived.check()
        fired = lived.until(lived.asked.now + gap)
        assert fired <= 40, "timers are for turns, not for every day that goes by"


def test_an_event_ahead_counts_from_its_own_time_where_a_later_one_that_says_the_same_was_known_before() -> None:
    lived = Lived()
    lived.tell("tag_added", {"tag": "vip"}, ago=-7 * HOUR)
    lived.asked.now += SECOND
    lived.tell("tag_added", {"tag": "vip"}, ago=-HOUR)
    lived.until(lived.asked.now + DAY)
    assert lived.read()["cherished"]


@pytest.mark.slow
@given(lives, st.sampled_from((HOUR, 5 * DAY, 200 * DAY)))
@settings(max_examples=8, deadline=None, phases=UNSHRUNK)
def test_a_dispatcher_that_comes_late_tells_the_same_times(life: list[Any], delay: int) -> None:
    """What time alone turned is told at the instant at which it turned, whenever that is noticed."""
    prompt, late = Lived(), Lived()
    for (type, properties), gap, ago in life:
        for lived in (prompt, late):
            lived.tell(type, properties, ago=ago)
        # Both hear the next event after the timers have been seen to, but one of them sees to them at the end only.
        prompt.until(prompt.asked.now + gap + delay)
        late.asked.now += gap + delay
        while late.dispatcher.run_once():
            pass
        late.asked.now = prompt.asked.now
        late.check()
    assert turns(prompt) == turns(late)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(DRAWN), st.sampled_from(GAPS), st.booleans()), min_size=2, max_size=8))
@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
def test_whenever_timers_are_seen_to_nothing_is_told_that_was_not_so(life: list[Any]) -> None:
    """Events come in between a timer's instant and its firing: each is judged, and the timer takes nothing back."""
    lived = Lived()
    for (type, properties), gap, awake in life:
        lived.tell(type, properties)
        lived.asked.now += gap
        while awake and lived.dispatcher.run_once():
            pass
    while lived.dispatcher.run_once():
        pass
    lived.check()
    for name, type, at in turns(lived):
        [picture] = audit([each for each in lived.told if each["occurred_at"] <= at], at + 1)
        assert (type == SEGMENT_ENTERED) == CONDITIONS[name](picture), (name, at)


def turns(lived: Lived) -> list[tuple[str, str, int]]:
    engine = lived.asked.engine
    person = engine.reader.person("default", "user_id:u")
    types = frozenset({SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED})
    return sorted(
        (r.event.properties["segment"], r.event.type, r.event.occurred_at)
        for r in engine.reader.events(person, types=types, limit=1_000)
    )


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(DRAWN), st.booleans()), max_size=10))
@settings(max_examples=15, deadline=None, phases=UNSHRUNK)
def test_merging_and_unmerging_leave_everybody_where_their_own_events_put_them(told: list[Any]) -> None:
    apart, joined = Lived(), Lived()
    for lived in (apart, joined):
        for (type, properties), second in told:
            lived.tell(type, properties, name="v" if second else "u")
            lived.asked.now += DAY
        for name in "uv":
            lived.tell("page", {}, name=name)
    engine = joined.asked.engine
    engine.identity.merge("default", "user_id:u", "user_id:v", request="m", force=True)
    joined.asked.now += 1
    whole = Lived()
    for (type, properties), _ in told:
        whole.tell(type, properties)
        whole.asked.now += DAY
    whole.tell("page", {})
    assert joined.read() == by_events(joined) == whole.read()
    (merged,) = engine.reader.events(engine.reader.person("default", "user_id:u"), types=frozenset({MERGED}))
    engine.identity.unmerge("default", merged.id, request="s")
    joined.asked.now += 1
    for name in "uv":
        assert joined.read(name) == by_events(joined, name) == apart.read(name)
    for lived in (apart, joined):
        lived.asked.now += 4 * DAY
        while lived.dispatcher.run_once():
            pass
    for name in "uv":
        assert joined.read(name) == by_events(joined, name) == apart.read(name)


def by_events(lived: Lived, name: str = "u") -> dict[str, bool]:
    engine = lived.asked.engine
    view = engine.reader.views(
        engine.reader.person("default", f"user_id:{name}"), lived.asked.now + TICKS, names=("segments",)
    )
    return {segment: segment in view["segments"] for segment in CONDITIONS}


# --- the projection ---------------------------------------------------------------------------

words = st.builds(
    lambda number, type, at, properties, source: Recorded(
        Event(
            type=type,
            identifiers=(Identifier("user_id", "u"),),
            occurred_at=at,
            key=str(number),
            properties=properties,
            source_type=source,
        ),
        f"{number:032x}",
        "t" * 32,
        number,
        at,
    ),
    st.integers(1, 10**9),
    st.sampled_from((SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED, "page")),
    st.integers(0, 12) | st.sampled_from((-62_135_596_800_000_000, 253_402_300_799_999_999)),
    st.fixed_dictionaries(
        {"segment": st.sampled_from(("a", "b", "b", "A", "", None, 7, ["a"], "a/b", "x" * 65))},
        optional={"version": st.sampled_from(("1", "2", "3", None, 4, {"a": 1}, "v" * 33))},
    )
    | st.just({}),
    st.sampled_from(("internal", "internal", "internal", "external")),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@given(history=st.lists(words, max_size=25, unique_by=lambda each: each.id), random=st.randoms(use_true_random=False))
def test_projection_laws(law: Law, history: list[Recorded], random: Random) -> None:
    law(SEGMENTS, history, random)


@given(st.lists(st.tuples(st.sampled_from((SEGMENT_ENTERED, SEGMENT_LEFT)), st.integers(0, 40)), max_size=4))
def test_who_belongs_is_who_entered_after_leaving_last(told: list[tuple[str, int]]) -> None:
    state = SEGMENTS.empty()
    for number, (type, at) in enumerate(told):
        event = Event(
            type=type,
            identifiers=(),
            occurred_at=at,
            key=str(number),
            source_type="internal",
            properties={"segment": "a", "version": "1"},
        )
        state = SEGMENTS.after(state, Recorded(event, f"{number:032x}", "t", number, at))
    left = max((at for type, at in told if type == SEGMENT_LEFT), default=-1)
    entered = [at for type, at in told if type == SEGMENT_ENTERED and at > left]
    view = SEGMENTS.view(state, 100, [])
    assert [word["since"] for word in view.values()] == ([format_time(min(entered))] if entered else [])
    assert len(list(SEGMENTS.index.rows(state, "default", "f" * 32))) == len(view)  # type: ignore[misc]


def test_a_state_stays_small_and_which_segments_it_knows_is_no_matter_of_order() -> None:
    told = []
    for number in range(1_000):
        event = Event(
            type=SEGMENT_ENTERED,
            identifiers=(),
            occurred_at=number,
            key=str(number),
            source_type="internal",
            properties={"segment": f"s{number:04}", "version": "1"},
        )
        told.append(Recorded(event, f"{number:032x}", "t", number, number))
    states = []
    for events in (told, told[::-1]):
        state = SEGMENTS.empty()
        for recorded in events:
            state = SEGMENTS.after(state, recorded)
        states.append(state)
    assert states[0] == states[1]
    assert len(states[0]) == 2 * SEGMENTS_MAX
