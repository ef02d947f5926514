"""Documents in the store: what is written is read again, and of two changes none is lost."""

from __future__ import annotations

import msgspec
import pytest

from threadline.kernel.documents import ATTEMPTS_MAX, Documents, Numbered, Stored, changed
from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, Delete, Put
from threadline.stores.memory import MemoryStore


class Note(msgspec.Struct, frozen=True):
    """A document of these tests."""

    text: str


NOTES, VERSIONS = Documents("note", Note), Numbered("note_version", Note)


def commit(store: MemoryStore, *writes: Put | Delete) -> bool:
    return store.commit([Batch(writes=list(writes))])[0] is None


def test_documents_are_read_by_id_and_in_pages() -> None:
    store = MemoryStore()
    for id in ("b", "a", "c"):
        assert commit(store, NOTES.put("default", id, Note(id), 0))
    assert NOTES.find(store, "default", "a") == Stored(Note("a"), 1)
    assert NOTES.find(store, "other", "a") is None
    assert NOTES.page(store, "default", "a", 1) == [("b", Note("b"))]
    assert [id for id, _ in NOTES.all(store, "default")] == ["a", "b", "c"]
    assert NOTES.some(store, "default", ["c", "missing", "a"]) == [Note("c"), Note("a")]


def test_a_document_is_replaced_and_removed_only_at_the_version_that_was_read() -> None:
    store = MemoryStore()
    assert commit(store, NOTES.put("default", "a", Note("first"), 0))
    assert not commit(store, NOTES.put("default", "a", Note("lost"), 0))
    assert commit(store, NOTES.put("default", "a", Note("second"), 1))
    assert not commit(store, NOTES.delete("default", "a", 1))
    assert commit(store, NOTES.delete("default", "a", 2))


def test_numbered_ones_come_in_their_order_and_none_is_replaced() -> None:
    store = MemoryStore()
    for number in range(1, 12):
        assert commit(store, VERSIONS.put("default", "a", number, Note(f"{number}")))
    assert not commit(store, VERSIONS.put("default", "a", 3, Note("another")))
    assert VERSIONS.find(store, "default", "a", 3) == Note("3")
    assert VERSIONS.find(store, "default", "a", 0) is None
    assert VERSIONS.after(store, "default", "a", 9) == [Note("10"), Note("11")]
    assert [note.text for note in VERSIONS.all(store, "default", "a")] == [f"{number}" for number in range(1, 12)]
    assert (VERSIONS.last_number(store, "default", "a"), VERSIONS.last_number(store, "default", "b")) == (11, 0)


def test_a_change_is_made_again_until_it_is_committed_or_others_always_are_faster() -> None:
    results: list[int | None] = [None, None, 0]
    assert changed("the note", lambda: results.pop(0)) == 0
    attempts = list[None]()
    with pytest.raises(Unavailable, match="keep changing the note"):
        changed("the note", lambda: attempts.append(None))
    assert len(attempts) == ATTEMPTS_MAX
