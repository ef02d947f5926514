"""A projection: a pure fold of events into state, read at an instant. A value, not a class to inherit from.

A reducer, or an aggregate, of one person's event stream: a counter, a profile trait, a feature, a score, a materialised
view per customer. It is updated in the commit that records the event, replayed when its version changes, and read as of
any instant.

    >>> from threadline.kernel.projection import Projection
    >>> orders = Projection(
    ...     name="orders", version=1, handles=frozenset({"purchase_completed"}),
    ...     empty=lambda: {"count": 0},
    ...     fold=lambda state, recorded: {"count": state["count"] + 1},
    ...     view=lambda state, now, edges: state["count"],
    ... )
    >>> orders.view(orders.after(orders.empty(), None), 0, [])
    1

| option | for |
|---|---|
| ``ordered``, ``in_place`` | a fold in which order matters: late events fold the person again from the log |
| ``index`` | rows by which people, or single events, are found |
| ``depends`` | a view that changes with time (windows, expiry), or needs single events again |
| ``faster`` | the same result in less time: a compiled fold, a partial view, a merge of two states |
| ``fingerprint`` | a fold that definitions shape |
| ``carries`` | a state that outlives its events, see `threadline.kernel.opening` |

The laws to try it by are `threadline.testing.projection_laws`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from threadline.kernel.event import Recorded
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.view_parts import Parts

State = Any
"""Plain data that MessagePack can hold: dict, list, int, float, str, bool, None. Keys of dicts are text."""

Fold = Callable[[State, Recorded], State | None]
"""Takes an event into a state; answers the state to keep, or None if nothing that anybody sees has changed."""


class Edge(NamedTuple):
    """A half-open range of occurred times, microseconds, whose events of these types a view needs one by one."""

    start: int
    stop: int
    types: frozenset[str] = frozenset()
    """Empty: every type."""

    def holds(self, recorded: Recorded) -> bool:
        """Whether an event lies in this range and has one of these types."""
        event = recorded.event
        return self.start <= event.occurred_at < self.stop and (not self.types or event.type in self.types)


class Row(NamedTuple):
    """An index row that a state asks for: (table, partition, sort) -> value. Partitions are per workspace."""

    table: str
    partition: str
    sort: str
    value: bytes = b""


class Look(NamedTuple):
    """A view, and the single events that it needs."""

    view: Callable[[State, int, list[Recorded]], Any]
    edges: Callable[[State, int], list[Edge]] | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The index rows that a projection asks for."""

    rows: Callable[[State, str, str], Iterable[Row]] | None = None
    """Rows of a state: (state, workspace, person id) -> rows; only the difference is written."""
    event_rows: Callable[[Recorded], Iterable[Row]] | None = None
    """Rows of single events, for finding events other than by their person. Like events they stay for good, whoever
    the person is, and no state has to remember them. Each costs a write."""
    tables: tuple[str, ...] = ()
    """The tables of these rows, which hold nothing else: they are rewritten when the projection has changed."""
    complete: bool = False
    """True: readers of the rows rely on everybody's being written and no others, and make sure of that themselves. The
    rows of other projections are brought up to date by a refold; see `engine/maintenance/indexes.py`."""


@dataclass(frozen=True, slots=True)
class Depends:
    """What a view depends on besides the state and the instant."""

    edges: Callable[[State, int], list[Edge]] | None = None
    """The single events that the view needs again at an instant."""
    due: Callable[[State, int], int | None] | None = None
    """The next instant after ``now`` at which the view changes through time alone; None: never."""
    feeds: Callable[[tuple[str, ...]], frozenset[str] | None] | None = None
    """The event types that can change the value at a path of the view, apart from time. Empty: there is nothing at
    that path and never will be. None, as without this function: any type that is handled."""
    parts: Parts | None = None
    """What can stand in the view; None: anything, or `feeds` and `lacks` know."""
    lacks: Callable[[tuple[str, ...]], str] | None = None
    """Why there never is a value at a path, with what to write instead; empty where there may be."""
    content: Callable[[tuple[str, ...]], str] | None = None
    """A hash of the definitions that decide the value at a path of the view. None: the whole section of definitions
    that has the projection's name decides it."""


@dataclass(frozen=True, slots=True)
class Faster:
    """Optional ways to the same result in less time."""

    fold: Callable[[str], Fold | None] | None = None
    """A faster fold for one event type, equal to `Projection.fold`; None where the type has no effect."""
    view: Callable[[frozenset[str]], Look] | None = None
    """A faster view that need only give what is under these names, where it equals `Projection.view`."""
    merge: Callable[[State, State], State | None] | None = None
    """The state of the union of two people's events, made of their two states: bit for bit what `Projection.fold` makes
    of these events in occurred order. It may change and reuse both. None, as without this function, where only the
    events can tell; then it has left both as they were. It spares a join reading the log."""


def is_handled(handles: frozenset[str] | None, event_type: str) -> bool:
    """Whether events of a type are among those that are handled; None: every type but system types."""
    return not event_type.startswith(SYSTEM_PREFIX) if handles is None else event_type in handles


@dataclass(frozen=True, slots=True)
class Projection:
    """How one kind of knowledge about a person is derived from the person's events.

    `fold` has no clock, no I/O, no randomness. It may change the state it is given and returns the state to
    keep; it must never raise, whatever a payload holds. It returns None if the event has not touched it: no
    view, at any instant, no index row and no due instant is another one than before, so that no policy that reads
    it need be asked. The state may have changed all the same, by what is kept for later. Unless `ordered` is
    set a fold commutes: any order of the same events gives an equal state. An `ordered` projection is folded
    in (occurred_at, id) order, and folded again from the log when an event arrives late.

    `view` says what the state means at ``now``. Only events before ``now`` may count; the engine makes
    sure that the state holds none later. Where the view needs single events again (at the cut edge of a
    window) `Depends.edges` names them, and the engine passes them in, each once, in (occurred_at, id) order. Before any
    event a state shows the same at every instant, in plain data: that is read once, for everybody.
    """

    name: str
    version: int
    handles: frozenset[str] | None
    """The event types folded; None for every type. System types (``threadline.``) only if named."""
    empty: Callable[[], State]
    fold: Fold
    view: Callable[[State, int, list[Recorded]], Any]
    depends: Depends = Depends()
    index: Index = Index()
    faster: Faster = Faster()
    never_ahead: frozenset[str] = frozenset()
    """Event types that say what is so from now on: one that this process itself dates ahead of the clock counts at
    once, and bears the time of its receipt."""
    ordered: bool = False
    in_place: Callable[[State, Recorded], bool] | None = None
    """For an `ordered` one: whether a late event may be folded into this state as it is, because the result is the
    same as in occurred order. It saves reading the log."""
    in_parts: bool = False
    """Whether a state that is a large dict may come as a `PackedDict`, which unpacks what is asked for. Then no part of
    it may be handed on in a view as it is."""
    fingerprint: str = ""
    """A hash of whatever definitions shape the fold; states of another fingerprint are folded again."""
    carries: Mapping[str, str] | None = None
    """What stays of events that are erased by their age: by the name of each part of the state that stands for itself,
    what shapes it; under an empty name the whole state. Then it commutes, `Faster.merge` answers for any two states,
    and no view needs such an event again. None: it cannot, and a rule of retention about what it folds is refused."""
    timeless: Callable[[State], State] | None = None
    """A state without what depends on the order of arrival on purpose (times of recording); None: nothing does."""

    @property
    def look(self) -> Look:
        """The whole view."""
        return Look(self.view, self.depends.edges)

    def fold_of(self, event_type: str) -> Fold | None:
        """The fold for events of one type, compiled where there is one; None where they have no effect."""
        if not is_handled(self.handles, event_type):
            return None
        return compiled(event_type) if (compiled := self.faster.fold) is not None else self.fold

    def after(self, state: State, recorded: Recorded) -> State:
        """The state with one more event in it, of a type that is handled."""
        folded = self.fold(state, recorded)
        return state if folded is None else folded
