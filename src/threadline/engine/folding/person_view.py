"""A person at an instant, as readers and policies see them: in the store, in an attempt, in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import History
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import folded_before
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.projection import Edge, Look, State


class Scene(Protocol):
    """Where a view of a person reads: the store, an attempt before its commit, or a sandbox."""

    def history(self, person: Person) -> History:
        """The events that are folded in the person's states."""
        ...


def states_at(scene: Scene, person: Person, instant: int, only: Sequence[int] | None = None) -> Sequence[State]:
    """The states at an instant: the present ones, or a fold of the history where these include later events.

    ``only``: no other projections are needed.
    """
    if person.latest[0] < instant:
        return person.states
    history = scene.history(person)
    if person.provisional is not None:
        states = person.provisional.at(instant, lambda start: history.between(start, instant), only)
        if states is not None:
            return states
    return folded_before(person.states.folding, history, instant, only)


def view_at(look: Look, state: State, instant: int, events: Callable[[Sequence[Edge]], list[Recorded]]) -> Any:
    """The view of a state at an instant; ``events`` reads the single events that the view needs."""
    edges = look.edges(state, instant) if look.edges is not None else []
    return look.view(state, instant, events(edges) if edges else [])


def next_ahead(scene: Scene, person: Person, instant: int) -> int | None:
    """The next instant after that from which on a further event counts that is there already; None: none."""
    first = None if person.latest[0] < instant else scene.history(person).next_at(instant)
    return None if first is None else first + 1


class Places(Protocol):
    """The place of each projection among a person's states, by name."""

    def __getitem__(self, name: str, /) -> int: ...

    def get(self, name: str, /) -> int | None:
        """None if there is none of that name."""
        ...


class ViewScene(Scene, Protocol):
    """Where people are looked at."""

    @property
    def catalogue(self) -> Catalogue:
        """What there is to know."""
        ...

    @property
    def index(self) -> Places:
        """Where to find it."""
        ...

    def look(self, index: int) -> Look:
        """How a projection is looked at."""
        ...


class PolicyScene(ViewScene, Protocol):
    """Where policies react to events."""

    def handled(self, workspace: str, type: str) -> bool:
        """See `threadline.kernel.policy.PolicyView`."""
        ...

    def shared(self, workspace: str, name: str) -> Any:
        """The current value of the `Shared` of this name."""
        ...


class FoldedPersonView:
    """The engine's `threadline.kernel.person_view.PersonView`. Nothing is unpacked or computed before it is read."""

    __slots__ = ("_person", "_position", "_scene", "_views", "at")

    def __init__(self, scene: ViewScene, person: Person, at: int) -> None:
        self._scene = scene
        self._person = person
        self._views: dict[str, Any] = {}
        self._position = -1
        self.at = at

    @property
    def person(self) -> str:
        """The person's id."""
        return self._person.id

    @property
    def workspace(self) -> str:
        """The workspace of the person."""
        return self._person.workspace

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The identifiers of the person."""
        return tuple(self._person.identifiers.values())

    def view(self, name: str, at: int | None = None) -> Any:
        """A projection's view at `at`, or at another instant; None if there is no such projection."""
        if at is not None and at != self.at:
            return self._view(name, at)
        if self._position != self._person.position:
            # An earlier policy may have added events.
            self._views.clear()
            self._position = self._person.position
        if name not in self._views:
            self._views[name] = self._view(name, self.at)
        return self._views[name]

    def _view(self, name: str, at: int) -> Any:
        index = self._scene.index.get(name)
        if index is None:
            return None
        # Events after that instant, such as those ahead of the clock, do not count at it.
        return view_at(self._scene.look(index), self._state(index, at), at, self._at_edges)

    def _state(self, index: int, at: int) -> State:
        return states_at(self._scene, self._person, at, (index,))[index]

    def _at_edges(self, edges: Sequence[Edge]) -> list[Recorded]:
        return self._scene.history(self._person).at_edges(edges)

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """The person's events in a range, of types that a projection folds, those of the same commit included."""
        handles = self._scene.catalogue.projections[self._scene.index[name]].handles
        assert edge.types, "what a policy asks the log for is a few types"
        assert handles is None or edge.types <= handles, edge
        return self._at_edges([edge])

    def due(self, name: str, at: int | None = None) -> int | None:
        """The next instant after `at` at which that view changes through time alone; None: never, or unknown."""
        index = self._scene.index.get(name)
        due = None if index is None else self._scene.catalogue.projections[index].depends.due
        instant = self.at if at is None else at
        return None if index is None or due is None else due(self._state(index, instant), instant)

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which a further event in the log counts; None: there is none."""
        return next_ahead(self._scene, self._person, self.at if at is None else at)


class AsKnownPersonView(FoldedPersonView):
    """A person by what was known at an instant: the scene's history has no other events, and states are folded from
    it."""

    __slots__ = ()

    def _state(self, index: int, at: int) -> State:
        return folded_before(self._scene.catalogue, self._scene.history(self._person), at, (index,))[index]

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which a further event that was known counts; None: there is none."""
        first = self._scene.history(self._person).next_at(self.at if at is None else at)
        return None if first is None else first + 1


class ReactingPersonView(FoldedPersonView):
    """The engine's `threadline.kernel.policy.PolicyView`."""

    __slots__ = ("_policies", "_type", "room_left")

    def __init__(self, scene: PolicyScene, person: Person, event_type: str, at: int) -> None:
        super().__init__(scene, person, at)
        self._policies = scene
        self._type = event_type
        self.room_left: Callable[[], int] | None = None
        """How many more wishes may come of the cause; None outside of a cascade."""

    @property
    def room(self) -> int:
        """How many more wishes may come of the cause; outside of a cascade none."""
        return 0 if self.room_left is None else self.room_left()

    def __getitem__(self, name: str) -> State:
        """The state of a projection; `KeyError` if there is none of that name."""
        return self._person.states[self._scene.index[name]]

    def get(self, name: str, default: Any = None) -> State:
        """The state of a projection, or ``default`` if there is none of that name."""
        index = self._scene.index.get(name)
        return default if index is None else self._person.states[index]

    def of_nobody(self, name: str) -> Any:
        """A projection's view of somebody about whom nothing is known; None if there is no such projection."""
        return self._scene.catalogue.of_nobody(name, self.at)

    def touches(self, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change the value at a path of a projection's view."""
        return self._scene.catalogue.touches(self._type, name, path)

    def handled(self, type: str) -> bool:
        """Whether a policy names events of this type, so that each may lead to more in the same commit."""
        return self._policies.handled(self._person.workspace, type)

    def shared(self, name: str) -> Any:
        """The current value of the `Shared` of this name."""
        return self._policies.shared(self._person.workspace, name)
