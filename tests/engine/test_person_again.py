"""A person whose every trace was removed and who comes back is another, for every process that remembers the first."""

from __future__ import annotations

import pytest

from tests.laws import staging
from threadline.engine.folding.person import begins_of, person_key
from threadline.kernel.event import Event
from threadline.kernel.identity import Identifier
from threadline.kernel.limits import ITEM_BEGINS_MAX
from threadline.kernel.store import Batch, Delete, Store, feed_pages, is_erased, scan_pages
from threadline.stores.memory import MemoryStore


def page(key: str) -> Event:
    return staging.event(f"page_{key.split(maxsplit=1)[0]}", {"user_id": "ada"}, key)


def remove_everything(store: Store) -> None:
    store.erase([each.entry.id for each in feed_pages(store)])
    keys = [item.key for table in store.tables() for item in scan_pages(store, table)]
    for first in range(0, len(keys), 100):
        assert store.commit([Batch(writes=[Delete(key) for key in keys[first : first + 100]])]) == [None]


@pytest.mark.parametrize("before", [1, 2, 5])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_process_that_remembers_an_erased_person_does_not_bring_them_back(before: int, after: int) -> None:
    store = MemoryStore()
    one, other = staging.engine(store), staging.engine(store)
    for number in range(before):
        other.recorder.record([page(f"old {number}")])
    remove_everything(store)
    for number in range(after):
        one.recorder.record([page(f"new {number}")])
    # Its cache has the person as they were, at the version that the new item would have had too.
    [receipt] = other.recorder.record([page("newest")])
    assert (receipt.status, receipt.sequence) == ("accepted", after + 1)
    person = one.reader.person("default", "user_id:ada")
    assert person.position == after + 1
    keys = {each.event.key for each in one.reader.events(person)}
    assert keys == {*(f"new {number}" for number in range(after)), "newest"}
    staging.assert_refold_changes_nothing(one)
    assert sum(is_erased(each.entry) for each in feed_pages(store)) == before


def test_a_person_begins_with_a_version_of_their_first_event() -> None:
    store = MemoryStore()
    on = staging.engine(store)
    [receipt] = on.recorder.record([page("first")])
    [item] = store.get([person_key(receipt.person)])
    assert item is not None
    assert item.version == begins_of(receipt.id)
    assert 1 <= item.version < ITEM_BEGINS_MAX
    on.recorder.record([page("second")])
    [item] = store.get([person_key(receipt.person)])
    assert item is not None
    assert item.version == begins_of(receipt.id) + 1


def test_a_person_is_split_over_an_alias_at_its_version() -> None:
    store = MemoryStore()
    on = staging.engine(store)
    names = [Identifier("anonymous_id", name) for name in ("one", "two")]
    receipts = on.recorder.record([staging.event("page", {"anonymous_id": name.value}, name.value) for name in names])
    on.identity.merge("default", str(names[0]), str(names[1]), request="m")
    alias = store.get([person_key(receipts[1].person)])[0]
    assert alias is not None
    on.identity.split("default", str(names[0]), [str(names[1])], request="s")
    again = store.get([person_key(receipts[1].person)])[0]
    assert again is not None
    assert again.version == alias.version + 1
    on.recorder.record([staging.event("page", {"anonymous_id": "two"}, "more")])
    assert on.reader.person("default", str(names[1])).position == 3
