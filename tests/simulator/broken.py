"""Engines that are broken on purpose: whoever simulates must find each of them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from threadline.engine.delivery import dispatcher
from threadline.engine.delivery.outbox import Outbox
from threadline.engine.folding import person_packing
from threadline.engine.recording import duplicates
from threadline.engine.recording.attempt import Change
from threadline.engine.recording.recorder import Recorder
from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, Check, Put
from threadline.stores.memory import MemoryStore


def _claims_count_for_nothing() -> Any:
    return patch.object(Outbox, "_left", lambda self, one: None)


def _timers_stay() -> Any:
    return patch.object(dispatcher, "Delete", Check)


def _foundations_do_not_matter() -> Any:
    whole: Callable[..., Any] = MemoryStore._refusal
    return patch.object(MemoryStore, "_refusal", lambda self, batch, *, lost: whole(self, batch, lost=False))


def _lost_races_go_unnoticed() -> Any:
    return patch.object(person_packing, "Put", lambda key, value, expected=None, *more: Put(key, value, None, *more))


def _rows_are_left_behind() -> Any:
    whole: Callable[..., Batch] = Change.seal

    def seal(self: Change, *given: Any, **named: Any) -> Batch:
        self.rows_to_write = [write for write in self.rows_to_write if isinstance(write, Put)]
        return whole(self, *given, **named)

    return patch.object(Change, "seal", seal)


def _what_fails_is_answered() -> Any:
    whole: Callable[..., Any] = Recorder._committed

    def committed(self: Recorder, attempt: Any) -> Any:
        try:
            return whole(self, attempt)
        except Unavailable:
            return []

    return patch.object(Recorder, "_committed", committed)


def _conflicts_are_duplicates() -> Any:
    whole = duplicates.sort_out

    def sort_out(attempt: Any, events: Sequence[Any], *given: Any, **named: Any) -> Any:
        for one in events:
            one.digest = attempt.store.seen([one.id]).get(one.id, one.digest)
        return whole(attempt, events, *given, **named)

    return patch("threadline.engine.recording.recorder.sort_out", sort_out)


def _threads_lead_nowhere() -> Any:
    whole: Callable[..., Any] = MemoryStore._put

    def put(self: MemoryStore, write: Put) -> None:
        if write.key.table != "thread" or write.key not in self._items:
            whole(self, write)

    return patch.object(MemoryStore, "_put", put)


WAYS: dict[str, Callable[[], Any]] = {
    "claims count for nothing": _claims_count_for_nothing,
    "timers stay": _timers_stay,
    "foundations do not matter": _foundations_do_not_matter,
    "lost races go unnoticed": _lost_races_go_unnoticed,
    "rows are left behind": _rows_are_left_behind,
    "what fails is answered": _what_fails_is_answered,
    "conflicts are duplicates": _conflicts_are_duplicates,
    "threads lead nowhere": _threads_lead_nowhere,
}
