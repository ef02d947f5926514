"""What a policy is shown of a person: states and views in the middle of a group, before anything is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from threadline.engine.ahead import next_ahead, state_before
from threadline.engine.person import Person
from threadline.engine.refold import occurred_order, thread_events
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.projection import Edge, State

if TYPE_CHECKING:
    from threadline.engine.group import Group


class KnownPerson:
    """The engine's `threadline.kernel.policy.Known`. Nothing is unpacked or reckoned before somebody asks for it."""

    __slots__ = ("_group", "_person", "_position", "_type", "_views", "at")

    def __init__(self, group: Group, person: Person, recorded: Recorded) -> None:
        self._group = group
        self._person = person
        self._views: dict[str, Any] = {}
        self._position = -1
        self._type = recorded.event.type
        # An event from a clock that runs ahead is no later for what is decided because of it.
        self.at = max(recorded.recorded_at, recorded.event.occurred_at) + 1

    @property
    def person(self) -> str:
        """The person's id."""
        return self._person.id

    @property
    def workspace(self) -> str:
        """Where the person lives."""
        return self._person.workspace

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The identifiers that name the person."""
        return tuple(self._person.identifiers.values())

    def __contains__(self, name: object) -> bool:
        return name in self._group.catalogue.index

    def __getitem__(self, name: str) -> State:
        """The state of a projection; `KeyError` if there is none of that name."""
        return self._person.states[self._group.catalogue.index[name]]

    def get(self, name: str, default: Any = None) -> State:
        """The state of a projection, or ``default`` if there is none of that name."""
        index = self._group.catalogue.index.get(name)
        return default if index is None else self._person.states[index]

    def opened(self, name: str) -> State:
        """The state of a projection, of which parts that nothing has touched may still be packed."""
        return self._person.states.opened(self._group.catalogue.index[name])

    def view(self, name: str, at: int | None = None) -> Any:
        """What a projection says at `at`, or at another instant; None if there is none of that name."""
        if at is not None and at != self.at:
            return self._view(name, at)
        if self._position != self._person.position:
            # A policy that came before may have added events of its own.
            self._views.clear()
            self._position = self._person.position
        if name not in self._views:
            self._views[name] = self._view(name, self.at)
        return self._views[name]

    def _view(self, name: str, at: int) -> Any:
        if name not in self:
            return None
        projection = self._group.catalogue.projections[self._group.catalogue.index[name]]
        state = self._state(name, at)
        edges = projection.edges(state, at) if projection.edges is not None else []
        return projection.view(state, at, self._edge_events(edges) if edges else [])

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """The person's events in a range, of types that a projection folds, those of the same commit included."""
        handles = self._group.catalogue.projections[self._group.catalogue.index[name]].handles
        assert edge.types, "what a policy asks the log for is a few types"
        assert handles is None or edge.types <= handles, edge
        return self._edge_events([edge])

    def due(self, name: str, at: int | None = None) -> int | None:
        """The next instant after `at` at which that view changes by time alone; None: never, or not told."""
        if name not in self:
            return None
        due = self._group.catalogue.projections[self._group.catalogue.index[name]].due
        at = self.at if at is None else at
        return None if due is None else due(self._state(name, at), at)

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which on a further event counts that is there already; None: none."""
        return next_ahead(self._group, self._person, self.at if at is None else at)

    def of_nobody(self, name: str) -> Any:
        """What a projection says of somebody of whom nothing is known; None if there is none of that name."""
        return self._group.catalogue.of_nobody(name, self.at)

    def touches(self, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change what stands at a path of a projection's view."""
        return self._group.catalogue.touches(self._type, name, path)

    def heeded(self, type: str) -> bool:
        """Whether a policy names events of this type, so that each may bring more with it in the same commit."""
        return any(policy.names_types for policy in self._group.reactors.of(self._person.workspace, type))

    def shared(self, name: str) -> Any:
        """What the policies' `Shared` of this name is made of now."""
        return self._group.reactors.shared(self._person.workspace, name)

    def _state(self, name: str, at: int) -> State:
        # The person may have events after that instant, for example from the future, which do not count at it.
        return state_before(self._group, self._person, self._group.catalogue.index[name], at)

    def _edge_events(self, edges: Sequence[Edge]) -> list[Recorded]:
        pending = self._group.pending_of(self._person)
        found = {each.id: each for each in pending if any(edge.holds(each) for edge in edges)}
        for edge in edges:
            for recorded in thread_events(self._group.store, self._group.stored_heads(self._person), *edge):
                found[recorded.id] = recorded
        return sorted(found.values(), key=occurred_order)
