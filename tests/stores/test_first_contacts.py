"""Many first contacts of the same people at the same moment, from several processes' engines: nobody is doubled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.laws import staging
from tests.servers import dynamodb, postgres
from threadline.engine.folding.person_packing import pages_of_people
from threadline.engine.maintenance.dump import dump
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import Event, event_id
from threadline.kernel.store import Store, feed_pages
from threadline.testing.scenarios import NOW

CONTACTS = int(os.environ.get("THREADLINE_TEST_FIRST_CONTACTS", "80"))
"""All of them are under way at the same time; 1,000 take about a minute."""
ENGINES = 4
CONTACTS_OF_A_PERSON = 10
PAIRS = [("user_id", "email"), ("email", "anonymous_id"), ("anonymous_id", "user_id")]

Open = Callable[[], Store]


def on_postgres(folder: Path) -> Open:
    server, schema = postgres.server("18"), postgres.schema_of(folder)
    server.made(schema)
    return lambda: postgres.store_in(server, folder)


def on_dynamodb(folder: Path) -> Open:
    url = dynamodb.ministack()
    url.made(folder)
    return lambda: url.open(folder)


def contacts(count: int) -> list[Event]:
    """Every person is named by two of three identifiers; none names all of them."""
    draw, found = Random(7), []
    for number in range(count):
        person, nth = divmod(number, CONTACTS_OF_A_PERSON)
        pair = PAIRS[nth % len(PAIRS)]
        who = {kind: f"p{person}@example.com" if kind == "email" else f"{kind}-{person}" for kind in pair}
        found.append(staging.event("seen", who, f"k{number}", NOW - draw.randrange(10**9)))
    draw.shuffle(found)
    return found


@pytest.mark.parametrize("opened", [on_postgres, on_dynamodb], ids=["postgres", "dynamodb"])
def test_first_contacts_at_once_make_each_person_once(opened: Callable[[Path], Open], tmp_path: Path) -> None:
    open_store, events = opened(tmp_path), contacts(CONTACTS)
    stores = [open_store() for _ in range(ENGINES)]
    engines = [staging.engine(store) for store in stores]
    start, outcomes, waits = threading.Barrier(len(events) + 1), [""] * len(events), [0] * len(events)

    def contact(number: int) -> None:
        start.wait()
        while not outcomes[number]:
            try:
                (receipt,) = engines[number % ENGINES].recorder.record([events[number]])
                outcomes[number] = receipt.code or receipt.status
            except Unavailable:
                waits[number] += 1
                time.sleep(0.05)

    threads = [threading.Thread(target=contact, args=(number,)) for number in range(len(events))]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    print(f"{len(events)} first contacts in {seconds:.1f} s, {sum(waits)} were told to come again")  # noqa: T201
    try:
        assert set(outcomes) == {"accepted"}
        store = stores[0]
        deadline = time.monotonic() + 60
        # Where others commit, DynamoDB's feed shows it half a second later.
        wanted = {event_id(each.workspace, each.source, each.key) for each in events}
        while not wanted <= {each.entry.id for each in feed_pages(store)}:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        people = [person for _, person in pages_of_people(store, engines[0].catalogue)]
        assert len(people) == -(-len(events) // CONTACTS_OF_A_PERSON)
        assert {len(person.identifiers) for person in people} == {3}
        alone = staging.engine()
        assert set(staging.statuses(alone.recorder.record(events))) == {"accepted"}
        assert dump(store, engines[0].catalogue, arrival=False) == dump(alone.store, alone.catalogue, arrival=False)
    finally:
        for each in stores:
            each.close()
