"""All of a person's events, in pages of whatever size."""

from __future__ import annotations

import pytest

from tests.laws import staging
from threadline.kernel.event import Event, Identifier


@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_any_size_give_every_event_once_in_order(reverse: bool) -> None:
    engine = staging.engine()
    ada = (Identifier("user_id", "ada"),)
    # Two at each instant, and of two types in turn.
    recorded = [
        Event(type=("even", "odd")[number % 2], identifiers=ada, occurred_at=number // 2, key=str(number))
        for number in range(8)
    ]
    engine.recorder.record(recorded)
    person = engine.reader.person("default", "user_id:ada")
    whole = engine.reader.events(person, reverse=reverse)
    assert len(whole) == len(recorded)
    odd = frozenset({"odd"})
    after = (whole[2].event.occurred_at, whole[2].id)
    for size in (1, 2, 3, 7, 8, 1_000):
        read = engine.reader.all_events
        assert list(read(person, reverse=reverse, size=size)) == whole
        assert list(read(person, types=odd, start=1, stop=3, reverse=reverse, size=size)) == [
            each for each in whole if each.event.type == "odd" and 1 <= each.event.occurred_at < 3
        ]
        assert list(read(person, after=after, reverse=reverse, size=size)) == whole[3:]
