"""An opening: what events that have left the log by their age leave behind, so that states count them as before.

Expiry takes events out of a thread and puts one in their place: for each projection that folded them, the state of
these events alone. Folding it adds that state to what the other events make, by the projection's own `Faster.merge`, in
any order. It belongs to the thread as any event does: joins and splits take it along, and backups, moves, exports, the
lake and refolds have it with the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.kernel.event import Recorded
from threadline.kernel.event_type import Properties
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.projection import Projection, State
from threadline.kernel.typed import prepared

OPENING = f"{SYSTEM_PREFIX}opening"
"""It occurs right before the first event that it stands for, so that whoever reads in order meets it first."""


class Carried(msgspec.Struct, frozen=True):
    """A state, or an independent part of one, of events that have left the log."""

    projection: str
    shape: Annotated[str, Meta(description="Version and definitions by which it was folded.")]
    state: Annotated[str, Meta(description="As JSON.")]
    """One text, since the names in it are identifiers and topics: whoever is shown no personal text sees none of it."""
    part: Annotated[str, Meta(description="Which part of the state; empty: all of it.")] = ""


@prepared
class Opening(Properties):
    """The properties of an opening."""

    events: Annotated[int, Meta(description="How many events it stands for.")]
    types: Annotated[list[str], Meta(description="Their types.")]
    before: Annotated[int, Meta(description="They occurred before this instant, microseconds.")]
    until: Annotated[int, Meta(description="When the newest of them occurred, microseconds.")]
    carried: Annotated[list[Carried], Meta(description="What is folded of them, by projection.")]

    def stands_for(self, type: str, occurred_at: int) -> bool:
        """Whether it stands for such an event that came into its thread before it did. The event may be in the log for
        a moment longer; one that came later is late, and counts."""
        return type == OPENING or (occurred_at < self.before and type in self.types)


def opening_of(recorded: Recorded) -> Opening:
    """What an event of the type `OPENING` says."""
    return msgspec.convert(recorded.event.properties, Opening)


def carried_from(projection: Projection, state: State) -> Iterator[Carried]:
    """What an opening has of a state."""
    if projection.carries is None or state == projection.empty():
        return
    for part in projection.carries:
        if not part or part in state:
            text = msgspec.json.encode(state[part] if part else state).decode()
            yield Carried(projection.name, _shape(projection, part), text, part)


def is_current(projection: Projection, carried: Carried) -> bool:
    """Whether a carried state is of the definitions in force: one of others cannot be computed again."""
    declared = projection.carries is not None and carried.part in projection.carries
    return declared and carried.shape == _shape(projection, carried.part)


def _shape(projection: Projection, part: str) -> str:
    assert projection.carries is not None
    return f"{projection.version}.{projection.carries[part]}"


def fold_opening(projection: Projection, state: State, recorded: Recorded) -> State | None:
    """The state with an opening in it; None if it has nothing for this projection."""
    merge = projection.faster.merge
    assert merge is not None, "who carries a state over can merge two"
    folded = None
    for carried in opening_of(recorded).carried:
        if carried.projection == projection.name and is_current(projection, carried):
            content = msgspec.json.decode(carried.state)
            folded = state = merge(state, {carried.part: content} if carried.part else content)
            assert folded is not None, f"{projection.name} says that any two of its states can be merged"
    return folded
