"""All of a person's events, in pages of whatever size."""

from __future__ import annotations

import pytest

from threadline.app import open_engine
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 1_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_any_size_give_every_event_once_in_order(size: int, reverse: bool) -> None:
    engine = open_engine("memory:", Settings(), lambda: 1_000)
    ada = (Identifier("user_id", "ada"),)
    # Two at each instant, and of two types in turn.
    told = [
        Event(type=("even", "odd")[number % 2], identifiers=ada, occurred_at=number // 2, key=str(number))
        for number in range(8)
    ]
    engine.recorder.record(told)
    person = engine.reader.person("default", "user_id:ada")
    whole = engine.reader.events(person, reverse=reverse)
    assert len(whole) == len(told)

    assert list(engine.reader.all_events(person, reverse=reverse, size=size)) == whole
    odd = frozenset({"odd"})
    assert list(engine.reader.all_events(person, types=odd, start=1, stop=3, reverse=reverse, size=size)) == [
        each for each in whole if each.event.type == "odd" and 1 <= each.event.occurred_at < 3
    ]
    after = (whole[2].event.occurred_at, whole[2].id)
    assert list(engine.reader.all_events(person, after=after, reverse=reverse, size=size)) == whole[3:]
