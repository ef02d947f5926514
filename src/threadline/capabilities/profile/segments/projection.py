"""The projection ``segments``: to which segments the events say that a person belongs, and since when."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from typing import Any

from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX, SEGMENTS_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.names import NAME
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.store import Item, Key, Store, query_pages
from threadline.kernel.time import EARLIEST, LATEST, format_time
from threadline.kernel.view_parts import Parts, values

TABLE = "segment"
SHARDS = "0123456789abcdef"
"""The first digits of people's ids. Members of one segment lie in so many partitions, one after the other by id."""
VERSION_LENGTH_MAX = 32

_KNOWN_MAX = 2 * SEGMENTS_MAX
"""Segments remembered of one person, those with the smallest names: more than can be declared at a time."""
_ENTRIES_MAX = 4
"""Entries since the person last left: one, and further ones only where people were merged who had all entered."""

_LEFT, _ENTERED, _VERSION = range(3)

Stored = list[Any]
"""When the person last left (None: never), when they entered since then, and [when, version] of the last word."""
State = dict[str, Stored]


def since(stored: Stored | None) -> int | None:
    """Since when somebody belongs, by what is kept of a segment; None if they do not."""
    return stored[_ENTERED][0] if stored is not None and stored[_ENTERED] else None


def version(stored: Stored | None) -> str:
    """The version of the conditions by which somebody belongs or belonged; empty if they never did."""
    return str(stored[_VERSION][1]) if stored is not None else ""


def newest(stored: Stored | None) -> int:
    """When the last word on a segment was said; before all times if there was none."""
    return int(stored[_VERSION][0]) if stored is not None else EARLIEST


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    name, declared_version = event.properties.get("segment"), event.properties.get("version")
    if type(name) is not str or not NAME.fullmatch(name):
        return None
    change = [
        event.occurred_at,
        declared_version if type(declared_version) is str and len(declared_version) <= VERSION_LENGTH_MAX else "",
    ]
    stored = state.get(name)
    if stored is None:
        stored = state[name] = [None, [], change]
        if len(state) > _KNOWN_MAX:
            # Whatever is left out here has so many smaller names before it and can never come back.
            del state[max(state)]
    elif change > stored[_VERSION]:
        stored[_VERSION] = change
    if event.type == SEGMENT_LEFT:
        _leave(stored, event.occurred_at)
    elif event.type == SEGMENT_ENTERED:
        _enter(stored, event.occurred_at)
    return state


def _leave(stored: Stored, at: int) -> None:
    if stored[_LEFT] is None or at > stored[_LEFT]:
        stored[_LEFT] = at
        stored[_ENTERED] = [entered for entered in stored[_ENTERED] if entered > at]


def _enter(stored: Stored, at: int) -> None:
    if (stored[_LEFT] is None or at > stored[_LEFT]) and at not in stored[_ENTERED]:
        insort(stored[_ENTERED], at)
        # The newest stay: an older one could only ever be the first of them, or be ended by leaving.
        del stored[_ENTERED][:-_ENTRIES_MAX]


def merge(first: State, second: State) -> State:
    """The state of the union of two people's events."""
    return keep_smallest(merge_entries(first, second, _merge_stored), _KNOWN_MAX)


def _merge_stored(first: Stored, second: Stored) -> Stored:
    left = max((stored[_LEFT] for stored in (first, second) if stored[_LEFT] is not None), default=None)
    entered = sorted(at for at in {*first[_ENTERED], *second[_ENTERED]} if left is None or at > left)
    return [left, entered[-_ENTRIES_MAX:], max(first[_VERSION], second[_VERSION])]


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, dict[str, str]]:
    shown = {}
    for name, stored in sorted(state.items()):
        at = since(stored)
        if at is not None:
            shown[name] = {"since": format_time(min(max(at, EARLIEST), LATEST)), "version": version(stored)}
    return shown


def partition(workspace: str, segment: str, shard: str) -> str:
    """The partition of the members whose ids begin with this digit."""
    return f"{workspace}/{segment}/{shard}"


def member_rows(store: Store, workspace: str, segment: str, after: str, size: int) -> Iterator[Item]:
    """The rows of the members whose ids come after ``after``, by id, read ``size`` at a time."""
    size = min(size, PAGE_ITEMS_MAX)
    for shard in SHARDS[SHARDS.find(after[:1]) if after else 0 :]:
        yield from query_pages(store, TABLE, partition(workspace, segment, shard), after, size=size)


def member_key(workspace: str, segment: str, person: str) -> Key:
    """Where the row of a member is."""
    return Key(TABLE, partition(workspace, segment, person[0]), person)


def _rows(state: State, workspace: str, person: str) -> Iterable[Row]:
    for name, stored in state.items():
        at = since(stored)
        if at is not None:
            yield Row(TABLE, partition(workspace, name, person[0]), person, str(at).encode())


SEGMENTS = Projection(
    name="segments",
    version=1,
    handles=frozenset({SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED}),
    empty=dict,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts(named="segment", inside=Parts(values("since", "version")))),
    index=Index(rows=_rows, tables=(TABLE,)),
    faster=Faster(merge=merge),
)
"""It commutes: of leaving it keeps the last time, of entering the times after that, of words the newest."""

SEGMENT_TABLE = StoreTable(TABLE, "state_rows", shown_in="segments")
SEGMENTS_FILE = PersonFile(
    "segments",
    "Groups that you are counted among",
    "Groups of similar customers that you belong to, since when, and when you entered and left others.",
    joined(shown_views("segments"), shown_events(SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED)),
    ("segments",),
)
