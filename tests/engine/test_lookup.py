"""Law: people who are read again are who a reader without any memory finds, and nobody's reading changes another's."""

from __future__ import annotations

from itertools import count
from random import Random
from threading import Barrier, Thread
from typing import Any

from hypothesis import given

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.reading.person_reader import PersonReader
from threadline.kernel.errors import NotFound
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY, HOUR
from threadline.testing import scenarios
from threadline.testing.scenarios import NOW

WHO = [f"user_id:user-{person}" for person in range(3)]


def views(reader: Any, ref: str, now: int, names: tuple[str, ...] | None = None) -> Any:
    try:
        return reader.views(reader.person("default", ref), now, names=names)
    except NotFound:
        return None


def anew(engine: Engine) -> PersonReader:
    """A reader without any memory."""
    return PersonReader(engine.store, engine.catalogue)


@given(random=scenarios.randoms)
def test_whoever_is_read_at_any_moment_is_who_a_new_reader_finds(random: Random) -> None:
    engine = staging.engine(clock=staging.ticking())
    events = scenarios.history(random, 3, 60)
    names = [projection.name for projection in engine.catalogue.projections]
    refs = sorted({str(name) for event in events for name in event.identifiers})
    while events:
        count = random.randrange(1, 6)
        engine.recorder.record(events[:count])
        events = events[count:]
        for _ in range(random.randrange(4)):
            ref, now = random.choice(refs), NOW - random.choice((0, HOUR, 40 * DAY))
            chosen = tuple(random.sample(names, random.randrange(1, 4))) if random.random() < 0.5 else None
            assert views(engine.reader, ref, now, chosen) == views(anew(engine), ref, now, chosen)


def long_life() -> Engine:
    """Somebody whose states are larger than what is written whole, with a tail."""
    engine = staging.engine()
    for number in count():
        if number >= 60 and engine.reader.person("default", "user_id:ada").tail:
            break
        properties = {"topic": f"topic {number}", "strength": 0.5}
        at = NOW - HOUR + number
        event = staging.event("interest_detected", {"user_id": "ada"}, f"{number}", at, properties=properties)
        engine.recorder.record([event])
    return engine


def test_a_person_is_opened_once_until_something_changes() -> None:
    engine = long_life()
    first = engine.reader.person("default", "user_id:ada")
    assert first.tail
    assert engine.reader.person("default", "user_id:ada") is first
    engine.recorder.record([staging.event("page", {"user_id": "ada"}, "another", NOW - 1)])
    assert engine.reader.person("default", "user_id:ada") is not first


def test_a_person_who_is_read_again_takes_one_read_and_is_whoever_the_thread_is_with_by_then() -> None:
    engine = staging.engine()
    engine.recorder.record([staging.event("page", {"anonymous_id": name}, name) for name in ("ada", "bob")])
    store = staging.CountingStore(engine.store)
    reader = PersonReader(store, engine.catalogue)
    ada, bob = ("anonymous_id:ada", "anonymous_id:bob")
    apart = {name: reader.person("default", name).id for name in (ada, bob)}
    before = store.gets
    assert {name: reader.person("default", name).id for name in (ada, bob)} == apart
    assert store.gets == before + 2
    survivor, _ = engine.identity.merge("default", ada, bob, request="m")
    assert {reader.person("default", name).id for name in (ada, bob)} == {survivor}
    merged = engine.reader.events(reader.person("default", ada), types=frozenset({MERGED}))[0]
    engine.identity.unmerge("default", merged.id, request="u")
    assert {name: reader.person("default", name).id for name in (ada, bob)} == apart


def test_a_tail_that_this_process_recorded_is_not_read_from_the_store() -> None:
    engine = long_life()
    person = engine.reader.person("default", "user_id:ada")
    assert person.tail
    engine.store.find = None  # type: ignore[assignment,method-assign]  # whoever asks fails
    assert engine.reader.views(person, NOW)


def test_readers_who_open_the_same_person_at_once_see_the_same() -> None:
    engine = long_life()
    expected = views(anew(engine), "user_id:ada", NOW)
    found: list[Any] = []
    for _ in range(20):
        engine.reader = PersonReader(engine.store, engine.catalogue, engine.recorder.recent)
        person, start = engine.reader.person("default", "user_id:ada"), Barrier(4)

        def look(person: Any = person, start: Barrier = start) -> None:
            start.wait()
            found.append(engine.reader.views(person, NOW))

        threads = [Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [expected] * 80


def test_identifiers_of_many_people_are_read_together_and_follow_merges() -> None:
    engine = staging.engine()
    events = [staging.event("page", {"user_id": f"u{n}", "email": f"u{n}@shop.it"}, str(n)) for n in range(50)]
    engine.recorder.record([*events, staging.event("page", {"user_id": "x"}, "x", workspace="other")])
    people = [engine.reader.person("default", f"user_id:u{n}") for n in range(50)]
    merged, survivor = people[0].id, people[1].id
    engine.identity.merge("default", "user_id:u1", "user_id:u0", request="r", force=True)
    store = staging.CountingStore(engine.store)
    reader = PersonReader(store, engine.catalogue)
    elsewhere = engine.reader.person("other", "user_id:x").id
    names = reader.identifiers_of("default", [*(person.id for person in people[2:]), elsewhere, "0" * 32])
    assert names == {people[n].id: [f"user_id:u{n}", f"email:u{n}@shop.it"] for n in range(2, 50)}
    assert store.gets == 1
    both = {"user_id:u0", "user_id:u1", "email:u0@shop.it", "email:u1@shop.it"}
    assert {id: set(each) for id, each in reader.identifiers_of("default", [merged, survivor]).items()} == {
        merged: both,
        survivor: both,
    }
