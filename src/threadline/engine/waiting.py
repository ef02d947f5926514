"""Effects as they wait in the outbox: what an item of it says, read and written."""

from __future__ import annotations

from typing import NamedTuple

from threadline.engine.packing import pack, unpack
from threadline.engine.wishes import effect_fields
from threadline.kernel.policy import Effect
from threadline.kernel.store import Item


class Waiting(NamedTuple):
    """An effect in the outbox."""

    item: Item
    workspace: str
    thread: str
    policy: str
    cause: str
    attempts: int
    """How many times the thread was told of it: the number of what it is told next."""
    effect: Effect
    """Its lane is told only where it waits elsewhere, because nobody has declared that."""
    since: int
    """When it was first due, or due again because somebody has driven it again."""
    began: int = 0
    """How many attempts there were before that."""

    @property
    def id(self) -> str:
        """The same for ever, whatever becomes of it."""
        return self.item.key.sort.partition(".")[2]


def due_of(item: Item) -> int:
    """The instant at which an item is due."""
    return int(item.key.sort.partition(".")[0], 16) - (1 << 62)


def waiting(item: Item) -> Waiting:
    """The effect of an item of the outbox."""
    workspace, thread, policy, cause, attempts, (kind, key, due_at, data, *lane), *rest = unpack(item.value)
    effect = Effect(kind=kind, key=key, due_at=due_at, data=data, lane=lane[0] if lane else "")
    since, began = rest or (due_of(item), 0)
    return Waiting(item, workspace, thread, policy, cause, attempts, effect, since, began)


def pack_waiting(one: Waiting) -> bytes:
    """The item of an effect that waits again, or is parked."""
    effect = effect_fields(one.effect, one.effect.lane)
    return pack((one.workspace, one.thread, one.policy, one.cause, one.attempts, effect, one.since, one.began))
