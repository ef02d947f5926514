"""Segments, boards and points share the room that one cause has: what does not fit is told later, nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import work
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import CASCADE_CUT
from threadline.kernel.store import Batch, Refusal
from threadline.kernel.time import DAY, HOUR

WHOLE = "leaderboards: {a: {score: points.earned, periods: [day, week, month, all], per: country, tags: [vip, new]}}\n"
"""As many rows as one person may have."""


def crowded(count: int) -> str:
    """So many windows, each with a board and a segment: one event moves somebody on all of them."""
    names = range(count)
    return "\n".join(
        [
            "features:",
            *(f"  f{n}: {{aggregate: count, events: tool_used, window: {n + 1}d}}" for n in names),
            "leaderboards:",
            *(f"  b{n}: {{score: features.f{n}}}" for n in names),
            "segments:",
            *(f"  s{n}: {{when: {{field: features.f{n}, greater_than: 0}}}}" for n in names),
            *(f"  p{n}: {{when: {{field: points.earned, greater_than: {n}}}}}" for n in names[:4]),
        ]
    )


def types(asked: Asked) -> Counter[str]:
    person = asked.engine.reader.person("default", "user_id:ada")
    return Counter(each.event.type for each in asked.engine.reader.events(person, limit=1_000))


@pytest.mark.parametrize("count", [9, 15, 28])
@pytest.mark.slow
def test_many_boards_and_segments_cut_nothing_off(count: int) -> None:
    asked = Asked(definitions=crowded(count))
    asked.tell("tool_used", user_id="ada")
    assert types(asked)["points_earned"] == 1
    for step in (1, HOUR, DAY, count * DAY):
        asked.now += step
        work(asked)
        left = sum((n + 1) * DAY > asked.now - STARTS_AT for n in range(count))
        assert [asked.ask("leaderboards_top", name=f"b{n}")["total"] for n in range(count)].count(1) == left
        reckoned = {
            each["segment"] for each in asked.ask("segments_of", id="user_id:ada")["segments"] if each["member"]
        }
        assert set(asked.ask("person", id="user_id:ada")["views"]["segments"]) == reckoned
        assert len(reckoned) == left + 4
    assert types(asked)[CASCADE_CUT] == 0


def test_what_an_event_and_the_points_it_earns_turn_is_told_without_any_timer_of_time() -> None:
    lines = [f"  t{n}: {{when: {{field: traits.plan, equals: pro}}}}" for n in range(15)]
    lines += [f"  p{n}: {{when: {{field: points.earned, greater_than: 0}}}}" for n in range(20)]
    table = "points: {tables: [{version: 2, earn: {identify: 3}}]}"
    asked = Asked(definitions="\n".join([table, "segments:", *lines]))
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    asked.now += 1
    work(asked)
    assert len(asked.ask("person", id="user_id:ada")["views"]["segments"]) == 35
    assert types(asked)[CASCADE_CUT] == 0


@pytest.mark.parametrize("count", [0, 1, 3, 16, 40])
@pytest.mark.slow
def test_what_a_merge_turns_is_in_its_own_batch_however_many_rows_it_moves(count: int) -> None:
    segments = "".join(f"  p{n}: {{when: {{field: points.earned, greater_than: 60}}}}\n" for n in range(count))
    asked = Asked(definitions=f"{WHOLE}segments:{' {}' if not count else ''}\n{segments}")
    began = asked.now
    for who, country, points in (("ada", "IT", 11), ("bob", "FR", 17)):
        asked.now = began
        asked.tell("identify", user_id=who, properties={"country": country})
        for tag in ("vip", "new"):
            asked.tell("tag_added", user_id=who, properties={"tag": tag})
        for day in (0, 33, 34):
            asked.now = began + day * DAY
            earned: Any = {"type": "points_earned", "properties": {"points": points}, "occurred_at": asked.now}
            asked.engine.recorder.record(
                [Event(identifiers=(Identifier("user_id", who),), key=f"{who} {day}", **earned)]
            )
    committed: list[Batch] = []
    commit = asked.engine.recorder.store.commit

    def seen(batches: Sequence[Batch]) -> list[Refusal | None]:
        # The entry of the audit log is a commit of its own.
        committed.extend(each for each in batches if each.events)
        return commit(batches)

    asked.engine.recorder.store.commit = seen  # type: ignore[method-assign]  # to look at what goes by
    assert asked.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)["done"]
    assert len(committed) == 1
    asked.now += 1
    work(asked)
    assert len(asked.ask("person", id="user_id:ada")["views"]["segments"]) == count
