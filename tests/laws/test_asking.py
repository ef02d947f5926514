"""Law: a policy is asked where an event has touched what it reads, and asking it elsewhere would change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import POLICY_FAILED, Emit, Policy, PolicyView, Read, Wish
from threadline.kernel.projection import Projection
from threadline.kernel.time import DAY, HOUR, MINUTE
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.policy_laws import asked_always

DEFINITIONS = """
streaks:
  daily: {milestones: [2, 3]}
  frozen: {milestones: [2], freezes: {start: 1, max: 2}}
  weekly: {cadence: week, milestones: [1]}
  bought: {events: purchase_completed, milestones: [1, 2]}
segments:
  strangers: {when: {not: {field: traits.plan, exists: true}}}
  regulars: {when: {field: streaks.daily.current, greater_than_or_equal: 2}}
  spenders: {when: {field: features.monetary_total, greater_than: "20"}}
  rich: {when: {field: points.balance, greater_than: 10}}
  cherished: {when: {field: tags, contains: vip}}
leaderboards:
  points: {score: points.earned, per: plan}
  streak: {score: streaks.daily.current, per: plan}
  weeks: {score: streaks.weekly.longest}
  spenders: {score: features.monetary_total, segments: [rich]}
"""
VALUES = discover(definitions=Definitions([("threadline.yaml", DEFINITIONS)]))
RULES = rules(Definitions())
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes a second to live, so that shrinking one would take many minutes."""
GAPS = (0, 1, MINUTE, HOUR, 8 * HOUR, DAY, 3 * DAY)
AHEAD = (HOUR, 20 * HOUR)


class Life:
    """An engine whose clock is moved by hand, and a dispatcher that is never late."""

    def __init__(self, values: Iterable[object] | None = None) -> None:
        self.now = scenarios.NOW - 60 * DAY
        watched = asked_always(VALUES, self.is_due) if values is None else values
        self.on = Engine(MemoryStore(), Catalogue(watched, RULES), lambda: self.now)
        self._dispatcher = Dispatcher(self.on, {}, "test")

    def is_due(self, recorded: Recorded) -> bool:
        """Whether a timer of the person is due by then, as far as is committed."""
        until = max(self.now, recorded.event.occurred_at) + 1
        people = (each for each in self.on.reader.all_people("default") if recorded.thread in each.heads)
        return any(at <= until for person in people for at in person.timers.values())

    def until(self, instant: int) -> None:
        """Let time go by, and every timer fire when it is due."""
        while (
            due := min((at for p in self.on.reader.all_people("default") for at in p.timers.values()), default=None)
        ) and (due <= instant):
            self.now = max(self.now, due)
            self._dispatcher.run_once()
        self.now = max(self.now, instant)


def told_by(random: Random, count: int) -> list[tuple[int, list[Event]]]:
    """Calls with gaps between them; of the events some are late, some ahead of the clock, some of one instant."""
    now, calls = scenarios.NOW - 60 * DAY, []
    for number, event in enumerate(scenarios.history(random, 2, count)):
        if not number or random.random() < 0.7:
            gap = random.choice(GAPS)
            now += gap
            calls.append((gap, []))
        ago = random.choice((0, 0, 0, 1, HOUR, DAY, 2 * DAY, 9 * DAY, -random.choice(AHEAD)))
        calls[-1][1].append(msgspec.structs.replace(event, occurred_at=now - ago, key=f"{number}"))
    return calls


def live(random: Random, count: int) -> None:
    life = Life()
    for gap, call in told_by(random, count):
        life.until(life.now + gap)
        refused = [
            receipt for receipt in life.on.recorder.record(call) if receipt.status not in ("accepted", "duplicate")
        ]
        assert not refused, refused
        assert not life.on.recorder.policy_failures
    life.until(life.now + 40 * DAY)


@settings(max_examples=80, phases=UNSHRUNK)
@given(random=scenarios.randoms)
def test_policies_have_nothing_to_say_where_they_need_not_be_asked(random: Random) -> None:
    live(random, 60)


def counted() -> Projection:
    """Counts what was bought, and is untouched by anything else."""

    def fold(state: dict[str, int], recorded: Recorded) -> dict[str, int] | None:
        if recorded.event.type != "bought":
            return None
        state["n"] = state.get("n", 0) + 1
        return state

    return Projection("counted", 1, None, dict, fold, lambda state, now, edges: state.get("n", 0))


def heard(**fields: Any) -> list[str]:
    """The types of the events about which a policy with these fields is asked."""
    types: list[str] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        types.append(recorded.event.type)
        return [Emit(type="noted", key="noted", occurred_at=recorded.recorded_at)] if types[-1] == "bought" else ()

    policy = Policy(**{"name": "p", "handles": None, "react": react, **fields})
    on = Engine(MemoryStore(), Catalogue([counted(), policy], RULES), lambda: scenarios.NOW)
    named = (Identifier("user_id", "u"),)
    for number, type in enumerate(("seen", "bought", "seen", "named")):
        on.recorder.record([Event(type=type, identifiers=named, occurred_at=scenarios.NOW, key=str(number))])
    return types


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["seen", "bought", "noted", "seen", "named"]),
        ({"reads": (Read("counted"),)}, ["bought"]),
        ({"reads": (Read("counted"),), "also": frozenset({"named"})}, ["bought", "named"]),
        ({"reads": (Read("counted"),), "unsettled": lambda recorded, _: recorded.sequence == 1}, ["seen", "bought"]),
        ({"reads": (Read("counted"),), "handles": frozenset({"seen", "noted"})}, ["seen", "seen"]),
    ],
)
def test_a_policy_is_asked_about_what_it_names_and_what_touches_what_it_reads(
    fields: dict[str, Any], expected: list[str]
) -> None:
    assert heard(**fields) == expected


@pytest.mark.parametrize("late", [HOUR, -HOUR], ids=["late", "ahead"])
def test_a_policy_is_asked_about_a_late_event_and_one_that_lies_ahead(late: int) -> None:
    types: list[str] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        types.append(recorded.event.type)
        return ()

    policy = Policy(name="p", handles=None, react=react, reads=(Read("counted"),))
    on = Engine(MemoryStore(), Catalogue([counted(), policy], RULES), lambda: scenarios.NOW)
    named = (Identifier("user_id", "u"),)
    for number, (type, at) in enumerate((("seen", 0), ("bought", -late), ("seen", -late + 1), ("bought", 0))):
        on.recorder.record([Event(type=type, identifiers=named, occurred_at=scenarios.NOW + at, key=str(number))])
    assert types == ["bought", "bought"]


@pytest.mark.policies_fail
def test_a_policy_that_reads_more_than_it_says_is_found_out() -> None:
    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        return [Emit(type="noted", key="noted", occurred_at=recorded.recorded_at)]

    policy = Policy(name="p", handles=None, react=react, reads=(Read("counted"),))
    values = asked_always([counted(), policy], lambda recorded: False)
    on = Engine(MemoryStore(), Catalogue(values, RULES), lambda: scenarios.NOW)
    on.recorder.record([Event(type="seen", identifiers=(Identifier("user_id", "u"),), occurred_at=1, key="1")])
    types = frozenset({POLICY_FAILED})
    (failed,) = on.reader.events(on.reader.person("default", "user_id:u"), types=types)
    assert "p need not be asked" in failed.event.properties["error"]
