"""What policies share of a workspace: made once, made again when it changes, never older than it may be."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from tests.laws import staging
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.shared import SharedValues
from threadline.kernel.errors import NotFound, Unavailable
from threadline.kernel.policy import Policy, Shared
from threadline.kernel.store import Delete, Key, Put
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

Value = tuple[int, dict[str, bytes]]
"""How often it was made, and of what."""


class Stage:
    """Two processes on one store, and a clock moved by hand."""

    def __init__(self) -> None:
        self.now = 0
        self.store = MemoryStore()
        shared = Shared("things", make=self.make, handles=lambda value, type: True)
        policy = Policy(name="p", handles=None, react=lambda recorded, known: (), shared=shared)
        catalogue = Catalogue([policy], rules())
        self.one, self.other = (SharedValues(self.store, catalogue, lambda: self.now) for _ in range(2))

    def make(self, items: Mapping[str, bytes], before: Any) -> Value:
        return (1 if before is None else before[0] + 1, dict(items))

    def put(self, by: SharedValues, sort: str, value: bytes, expected: int | None = None) -> bool:
        return by.change("w", "things", [Put(Key("things", "w", sort), value, expected)]) is None


def test_it_is_made_once_and_again_when_it_has_changed() -> None:
    stage = Stage()
    for _ in range(3):
        assert stage.one.current("w", "things") == (1, {})
    assert stage.put(stage.one, "a", b"1")
    for _ in range(3):
        assert stage.one.current("w", "things") == (2, {"a": b"1"})
    assert stage.one.change("w", "things", [Delete(Key("things", "w", "a"))]) is None
    assert stage.one.current("w", "things") == (3, {})
    assert stage.one.current("elsewhere", "things") == (1, {})


def test_others_see_a_change_when_their_time_is_up() -> None:
    stage = Stage()
    stage.other.refresh_seconds = 2.0
    assert stage.other.current("w", "things") == (1, {})
    stage.put(stage.one, "a", b"1")
    stage.now = 2 * SECOND - 1
    assert stage.other.current("w", "things") == (1, {})
    assert stage.other.fresh("w", "things") == (2, {"a": b"1"})
    stage.put(stage.one, "a", b"2")
    stage.now = 4 * SECOND - 1
    stage.now = 4 * SECOND
    assert stage.other.current("w", "things") == (3, {"a": b"2"})
    stage.now = 0  # a clock that was set back is no reason to believe it for ever
    stage.put(stage.one, "a", b"3")
    assert stage.other.current("w", "things") == (4, {"a": b"3"})


def test_what_begins_while_an_event_is_on_its_way_does_not_decide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is taken after the values, so that whatever decides had begun by then."""
    shared = Shared("things", make=lambda items, before: dict(items), handles=lambda value, type: type == "page")
    seen: list[dict[str, bytes]] = []
    policy = Policy(
        name="p", handles=None, react=lambda recorded, known: seen.append(known.shared("things")) or (), shared=shared
    )
    on = staging.engine(MemoryStore(), values=[policy], shipped=False)
    begin = iter([partial(on.shared.change, "default", "things", [Put(Key("things", "default", "a"), b"begun")])])
    plain = on.store.seen

    def busy(ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """Let it begin while ids are asked for, once."""
        for each in begin:
            each()
        return plain(ids, certain=certain)

    monkeypatch.setattr(on.store, "seen", busy)
    on.recorder.record([staging.event("page", {"user_id": "ada"}, "1")])
    on.recorder.record([staging.event("page", {"user_id": "ada"}, "2")])
    assert seen == [{}, {"a": b"begun"}]


def test_what_is_refused_changes_nothing() -> None:
    stage = Stage()
    stage.put(stage.one, "a", b"1")
    assert not stage.put(stage.other, "a", b"2", expected=0)
    assert stage.other.current("w", "things")[1] == {"a": b"1"}


def test_a_change_of_which_nobody_can_say_whether_it_was_committed_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.one.refresh_seconds = None
    assert stage.one.current("w", "things") == (1, {})
    commit = stage.store.commit

    def unanswered(batches: Sequence[Any]) -> Any:
        commit(batches)
        raise Unavailable("the answer was lost")

    monkeypatch.setattr(stage.store, "commit", unanswered)
    with pytest.raises(Unavailable):
        stage.put(stage.one, "a", b"1")
    assert stage.one.current("w", "things") == (2, {"a": b"1"})


def test_more_items_than_a_page_holds() -> None:
    stage = Stage()
    for start in range(0, 2_500, 50):
        writes = [Put(Key("things", "w", f"rule/{number:04d}"), b"x") for number in range(start, start + 50)]
        assert stage.one.change("w", "things", writes) is None
    assert len(stage.other.current("w", "things")[1]) == 2_500


def test_what_nobody_declares_is_not_found() -> None:
    with pytest.raises(NotFound, match="nothing is shared under the name 'other'"):
        Stage().one.current("w", "other")


def test_a_change_while_others_read_is_not_overwritten_by_what_they_read() -> None:
    stage = Stage()
    stage.one.refresh_seconds = None
    stage.put(stage.one, "a", b"1")
    reading, changed = threading.Event(), threading.Event()
    query = stage.store.query

    def paused(*asked: Any, **how: Any) -> Any:
        found = query(*asked, **how)
        if threading.current_thread() is reader:
            reading.set()
            changed.wait()
        return found

    stage.store.query = paused  # type: ignore[method-assign]
    reader = threading.Thread(target=stage.one.current, args=("w", "things"))
    reader.start()
    reading.wait()
    stage.put(stage.one, "a", b"2")
    changed.set()
    reader.join()
    assert stage.one.current("w", "things")[1] == {"a": b"2"}
