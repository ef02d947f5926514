"""Law: whatever way events and time go, boards are what the auditor counts, and no row is missing or too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import Phase, given, settings

from tests.capabilities.asked import Asked
from tests.laws import staging
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.event import Event
from threadline.kernel.identity import MERGED
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.ranking import TABLE
from threadline.kernel.store import Store, scan_pages
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.testing import scenarios
from threadline.testing.auditor import audit
from threadline.testing.audits.leaderboards import Audited, standings

DEFINITIONS = """
segments:
  regulars: {when: {not: {field: traits.plan, equals: free}}}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: plan, tags: [vip]}
  purse: {score: points.balance}
  streak: {score: streaks.daily.current, per: plan}
  longest: {score: streaks.daily.longest}
  spenders: {score: features.monetary_total, segments: [regulars]}
  reached: {score: features.campaigns_received_30d}
"""
DECLARED = yaml.safe_load(DEFINITIONS)["leaderboards"]
SEGMENTS = yaml.safe_load(DEFINITIONS)["segments"]
CATALOGUE: Catalogue = Asked(definitions=DEFINITIONS).engine.catalogue
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes a second to live, so that shrinking one would take many minutes; the failure prints it as it is."""
PAST = (0, DAY, 9 * DAY, 40 * DAY)


SCORING = (
    ("tool_used", {}),
    ("result_shared", {}),
    ("points_earned", {"points": 30}),
    ("page", {}),
    ("tag_added", {"tag": "vip"}),
    ("tag_removed", {"tag": "vip"}),
    ("identify", {"plan": "free"}),
    ("identify", {"plan": "pro"}),
    ("campaign_delivered", {"campaign_id": "spring"}),
    ("purchase_completed", {"total": 12.5, "currency": "EUR"}),
    ("points_spend_requested", {"points": 7}),
)


def competed(random: Random, people: int, count: int) -> list[Event]:
    """A history in which half of the events move somebody on a board, most of them of the last days."""
    told = []
    for event in scenarios.history(random, people, count):
        if random.random() < 0.5:
            type, properties = random.choice(SCORING)
            at = scenarios.NOW - random.choice((1, HOUR, DAY, 2 * DAY, 6 * DAY, 29 * DAY)) - random.randrange(HOUR)
            event = msgspec.structs.replace(event, type=type, properties=properties, occurred_at=at)
        told.append(event)
    return told


class Lived:
    """An engine that dies over some of its commits and goes on, with a clock and a dispatcher that is never late."""

    def __init__(self, store: Store, random: Random | None = None) -> None:
        self.now = scenarios.NOW
        self.store = store
        self.random = random
        self.told: list[Event] = []
        self.recorded_at: dict[str, int] = {}
        """When each event became known, by its key."""
        self.on = self.opened()

    def opened(self) -> Engine:
        on = Engine(self.store, CATALOGUE, lambda: self.now)
        if self.random is None:
            return on
        fragile: Any = staging.CrashingStore(
            self.store, self.random.randint(1, 6), self.random.choice(("before", "after", "half"))
        )
        on.store = on.recorder.store = fragile
        return on

    def tell(self, calls: Sequence[Sequence[Event]]) -> None:
        for call in calls:
            while True:
                try:
                    receipts = self.on.recorder.record(call)
                    break
                except staging.Crash:
                    self.on = self.opened()
            assert {receipt.status for receipt in receipts} <= {"accepted", "duplicate"}
            self.told += call
            for event in call:
                self.recorded_at.setdefault(event.key, self.now)
        self.random, self.on = None, Engine(self.store, CATALOGUE, lambda: self.now)

    def until(self, instant: int) -> None:
        """Let time go by; what is due is seen to when it is, the instant that is read at included."""
        self._see_to_what_is_due(instant)
        self.now = instant
        while self.now < self.on.now():
            self.now = self.on.now()
            self._see_to_what_is_due(self.now)

    def _see_to_what_is_due(self, instant: int) -> None:
        while due := [
            at for person in self.on.reader.all_people("default") for at in person.timers.values() if at <= instant
        ]:
            self.now = max(self.now, min(due))
            Dispatcher(self.on, {}, "test").run_once()

    def ask(self, name: str, /, **params: Any) -> Any:
        operation = next(each for each in CATALOGUE.operations if each.name == name)
        return operation.run(Context(self.on, "default", self.on.now()), msgspec.convert(params, operation.params))

    # --- what must be so ---------------------------------------------------------------------

    def audited(self) -> list[Audited]:
        """Everybody under their id, as the auditor has them and with what their threads hold."""
        told = [
            {**scenarios.plain(event), "recorded_at": self.recorded_at.get(event.key, self.now)} for event in self.told
        ]
        pictures = audit(told, self.now)
        return [self._audited(picture) for picture in pictures]

    def _audited(self, picture: dict[str, Any]) -> Audited:
        person = self.on.reader.person("default", picture["identifiers"][0])
        names = ("type", "source_type", "occurred_at", "marks", "historical", "properties")
        lines = [
            {"id": r.id, "cause": r.cause, "thread": r.thread, **{name: getattr(r.event, name) for name in names}}
            for r in self.on.reader.events(person, limit=1_000)
        ]
        return person.id, picture, lines

    def check(self, people: list[Audited] | None = None) -> int:
        """Every board against the auditor; answers how many places were found."""
        people = self.audited() if people is None else people
        found = 0
        for params in _questions(self.now):
            at = params.pop("instant", None)
            told = {"period": params.get("period", "all"), "scope": params.get("scope", ""), "at": at}
            expected = standings(people, DECLARED[params["name"]]["score"], self.now, declared=SEGMENTS, **told)
            board = self.ask("leaderboards_top", limit=1_000, **params)
            assert {(e.rank, e.person, e.score) for e in board.places} == expected, params
            ranks = {person: (rank, score) for rank, person, score in expected}
            for person, _, _ in people:
                own = self.ask("leaderboards_standing", id=person, **params)
                assert (own.rank, own.score) == ranks.get(person, (None, 0)), params
                assert own.total == len(expected)
            found += len(expected)
        assert rows(self.store) == sorted(_wanted(self.on)), "a row is missing, or one too many is there"
        return found


def _questions(now: int) -> Iterator[dict[str, Any]]:
    for scope in ({}, {"scope": "plan=free"}, {"scope": "tag=vip"}):
        for period in ("day", "week", "month"):
            for back in PAST:
                past = {"at": format_time(now - back), "instant": now - back}
                yield {"name": "points", "period": period, **past, **scope}
        yield {"name": "points", **scope}
    yield {"name": "streak", "scope": "plan=pro"}
    yield {"name": "spenders", "scope": "segment=regulars"}
    yield from ({"name": name} for name in DECLARED)


def rows(store: Store) -> list[tuple[str, str]]:
    """Every row of every board, those of the departed left out: readers pass them over."""
    return sorted((item.key.partition, item.key.sort) for item in scan_pages(store, TABLE))


def _wanted(on: Engine) -> Iterator[tuple[str, str]]:
    index = CATALOGUE.index["leaderboards"]
    for person in on.reader.all_people("default"):
        for row in CATALOGUE.projections[index].index.rows(person.states[index], "default", person.id):
            yield row.partition, row.sort


@pytest.mark.slow
@given(scenarios.randoms)
@settings(max_examples=25, phases=UNSHRUNK)
def test_boards_are_what_the_auditor_counts(random: Random) -> None:
    lived = Lived(staging.MemoryStore(), random)
    lived.tell(scenarios.telling(scenarios.shuffled, random, competed(random, 4, random.randrange(1, 60))))
    lived.until(lived.now + 1)
    lived.check()
    for _ in range(3):
        lived.until(lived.now + random.choice((1, HOUR, DAY - 1, DAY, 7 * DAY, 29 * DAY)))
        lived.check()
    staging.assert_refold_changes_nothing(lived.on)


@given(scenarios.randoms)
@settings(max_examples=25, phases=UNSHRUNK)
def test_boards_of_views_say_what_views_say_whatever_lies_ahead(random: Random) -> None:
    lived = Lived(staging.MemoryStore())
    for number in range(random.randrange(2, 12)):
        type, properties = random.choice(SCORING)
        who = {"user_id": random.choice(("ada", "bob"))}
        at = lived.now + random.choice((0, 0, HOUR, 8 * HOUR, 20 * HOUR))
        lived.tell([[staging.event(type, who, f"k{number}", at, properties=properties)]])
        lived.until(lived.now + random.choice((1, HOUR, 9 * HOUR, 2 * DAY)))
        _assert_boards_say_what_views_say(lived)


def test_a_board_read_at_the_microsecond_at_which_a_timer_fires_and_a_purchase_lies_says_what_the_view_says() -> None:
    lived = Lived(staging.MemoryStore())
    ada, purchase = {"user_id": "ada"}, {"total": 12.5, "currency": "EUR"}
    # A microsecond apart, so that the timer of the first one ahead fires when the second one occurs.
    lived.tell([[staging.event("purchase_completed", ada, "first", lived.now + HOUR - 1, properties=purchase)]])
    lived.tell([[staging.event("purchase_completed", ada, "second", lived.now + HOUR, properties=purchase)]])
    lived.now += HOUR
    Dispatcher(lived.on, {}, "test").run_once()
    person = lived.on.reader.person("default", "user_id:ada")
    fired = lived.on.reader.events(person, types=frozenset({TIMER_FIRED}))
    assert {each.recorded_at for each in fired} == {lived.now}
    _assert_boards_say_what_views_say(lived)
    assert [place.score for place in lived.ask("leaderboards_top", name="spenders").places] == [25]


def _assert_boards_say_what_views_say(lived: Lived) -> None:
    for name in ("streak", "longest", "spenders", "reached"):
        held = {entry.person: entry.score for entry in lived.ask("leaderboards_top", name=name).places}
        shown = {person.id: _shown(lived, person, name) for person in lived.on.reader.all_people("default")}
        assert held == {person: score for person, score in shown.items() if score}, name


def _shown(lived: Lived, person: Any, name: str) -> Any:
    first, *others = DECLARED[name]["score"].split(".")
    found = lived.on.reader.views(person, lived.on.now())[first]
    for step in others:
        found = found[step]
    return found["value"] if first == "features" else found


A, B = (f"anonymous_id:anonymous-{number}-0" for number in range(2))


@pytest.mark.slow
@given(scenarios.randoms)
@settings(max_examples=20, phases=UNSHRUNK)
def test_merged_and_unmerged_boards_are_those_of_people_who_never_met(random: Random) -> None:
    lived = Lived(staging.MemoryStore())
    names = [{"anonymous_id": f"anonymous-{number}-0"} for number in range(3)]
    history = [staging.event("tool_used", who, f"first-{who}") for who in names]
    for number, drawn in enumerate(competed(random, 3, 30)):
        fields = {"properties": drawn.properties, "context": drawn.context}
        history.append(staging.event(drawn.type, random.choice(names), f"k{number}", drawn.occurred_at, **fields))
    lived.tell(scenarios.batched(random, history))
    lived.until(lived.now + HOUR)  # past all edges of windows, so that a microsecond more or less changes nothing
    before, apart = rows(lived.store), lived.check()
    lived.on.identity.merge("default", A, B, request="m")
    assert rows(lived.store) != before
    # The auditor joins people by what names them both; this says so and nothing else.
    lived.told.append(staging.event("tag_removed", names[0] | {"user_id": "link"}, "link 0"))
    lived.told.append(staging.event("tag_removed", names[1] | {"user_id": "link"}, "link 1"))
    lived.check()
    del lived.told[-2:]
    merge = lived.on.reader.events(lived.on.reader.person("default", A), types=frozenset({MERGED}), limit=1)[0]
    lived.on.identity.unmerge("default", merge.id, request="u")
    assert rows(lived.store) == before
    assert lived.check() == apart > 0
