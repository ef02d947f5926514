"""Today beside yesterday, against a walk through all events."""

from __future__ import annotations

from random import Random

import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.operations.today import TodayParams, today
from threadline.engine.context import Context
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, parse_time
from threadline.settings import Settings

MIDNIGHT = parse_time("2026-03-02T00:00:00Z")
NOW = MIDNIGHT + 9 * HOUR + 1
Lived = list[tuple[str, int, str]]


def lived(seed: int) -> Lived:
    """Whole hours, so that many events stand on the borders of the days and of the hour."""
    random = Random(seed)
    types = ("viewed", "bought", "signed_up", "points_earned")
    return [
        (f"p{random.randrange(20)}", MIDNIGHT + random.randrange(-60, 10) * HOUR, random.choice(types))
        for _ in range(200)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_today_is_counted_beside_the_same_hours_of_yesterday(seed: int) -> None:
    events = lived(seed)
    engine = open_engine("memory:", Settings(), lambda: NOW)
    engine.recorder.record(
        [
            Event(
                type=type,
                identifiers=(Identifier("user_id", who),),
                occurred_at=at,
                key=str(number),
                source="shop",
                source_type="internal" if type == "points_earned" else "direct",
            )
            for number, (who, at, type) in enumerate(events)
        ]
    )
    found = today.run(Context(engine, "default", NOW, "test"), TodayParams())
    own = [each for each in events if each[2] != "points_earned"]
    first = {who: min(at for other, at, _ in own if other == who) for who, _, _ in own}

    def spans(at: int) -> tuple[bool, bool]:
        return MIDNIGHT <= at <= NOW, MIDNIGHT - DAY <= at <= NOW - DAY

    assert found.people == len(first)
    assert [found.new_people.today, found.new_people.before] == [
        sum(spans(at)[part] for at in first.values()) for part in (0, 1)
    ]
    assert [found.active_people.today, found.active_people.before] == [
        len({who for who, at, _ in own if spans(at)[part]}) for part in (0, 1)
    ]
    counted = {
        (type, part): sum(1 for _, at, t in events if t == type and spans(at)[part])
        for type in {t for _, _, t in events}
        for part in (0, 1)
    }
    shown = {(row.type, part): (row.today, row.before)[part] for row in found.rows for part in (0, 1)}
    assert {key: count for key, count in shown.items() if count} == {key: n for key, n in counted.items() if n}
    assert [row.own for row in found.rows] == sorted((row.own for row in found.rows), reverse=True)
    engine.close()


def test_an_empty_workspace_has_nothing_today() -> None:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    found = today.run(Context(engine, "default", NOW, "test"), TodayParams())
    assert (found.people, found.new_people.today, found.active_people.before, found.rows) == (0, 0, 0, [])
    engine.close()
