"""Events erased on DynamoDB while others read, erase and commit: pages that are replaced, the journal, the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.servers.dynamodb import ministack
from tests.stores.dynamodb_stage import Answer, Opening, opening, spy, told
from threadline.kernel.store import ERASED_THREAD, Batch, erased, feed_pages, thread_page
from threadline.stores.dynamodb import erasure, reading
from threadline.stores.dynamodb.layout import unpack_journal
from threadline.stores.dynamodb.store import DynamoStore
from threadline.testing.store_cases import OTHER_THREAD, THREAD, entry, record, refusals

NAMES = ["BatchGetItem", "Query", "TransactWriteItems", "GetItem"]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Opening]:
    with opening(ministack().made(tmp_path)) as opened:
        yield opened


def between(store: DynamoStore, number: int, names: list[str], do: Callable[[], object]) -> None:
    """Do something right before the request of this number among those with one of these names."""
    left = [number]

    def before(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name in names:
            left[0] -= 1
            if not left[0]:
                do()
        return go()

    spy(store).before = before


ENTRIES = [entry(number, THREAD if number % 3 else OTHER_THREAD) for number in range(1, 11)]
GONE = [ENTRIES[place].id for place in (0, 2, 4)]
LEFT = [erased(one.id) if one.id in GONE else one for one in ENTRIES]


@pytest.mark.parametrize("number", range(1, 8))
def test_a_reader_between_two_requests_sees_an_event_or_that_it_is_erased(stores: Opening, number: int) -> None:
    """Before any of its requests the pages that it is about to read may be replaced."""
    reader, other = stores(), stores()
    # Who erases is in no journal; so the reader waits for nobody but itself.
    assert refusals(reader, Batch(ENTRIES[:6]), Batch(ENTRIES[6:])) == [None] * 2
    between(reader, number, NAMES, lambda: other.erase(GONE))
    found = reader.find([one.id for one in ENTRIES])
    assert {one.id: one for one in ENTRIES if one.id not in GONE}.items() <= found.items()
    between(reader, number, NAMES, lambda: other.erase([ENTRIES[5].id, ENTRIES[1].id]))
    feed = [page.entry for page in reader.feed()]
    assert [one.id for one in feed] == [one.id for one in ENTRIES]
    assert all(one == erased(one.id) or one in ENTRIES for one in feed)


@pytest.mark.parametrize("theirs", [(0, 5), (5, 8)], ids=["the same page", "another page of the same entry"])
@pytest.mark.parametrize("number", range(1, 5))
def test_two_who_erase_what_one_commit_wrote_take_each_event_once(
    stores: Opening, number: int, theirs: tuple[int, int]
) -> None:
    one, other = stores(), stores()
    assert refusals(one, Batch(ENTRIES)) == [None]
    counts: list[int] = []
    between(one, number, NAMES, lambda: counts.append(other.erase([ENTRIES[place].id for place in theirs])))
    counts.append(one.erase(GONE))
    gone = {*GONE, *(ENTRIES[place].id for place in theirs)}
    assert sum(counts) == len(gone)
    spy(one).before = lambda name, body, go: go()
    assert [page.entry for page in one.feed()] == [erased(each.id) if each.id in gone else each for each in ENTRIES]
    left = [each for each in ENTRIES if each.id not in gone]
    assert one.find([each.id for each in ENTRIES]) == {each.id: each for each in left}
    assert thread_page(one, THREAD) == [each for each in left if each.thread == THREAD]


def test_who_reads_a_page_of_before_and_an_entry_of_after_lays_its_other_events_down_once(
    stores: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BatchGetItem is no snapshot: somebody else may have replaced the page between its two reads."""
    one, other = stores(), stores()
    assert refusals(one, Batch(ENTRIES)) == [None]
    theirs = [ENTRIES[7].id]

    def read(client: Any, keys: list[Any], **more: Any) -> dict[Any, Any]:
        monkeypatch.setattr(erasure, "get_many", reading.get_many)
        before = reading.get_many(client, keys, **more)
        assert other.erase(theirs) == 1
        after = reading.get_many(client, keys, **more)
        page, entry = map(reading.name_of, keys)
        return {page: before[page], entry: after[entry]}

    monkeypatch.setattr(erasure, "get_many", read)
    assert one.erase([ENTRIES[0].id, *theirs]) == 1
    gone = {ENTRIES[0].id, *theirs}
    assert [page.entry for page in one.feed()] == [erased(each.id) if each.id in gone else each for each in ENTRIES]


def test_a_page_known_from_the_stream_is_not_given_once_an_event_of_it_is_erased(stores: Opening) -> None:
    reader, other = stores(), stores()
    record(other, entry(99))
    cursor = told(reader, 1)[-1].cursor
    assert refusals(other, Batch(ENTRIES)) == [None]
    before = told(reader, 10, cursor)
    assert reader._feed._tail is not None
    assert reader._feed._tail._pages, "the stream brought them"
    other.erase(GONE)
    assert [page.entry for page in reader.feed(cursor)] == LEFT
    assert [page.entry for page in reader.feed(before[4].cursor)] == LEFT[5:]
    reader.feed()
    kept = [one for page in reader._feed._tail._pages.values() for _, one in page]
    assert not [one for one in kept if one.id in GONE and one != erased(one.id)], "nor does memory keep it"


def test_nothing_in_the_table_names_an_erased_thread(stores: Opening) -> None:
    store = stores()
    assert refusals(store, Batch(ENTRIES[:4]), Batch(ENTRIES[4:]), Batch([entry(50, "cc" * 16)])) == [None] * 3
    store.erase([one.id for one in ENTRIES if one.thread == THREAD])
    journal = [page for kind in reading.scan_pages(store.client, "j", 0, 1, None) for page in map(unpack_journal, kind)]
    pages = [found for kind in "te" for page in reading.scan_pages(store.client, kind, 0, 1, None) for found in page]
    found = str([journal, pages])
    assert ERASED_THREAD in found
    assert OTHER_THREAD in found
    assert THREAD not in found
    assert thread_page(store, OTHER_THREAD) == [one for one in ENTRIES if one.thread == OTHER_THREAD]


def test_a_lost_answer_erases_once(stores: Opening) -> None:
    store = stores()
    assert refusals(store, Batch(ENTRIES)) == [None]
    left = [2]

    def before(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        answer = go()
        if name == "TransactWriteItems" and left[0]:
            left[0] -= 1
            raise urllib3.exceptions.ProtocolError("the answer is lost")
        return answer

    spy(store).before = before
    assert store.erase(GONE) == 3
    assert [page.entry for page in feed_pages(store)] == LEFT
