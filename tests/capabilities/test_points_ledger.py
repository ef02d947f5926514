"""The ledger's arithmetic: any order of lines gives the same state, and expiry is that of a plain queue of lots."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.points_stage import Stage
from threadline.capabilities.profile.points.events import POINTS_ADJUSTED, POINTS_EARNED, POINTS_EXPIRED, POINTS_SPENT
from threadline.capabilities.profile.points.ledger import State, empty, fold, newest, next_expiry, overdue, spendable
from threadline.kernel.calendar import Calendar, day_text, month_of, month_text
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.time import DAY, HOUR, LATEST, parse_time
from threadline.testing import scenarios

JANUARY = parse_time("2026-01-01")
UTC = Calendar()


def line(type: str, points: int, at: int, number: int = 0) -> Recorded:
    event = Event(
        type=type,
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=at,
        key=f"{number}",
        properties={"points": points, "rule": f"rule-{number % 3}"},
    )
    return Recorded(event, f"{number:032x}", "0" * 32, number, at)


def folded(lines: list[Recorded], calendar: Calendar = UTC) -> State:
    state = empty()
    for each in lines:
        folded_in = fold(calendar, state, each)
        state = state if folded_in is None else folded_in
    return state


ledgers = st.lists(
    st.tuples(
        st.sampled_from([POINTS_EARNED, POINTS_EARNED, POINTS_SPENT, POINTS_ADJUSTED, POINTS_EXPIRED]),
        st.integers(-20, 50),
        st.integers(0, 800 * DAY),
    ),
    max_size=40,
)


@given(ledgers, scenarios.randoms)
def test_any_order_gives_the_same_state_and_sums_are_sums(told: list[tuple[str, int, int]], random: Random) -> None:
    lines = [line(type, points, JANUARY + at, number) for number, (type, points, at) in enumerate(told)]
    state = folded(lines)
    other = folded(random.sample(lines, len(lines)))
    assert msgspec.msgpack.encode(state, order="sorted") == msgspec.msgpack.encode(other, order="sorted")
    came = sum(p for t, p, _ in told if p > 0 and t in (POINTS_EARNED, POINTS_ADJUSTED))
    went = sum(p for t, p, _ in told if p > 0 and t in (POINTS_SPENT, POINTS_EXPIRED))
    taken = sum(p for t, p, _ in told if p < 0 and t == POINTS_ADJUSTED)
    assert spendable(state, UTC, None, LATEST) == came - went + taken


class Queue:
    """Expiry as everybody would explain it: a queue of lots, of which the oldest is taken first."""

    def __init__(self, expires_after: int) -> None:
        self.expires_after = expires_after
        self.lots: list[list[int]] = []

    def ends(self, month: int) -> int:
        year, index = divmod(month + 1, 12)
        return parse_time(f"{year:04d}-{index + 1:02d}-01") + self.expires_after

    def expire(self, now: int) -> None:
        self.lots = [lot for lot in self.lots if self.ends(lot[0]) > now]

    def add(self, at: int, points: int) -> None:
        date = day_text(at // DAY)
        self.lots.append([int(date[:4]) * 12 + int(date[5:7]) - 1, points])

    def take(self, points: int) -> None:
        for lot in self.lots:
            taken = min(lot[1], points)
            lot[1] -= taken
            points -= taken

    def balance(self) -> int:
        return sum(points for _, points in self.lots)


@given(
    st.lists(st.tuples(st.integers(0, 60 * DAY), st.booleans(), st.integers(1, 50)), max_size=40),
    st.integers(1, 200),
    st.booleans(),
)
def test_expiry_is_that_of_a_queue_of_lots(steps: list[tuple[int, bool, int]], days: int, booked: bool) -> None:
    expires_after = days * DAY
    state, queue, now = empty(), Queue(expires_after), JANUARY
    for number, (pause, earns, points) in enumerate(steps):
        now += pause
        queue.expire(now)
        late = overdue(state, UTC, expires_after, now)
        assert spendable(state, UTC, expires_after, now) == queue.balance()
        if late and (booked or not earns):
            # Whether what is over its time has been booked by a timer yet makes no difference to anything; only a spend
            # has it booked first, for else it would be counted among the points that it took.
            fold(UTC, state, line(POINTS_EXPIRED, late, now, 1_000 + number))
            assert spendable(state, UTC, expires_after, now) == queue.balance()
        if earns:
            fold(UTC, state, line(POINTS_EARNED, points, now, number))
            queue.add(now, points)
        elif points <= queue.balance():
            fold(UTC, state, line(POINTS_SPENT, points, now, number))
            queue.take(points)
        following = next_expiry(state, UTC, expires_after, now)
        left = [(queue.ends(month), held) for month, held in queue.lots if held]
        if not left:
            assert following is None
        else:
            ends_at = left[0][0]
            assert following == (ends_at, sum(held for end, held in left if end == ends_at))


@given(st.permutations(range(12)), st.integers(1, 12))
def test_the_newest_stay_whatever_comes_first(numbers: list[int], span: int) -> None:
    table: dict[str, int] = {}
    for number in numbers:
        newest(table, number, span, number)
    assert sorted(map(int, table)) == list(range(12 - span, 12))


@pytest.mark.slow
def test_a_state_stays_small() -> None:
    lines = [line(POINTS_EARNED, 5, JANUARY + number * HOUR, number) for number in range(24 * 365 * 3)]
    assert len(msgspec.msgpack.encode(folded(lines))) < 4_000


@pytest.mark.parametrize("points", [None, True, 1.5, "7", 0, -5, 10**12 + 1, [3], 2**63 - 1])
def test_what_is_no_amount_changes_nothing(points: object) -> None:
    event = Event(type=POINTS_EARNED, identifiers=(), occurred_at=JANUARY, key="x", properties={"points": points})
    assert folded([Recorded(event, "0" * 32, "0" * 32, 1, JANUARY)]) == empty()


@pytest.mark.parametrize(
    ("zone", "at", "day", "month", "week"),
    [
        ("UTC", "2026-03-01T00:00:00Z", "2026-03-01", "2026-03", "2026-02-23"),
        ("UTC", "2026-02-28T23:59:59.999999Z", "2026-02-28", "2026-02", "2026-02-23"),
        ("America/Sao_Paulo", "2026-03-01T02:59:59Z", "2026-02-28", "2026-02", "2026-02-23"),
        ("America/Sao_Paulo", "2026-03-02T03:00:00Z", "2026-03-02", "2026-03", "2026-03-02"),
        ("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29", "2011-12", "2011-12-26"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31", "2011-12", "2011-12-26"),
        ("Asia/Kathmandu", "1969-12-31T18:15:00Z", "1969-12-31", "1969-12", "1969-12-29"),
    ],
)
def test_days_of_a_zone(zone: str, at: str, day: str, month: str, week: str) -> None:
    calendar = Calendar(zone)
    number = calendar.day(parse_time(at))
    assert (day_text(number), month_text(month_of(number)), day_text(calendar.week(number))) == (day, month, week)


@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe", "Africa/Cairo"])
def test_a_day_begins_where_the_day_before_ends(zone: str) -> None:
    calendar = Calendar(zone)
    for day in range(14_000, 21_000):
        start = calendar.start(day)
        assert calendar.day(start - 1) < day <= calendar.day(start), day_text(day)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Niue"])
def test_the_ends_of_time_can_be_folded_and_read(zone: str, at: str) -> None:
    calendar = Calendar(zone)
    state = folded([line(POINTS_EARNED, 5, parse_time(at))], calendar)
    assert spendable(state, calendar, None, LATEST) == 5
    assert next_expiry(state, calendar, 30 * DAY, parse_time(at) - DAY) is not None


@pytest.mark.parametrize("type", ["points_earned", "points_adjusted", "points_spent", "points_expired"])
def test_a_line_that_is_dated_ahead_is_dated_when_it_comes_in(type: str) -> None:
    stage = Stage()
    stage.ask("record", events=[{"type": "page", "key": "first", "identifiers": {"user_id": "ada"}}])
    line = Event(
        type=type,
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=stage.now + HOUR,
        key="line",
        properties={"points": 100},
    )
    assert [each.status for each in stage.engine.recorder.record([line, line])] == ["accepted", "duplicate"]
    view = stage.points()
    assert view["balance"] == (100 if type in ("points_earned", "points_adjusted") else -100)
    # What can be spent is what is told to be there.
    assert stage.ask("points_spend", id="user_id:ada", points=60, request="r")["balance"] in (40, -100)
    assert stage.points()["balance"] in (40, -100)
    stage.now += 2 * HOUR
    assert [each.status for each in stage.engine.recorder.record([line])] == ["duplicate"]
    outside = stage.tell(type, at=stage.now + HOUR, properties={"points": 5})
    assert stage.engine.log.event("default", outside.id).event.occurred_at == stage.now + HOUR
