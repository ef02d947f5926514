"""Law: at every instant every reader counts the same events: those that occurred before it, to the microsecond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import Phase, given, settings

from tests.capabilities.asked import Asked
from tests.laws import staging
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.event import Recorded
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.testing import scenarios
from threadline.testing.audits.points import points as audited_points
from threadline.testing.audits.streaks import streaks as audited_streaks
from threadline.testing.scenarios import NOW

DEFINITIONS = """
features:
  visits: {aggregate: count, events: page, window: 1h}
segments:
  spenders: {when: {field: features.monetary_total, greater_than: 20}}
  visitors: {when: {field: features.visits, greater_than: 0}}
  strangers: {when: {not: {field: tags, contains: vip}}}
leaderboards:
  spenders: {score: features.monetary_total}
  visitors: {score: features.visits}
  balance: {score: points.balance}
  earned: {score: points.earned, periods: [all]}
  streak: {score: streaks.daily.current}
"""
BOARDS = ("spenders", "visitors", "balance", "earned", "streak")
CATALOGUE = Asked(definitions=DEFINITIONS).engine.catalogue
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes a second to live, so that shrinking one would take many minutes; the failure prints it as it is."""

WHAT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("purchase_completed", {"total": 12.5, "currency": "EUR"}),
    ("page", {}),
    ("tool_used", {}),
    ("tag_added", {"tag": "vip"}),
    ("tag_removed", {"tag": "vip"}),
)
WHO = ("ada", "bob", "eve")
OFFSETS = (-DAY, -HOUR, -1, 0, 0, 1, 2, HOUR, HOUR, 20 * HOUR)
"""When events occur, from the clock at which they are recorded."""
GAPS = (0, 0, 1, 2, HOUR - 1, HOUR, HOUR, 9 * HOUR, DAY)


class Step(NamedTuple):
    """An event, how far from the clock it occurs, and how long nothing is recorded after it."""

    who: str
    what: int
    offset: int
    gap: int


class Truth(NamedTuple):
    """What holds of a person at an instant, folded plainly from the events that count."""

    total: float
    visits: int
    vip: bool
    balance: int
    streak: int

    @property
    def segments(self) -> set[str]:
        belongs = {"spenders": self.total > 20, "visitors": self.visits > 0, "strangers": not self.vip}
        return {name for name, member in belongs.items() if member}

    @property
    def scores(self) -> dict[str, float]:
        return {
            "spenders": self.total,
            "visitors": self.visits,
            "balance": self.balance,
            "earned": self.balance,
            "streak": self.streak,
        }


def truth(log: Sequence[Recorded], instant: int, known_at: int | None = None) -> Truth:
    """The fold of a person's log at an instant: what occurred before it, and was recorded by ``known_at``."""
    counted = [r for r in log if r.event.occurred_at < instant and (known_at is None or r.recorded_at <= known_at)]
    counted.sort(key=lambda r: (r.event.occurred_at, r.id))
    total, visits, vip = 0.0, 0, False
    for recorded in counted:
        event = recorded.event
        total += event.properties["total"] if event.type == "purchase_completed" else 0
        visits += event.type == "page" and event.occurred_at >= instant - HOUR
        vip = event.type == "tag_added" if event.type.startswith("tag_") else vip
    names = ("type", "source_type", "occurred_at", "properties")
    lines = [{name: getattr(r.event, name) for name in names} for r in counted]
    told = [
        {**scenarios.plain(r.event), "recorded_at": r.recorded_at} for r in counted if r.event.source_type != "internal"
    ]
    return Truth(
        total, visits, vip, audited_points(lines, instant)["balance"], audited_streaks(told, instant)["current"]
    )


class Life:
    """People whose events are recorded by a clock that stands still in between; every timer fires on time."""

    def __init__(self) -> None:
        self.clock = NOW
        self.on = Engine(staging.MemoryStore(), CATALOGUE, lambda: self.clock)
        self.dispatcher = Dispatcher(self.on, {}, "test")
        self.recorded = 0

    def record(self, step: Step) -> None:
        type, properties = WHAT[step.what]
        self.recorded += 1
        event = staging.event(
            type, {"user_id": step.who}, f"{self.recorded}", self.clock + step.offset, properties=properties
        )
        assert staging.statuses(self.on.recorder.record([event])) == ["accepted"]

    def settle(self) -> None:
        """Fire every timer that is due by the instant that a reader reads at."""
        while True:
            while self.dispatcher.run_once():
                pass
            if self.clock == self.on.now():
                return
            self.clock = self.on.now()

    def people(self) -> dict[str, Any]:
        return {person.id: person for person in self.on.reader.all_people("default")}

    def log(self, person: Any) -> list[Recorded]:
        return list(self.on.reader.all_events(person))

    def around(self) -> list[int]:
        """The instants right before, at and right after everything that occurred or was recorded, and each timer."""
        people = self.people().values()
        found = {at for person in people for at in person.timers.values()}
        for person in people:
            for recorded in self.log(person):
                found |= {recorded.event.occurred_at, recorded.recorded_at}
        return sorted({at + near for at in found for near in (-1, 0, 1)})

    def until(self, instant: int) -> None:
        """Let time pass, stopping to read at every instant around an event."""
        self.settle()
        self.check()
        while True:
            following = min((at for at in self.around() if self.clock < at <= instant), default=None)
            if following is None:
                break
            self.clock = following
            self.settle()
            self.check()
        self.clock = max(self.clock, instant)
        self.settle()
        self.check()

    def ask(self, name: str, /, **params: Any) -> Any:
        operation = next(each for each in CATALOGUE.operations if each.name == name)
        return operation.run(Context(self.on, "default", self.on.now()), msgspec.convert(params, operation.params))

    # --- what must hold ---------------------------------------------------------------------

    def check(self) -> None:
        """Reads without an instant: views, boards and members from rows, segments, timers to come."""
        now, people = self.on.now(), self.people()
        expected = {id: truth(self.log(person), now) for id, person in people.items()}
        for id, person in people.items():
            assert shown(self.on.reader.views(person, now)) == expected[id]
            assert self.segments_of(id) == expected[id].segments
            self.check_dues(person, now)
        for segment in ("spenders", "visitors", "strangers"):
            members = {each.person for each in self.ask("segments_members", name=segment).members}
            assert members == {id for id, each in expected.items() if segment in each.segments}, (segment, now)
        self.check_boards(expected)

    def check_boards(self, expected: dict[str, Truth], **params: Any) -> None:
        for board in BOARDS:
            scores = {id: each.scores[board] for id, each in expected.items() if each.scores[board]}
            places = self.ask("leaderboards_top", name=board, **params).places
            assert {each.person: each.score for each in places} == scores, (board, params, self.on.now())
            for id in expected:
                own = self.ask("leaderboards_standing", id=id, name=board, **params)
                rank = 1 + sum(score > scores[id] for score in scores.values()) if id in scores else None
                assert (own.rank, own.score, own.total) == (rank, scores.get(id, 0), len(scores)), (board, params)

    def check_dues(self, person: Any, instant: int) -> None:
        log = self.log(person)
        later = [r for r in log if r.event.occurred_at >= instant]
        folded = [r.event.occurred_at + 1 for r in later if CATALOGUE.plan(r.event.type)[0]]
        ahead = self.on.reader.as_of(person, instant).ahead()
        # An event that nothing folds, such as a timer's, may be named or not: no view differs after it.
        assert ahead in {None, *(r.event.occurred_at + 1 for r in later)}
        assert not folded or (ahead is not None and ahead <= min(folded))
        due = self.on.reader.as_of(person, instant).due("features")
        visits = [r.event.occurred_at for r in log if r.event.type == "page"]
        leaving = min((at + HOUR + 1 for at in visits if instant - HOUR <= at < instant), default=None)
        assert due is None or due > instant
        assert leaving is None or (due is not None and due <= leaving)

    def segments_of(self, ref: str, **params: Any) -> set[str]:
        return {each.segment for each in self.ask("segments_of", id=ref, **params).segments if each.member}

    def check_past(self) -> None:
        """Reads as of every instant that has passed, by all that is known and by what was known then."""
        people = self.people()
        logs = {id: self.log(person) for id, person in people.items()}
        instants = [at for at in self.around() if at <= self.on.now()]
        for instant in instants:
            expected = {id: truth(log, instant) for id, log in logs.items()}
            for id, person in people.items():
                assert shown(self.on.reader.views(person, instant)) == expected[id], instant
                self.check_dues(person, instant)
                known = truth(logs[id], instant, instant)
                then = self.on.reader.person("default", id, known_at=instant)
                assert shown(self.on.reader.views(then, instant, known_at=instant)) == known, instant
                assert self.segments_of(id, as_of=format_time(instant)) == known.segments
            self.check_boards(expected, at=format_time(instant))
        for known, by in (("now", lambda instant: None), ("then", lambda instant: instant)):
            self.check_training(logs, instants, known, by)

    def check_training(
        self, logs: dict[str, list[Recorded]], instants: Sequence[int], known: str, by: Callable[[int], int | None]
    ) -> None:
        labels = [(id, instant) for id in logs for instant in instants]
        made = self.ask(
            "features_training_set",
            known=known,
            names=["monetary_total", "visits"],
            labels=[{"person": id, "at": format_time(instant), "label": True} for id, instant in labels],
        )
        for row, (id, instant) in zip(made.rows, labels, strict=True):
            expected = truth(logs[id], instant, by(instant))
            assert (row.values["monetary_total"] or 0, row.values["visits"]) == expected[:2], (known, instant)


def shown(views: dict[str, Any]) -> Truth:
    """A person's views in the words of `Truth`."""
    features = views["features"]
    return Truth(
        features["monetary_total"]["value"] or 0,
        features["visits"]["value"],
        "vip" in views["profile"]["tags"],
        views["points"]["balance"],
        views["streaks"]["daily"]["current"],
    )


def life(random: Random) -> list[Step]:
    return [
        Step(random.choice(WHO), random.randrange(len(WHAT)), random.choice(OFFSETS), random.choice(GAPS))
        for _ in range(random.randrange(2, 9))
    ]


@pytest.mark.slow
@pytest.mark.costly
@given(scenarios.randoms)
@settings(max_examples=20, phases=UNSHRUNK)
def test_every_reader_counts_what_occurred_before_the_instant(random: Random) -> None:
    lived = Life()
    for step in life(random):
        lived.record(step)
        lived.until(lived.clock + step.gap)
    lived.until(lived.clock + 2 * HOUR + 1)
    lived.check_past()
    staging.assert_refold_changes_nothing(lived.on)
