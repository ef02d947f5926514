"""The laws of every projection, as functions to call from tests: any order, any interruption, any payload.

Property-based tests of a reducer or aggregate. Each of `LAWS` raises `AssertionError` where the projection breaks it:

    >>> from random import Random
    >>> from threadline.kernel.projection import Projection
    >>> from threadline.testing.projection_laws import LAWS
    >>> from threadline.testing.scenarios import history, recorded
    >>> pages = Projection(
    ...     name="pages", version=1, handles=frozenset({"page"}), empty=lambda: {"count": 0},
    ...     fold=lambda state, recorded: {"count": state["count"] + 1}, view=lambda state, now, edges: state["count"],
    ... )
    >>> events = recorded(history(Random(1)))
    >>> for law in LAWS:
    ...     law(pages, events, Random(1))

``events`` are what the projection is to survive: its own types with plausible payloads, and the same types with hostile
ones (`threadline.testing.scenarios`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from threadline.engine.folding.states import PackedDict
from threadline.kernel.event import Recorded
from threadline.kernel.limits import ITEM_BYTES_MAX, KEY_BYTES_MAX
from threadline.kernel.names import Names
from threadline.kernel.projection import Projection, State
from threadline.kernel.time import DAY, YEAR

Law = Callable[[Projection, Sequence[Recorded], Random], None]

_PERSON = "f" * 32


def any_order_gives_an_equal_state(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """Folding commutes. An ordered one is folded anew where it does not say that this can be spared."""
    expected = _written(_timeless(projection, _folded(projection, events)))
    for _ in range(3):
        shuffled = random.sample(list(events), len(events))
        arrived = (_arrived if projection.ordered else _folded)(projection, shuffled)
        assert _written(_timeless(projection, arrived)) == expected, f"{projection.name}: order shows"


def a_refold_equals_the_incremental_state(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """A state that was packed and read back after every event goes on as if it had never left memory."""
    state = projection.empty()
    for recorded in _in_order(projection, events):
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(_fold(projection, state, recorded)))
    assert _written(state) == _written(_folded(projection, events)), f"{projection.name}: packing shows"


def a_state_in_parts_does_as_the_plain_one(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """A state of which only what is asked for is unpacked is folded, merged and seen as the plain one."""
    if not projection.in_parts:
        return
    plain, apart = projection.empty(), projection.empty()
    ordered = _in_order(projection, [recorded for recorded in events if _handles(projection, recorded)])
    newest = max((recorded.event.occurred_at for recorded in events), default=0)
    instants = (newest + 1, newest + random.randrange(1, 100 * DAY), newest + 20 * YEAR)
    for count, recorded in enumerate(ordered, 1):
        plain, apart = projection.after(plain, recorded), projection.after(_apart(apart), recorded)
        assert msgspec.msgpack.encode(plain) == msgspec.msgpack.encode(apart), f"{projection.name}: parts show"
        if count in (len(ordered) // 2, len(ordered)):
            seen = _seen(projection, plain, ordered[:count], instants)
            assert seen == _seen(projection, _apart(plain), ordered[:count], instants), f"{projection.name}: parts show"
            if projection.faster.merge is not None:
                second = _folded(projection, ordered[count // 2 :])
                merged = merged_states(projection, plain, second)
                assert merged == merged_states(projection, plain, second, _apart), f"{projection.name}: parts show"


class _Apart(PackedDict):
    """A state with parts as small as can be."""

    __slots__ = ()
    plain_bytes = 0


def _apart(state: State) -> State:
    return _Apart.unpack(msgspec.Raw(msgspec.msgpack.encode(state)))


def the_compiled_fold_equals_the_plain_one(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """`compile` is only a faster way to the same state; None says that the type changes nothing."""
    if projection.faster.fold is None:
        return
    plain, compiled = projection.empty(), projection.empty()
    for recorded in _in_order(projection, events):
        if not _handles(projection, recorded):
            continue
        touched = projection.fold(plain, recorded)
        compiled_fold = projection.faster.fold(recorded.event.type)
        faster = None if compiled_fold is None else compiled_fold(compiled, recorded)
        assert (touched is None) == (faster is None), f"{projection.name}: what {recorded.event.type} touches"
        plain, compiled = plain if touched is None else touched, compiled if faster is None else faster
        assert _written(plain) == _written(compiled), f"{projection.name}: the compiled fold of {recorded.event.type}"


def an_event_that_touches_nothing_changes_nothing_that_is_seen(
    projection: Projection, events: Sequence[Recorded], random: Random
) -> None:
    """A fold answers None only where views at all instants, rows and dues stay as they were."""
    ordered = _in_order(projection, [recorded for recorded in events if _handles(projection, recorded)])
    newest = max((recorded.event.occurred_at for recorded in events), default=0)
    instants = (newest + 1, newest + random.randrange(1, 100 * DAY), newest + 20 * YEAR)
    state = projection.empty()
    for count, recorded in enumerate(ordered):
        packed = msgspec.msgpack.encode(state)
        folded = projection.fold(state, recorded)
        if folded is None:
            before = _seen(projection, msgspec.msgpack.decode(packed), ordered[:count], instants)
            after = _seen(projection, state, ordered[: count + 1], instants)
            assert before == after, f"{projection.name}: {recorded.event.type} shows although nothing is touched"
        else:
            state = folded


def merging_two_states_equals_folding_the_union(
    projection: Projection, events: Sequence[Recorded], random: Random
) -> None:
    """`merge` makes of two people's states that of the union of their events, whoever comes first, or leaves them."""
    if projection.faster.merge is None:
        return
    ordered = sorted(events, key=lambda recorded: (recorded.event.occurred_at, recorded.id))
    cut = random.randrange(len(ordered) + 1)
    mine = {recorded.id for recorded in events if random.randrange(2)}
    for own in ({recorded.id for recorded in ordered[:cut]}, mine):
        parts = [recorded for recorded in ordered if recorded.id in own], [r for r in ordered if r.id not in own]
        first, second = (_folded(projection, part) for part in parts)
        merged = merged_states(projection, first, second)
        expected = None if merged is None else _written(_folded(projection, ordered))
        assert merged == expected, f"{projection.name}: merging two states is not folding the union"
        assert merged == merged_states(projection, second, first), f"{projection.name}: who comes first shows"


def merged_states(
    projection: Projection, first: State, second: State, copied: Callable[[State], State] | None = None
) -> bytes | None:
    """What `merge` makes of copies of two states, packed; None if only the events can tell. ``copied`` makes them."""
    assert projection.faster.merge is not None
    before = [_written(state) for state in (first, second)]
    copies = list(map(copied or _copied, (first, second)))
    merged = projection.faster.merge(*copies)
    if merged is None:
        assert [_written(copy) for copy in copies] == before, f"{projection.name}: a merge that fails changes a state"
        return None
    return _written(merged)


def an_empty_state_is_new_every_time(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """No person's events may show in another's state, nor the events of one fold in those that follow."""
    before = _written(projection.empty())
    _folded(projection, events)
    assert _written(projection.empty()) == before, f"{projection.name}: `empty` gives the same object twice"


def a_fold_leaves_the_event_alone(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """The same event is folded by others, and written to the log."""
    before = [msgspec.json.encode(recorded) for recorded in events if _encodes(recorded)]
    _folded(projection, events)
    after = [msgspec.json.encode(recorded) for recorded in events if _encodes(recorded)]
    assert before == after, f"{projection.name}: folding changes the event"


def a_view_changes_nothing(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """Viewing twice tells the same twice, at any instant after the events, and leaves the state as it was."""
    state = _folded(projection, events)
    before = _written(state)
    newest = max((recorded.event.occurred_at for recorded in events), default=0)
    for now in (newest + 1, newest + random.randrange(1, 100 * DAY), newest + 20 * YEAR):
        inside = _edges(projection, state, events, now)
        first, second = (projection.view(state, now, inside) for _ in range(2))
        assert repr(first) == repr(second), f"{projection.name}: the second view differs"
        assert _written(state) == before, f"{projection.name}: viewing changes the state"
        if projection.depends.due is not None:
            due = projection.depends.due(state, now)
            assert due is None or due > now, f"{projection.name}: due at {due}, which is not after {now}"
            assert _written(state) == before, f"{projection.name}: asking when it is due changes the state"


def of_nobody_the_same_is_shown_at_all_times(
    projection: Projection, events: Sequence[Recorded], random: Random
) -> None:
    """What is said of nobody follows from the definitions alone, so that whoever asks may keep the answer."""
    empty = projection.empty()
    first, second = (projection.view(empty, random.randrange(100 * YEAR), []) for _ in range(2))
    assert repr(first) == repr(second), f"{projection.name}: time alone changes what is said of nobody"
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(first))
    assert repr(again) == repr(first), f"{projection.name}: what is said of nobody is no plain data"
    edges = projection.depends.edges
    assert edges is None or not edges(empty, random.randrange(100 * YEAR)), f"{projection.name}: nobody has no events"
    assert projection.depends.due is None or projection.depends.due(empty, random.randrange(100 * YEAR)) is None


def rows_fit_the_store(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """Rows are the same each time, and their keys and values are such as every store can hold."""
    if projection.index.rows is None:
        return
    state = _folded(projection, [recorded for recorded in events if _encodes(recorded)])
    rows = list(projection.index.rows(state, "default", _PERSON))
    assert rows == list(projection.index.rows(state, "default", _PERSON)), f"{projection.name}: rows differ"
    assert len({row[:3] for row in rows}) == len(rows), f"{projection.name}: two rows under one key"
    for row in rows:
        assert row.table in projection.index.tables, f"{projection.name}: its tables do not name {row.table!r}"
        sizes = [len(part.encode()) for part in row[:3]]
        assert all(0 < size <= KEY_BYTES_MAX for size in sizes), f"{projection.name}: a key of {sizes} bytes"
        assert sum(sizes) + len(row.value) <= ITEM_BYTES_MAX, f"{projection.name}: a row of {len(row.value)} bytes"
        assert "default" in row.partition, f"{projection.name}: {row.partition!r} is not of the workspace"


def a_view_has_what_it_may_have(projection: Projection, events: Sequence[Recorded], random: Random) -> None:
    """Every path into a view is one that `Depends` knows; else a condition on it would be refused as a mistake."""
    state = _folded(projection, events)
    newest = max((recorded.event.occurred_at for recorded in events), default=0)
    for now in (newest + 1, newest + random.randrange(1, 100 * DAY)):
        for path in _paths(projection.view(state, now, _edges(projection, state, events, now))):
            assert not (problem := lacking(projection, path)), f"{projection.name}: {problem}"


def lacking(projection: Projection, path: tuple[str, ...]) -> str:
    """Why a projection says that there never is a value at a path of its view; empty where there may be one."""
    depends = projection.depends
    if depends.parts is not None and (problem := depends.parts.lacks(path, projection.name, Names())):
        return problem
    if depends.lacks is not None and (problem := depends.lacks(path)):
        return problem
    return f"no event leads to {path}" if depends.feeds is not None and depends.feeds(path) == frozenset() else ""


def _paths(view: Any, to: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to each object and value inside a view. What details stand around, as ``{"value": …}``, is a value."""
    if to:
        yield to
    if type(view) is dict and "value" not in view:
        for name, inside in view.items():
            yield from _paths(inside, (*to, name))


LAWS: tuple[Law, ...] = (
    any_order_gives_an_equal_state,
    a_refold_equals_the_incremental_state,
    a_state_in_parts_does_as_the_plain_one,
    the_compiled_fold_equals_the_plain_one,
    an_event_that_touches_nothing_changes_nothing_that_is_seen,
    merging_two_states_equals_folding_the_union,
    an_empty_state_is_new_every_time,
    a_fold_leaves_the_event_alone,
    a_view_changes_nothing,
    of_nobody_the_same_is_shown_at_all_times,
    rows_fit_the_store,
    a_view_has_what_it_may_have,
)


def _handles(projection: Projection, recorded: Recorded) -> bool:
    type = recorded.event.type
    return not type.startswith("threadline.") if projection.handles is None else type in projection.handles


def _fold(projection: Projection, state: State, recorded: Recorded) -> State:
    return projection.after(state, recorded) if _handles(projection, recorded) else state


def _seen(projection: Projection, state: State, events: Sequence[Recorded], instants: Sequence[int]) -> list[Any]:
    """All that anybody sees of a state: its views and dues at these instants, and its rows."""
    seen: list[Any] = [
        (
            repr(projection.view(state, now, _edges(projection, state, events, now))),
            None if projection.depends.due is None else projection.depends.due(state, now),
        )
        for now in instants
    ]
    return [*seen, [] if projection.index.rows is None else sorted(projection.index.rows(state, "default", _PERSON))]


def _in_order(projection: Projection, events: Sequence[Recorded]) -> Sequence[Recorded]:
    if not projection.ordered:
        return events
    return sorted(events, key=lambda recorded: (recorded.event.occurred_at, recorded.id))


def _folded(projection: Projection, events: Sequence[Recorded]) -> State:
    state = projection.empty()
    for recorded in _in_order(projection, events):
        state = _fold(projection, state, recorded)
    return state


def _arrived(projection: Projection, events: Sequence[Recorded]) -> State:
    """The state of an ordered projection as the engine keeps it while events arrive in this order."""
    state, latest = projection.empty(), (-(1 << 63), "")
    for count, recorded in enumerate(events, 1):
        order = (recorded.event.occurred_at, recorded.id)
        if order >= latest or (projection.in_place is not None and projection.in_place(state, recorded)):
            state = _fold(projection, state, recorded)
        else:
            state = _folded(projection, events[:count])
        latest = max(latest, order)
    return state


def _edges(projection: Projection, state: State, events: Sequence[Recorded], now: int) -> list[Recorded]:
    if projection.depends.edges is None:
        return []
    edges = projection.depends.edges(state, now)
    inside = [event for event in events if any(edge.holds(event) for edge in edges)]
    return sorted(inside, key=lambda recorded: (recorded.event.occurred_at, recorded.id))


def _timeless(projection: Projection, state: State) -> State:
    return state if projection.timeless is None else projection.timeless(state)


def _encodes(recorded: Recorded) -> bool:
    """Whether the log would take this event at all."""
    try:
        return bool(msgspec.json.encode(recorded))
    except (ValueError, TypeError, RecursionError):
        return False


def _copied(state: State) -> State:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state))


def _written(state: Any) -> bytes:
    return msgspec.msgpack.encode(_copied(state), order="sorted")
