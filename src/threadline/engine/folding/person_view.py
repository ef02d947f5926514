"""What a policy is shown of a person: states and views in the middle of a group or of a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from threadline.engine.folding.as_of import Scene, due_at, next_ahead, states_at, view_at
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.projection import Edge, Look, Projection, State


class Places(Protocol):
    """The place of each projection among a person's states, by name."""

    def __getitem__(self, name: str, /) -> int: ...

    def get(self, name: str, /) -> int | None:
        """None if there is none of that name."""
        ...


class PolicyScene(Scene, Protocol):
    """Where policies react to events."""

    @property
    def catalogue(self) -> Catalogue:
        """What there is to know."""
        ...

    @property
    def index(self) -> Places:
        """Where to find it."""
        ...

    def look(self, index: int) -> Look | Projection:
        """How a projection is looked at."""
        ...

    def heeded(self, workspace: str, type: str) -> bool:
        """See `threadline.kernel.policy.Known`."""
        ...

    def shared(self, workspace: str, name: str) -> Any:
        """What a policy's `Shared` of this name is made of now."""
        ...


class KnownPerson:
    """The engine's `threadline.kernel.policy.Known`. Nothing is unpacked or computed before somebody asks for it."""

    __slots__ = ("_person", "_position", "_scene", "_type", "_views", "at", "room_left")

    def __init__(self, scene: PolicyScene, person: Person, event_type: str, at: int) -> None:
        self._scene = scene
        self._person = person
        self._views: dict[str, Any] = {}
        self._position = -1
        self._type = event_type
        self.at = at
        self.room_left: Callable[[], int] | None = None
        """Tells a policy that is asked how many more wishes may come of the cause."""

    @property
    def room(self) -> int:
        """How many more wishes may come of the cause; outside of a cascade none."""
        return 0 if self.room_left is None else self.room_left()

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

    def __getitem__(self, name: str) -> State:
        """The state of a projection; `KeyError` if there is none of that name."""
        return self._person.states[self._scene.index[name]]

    def get(self, name: str, default: Any = None) -> State:
        """The state of a projection, or ``default`` if there is none of that name."""
        index = self._scene.index.get(name)
        return default if index is None else self._person.states[index]

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
        index = self._scene.index.get(name)
        if index is None:
            return None
        # The person may have events after that instant, for example from the future, which do not count at it.
        state = states_at(self._scene, self._person, at, (index,))[index]
        return view_at(self._scene.look(index), state, at, self._at_edges)

    def _at_edges(self, edges: Sequence[Edge]) -> list[Recorded]:
        return self._scene.history(self._person).at_edges(edges)

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """The person's events in a range, of types that a projection folds, those of the same commit included."""
        handles = self._scene.catalogue.projections[self._scene.index[name]].handles
        assert edge.types, "what a policy asks the log for is a few types"
        assert handles is None or edge.types <= handles, edge
        return self._at_edges([edge])

    def due(self, name: str, at: int | None = None) -> int | None:
        """The next instant after `at` at which that view changes by time alone; None: never, or not told."""
        index = self._scene.index.get(name)
        return None if index is None else due_at(self._scene, self._person, index, self.at if at is None else at)

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which on a further event counts that is there already; None: none."""
        return next_ahead(self._scene, self._person, self.at if at is None else at)

    def of_nobody(self, name: str) -> Any:
        """What a projection says of somebody of whom nothing is known; None if there is none of that name."""
        return self._scene.catalogue.of_nobody(name, self.at)

    def touches(self, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change what stands at a path of a projection's view."""
        return self._scene.catalogue.touches(self._type, name, path)

    def heeded(self, type: str) -> bool:
        """Whether a policy names events of this type, so that each may bring more with it in the same commit."""
        return self._scene.heeded(self._person.workspace, type)

    def shared(self, name: str) -> Any:
        """What the policies' `Shared` of this name is made of now."""
        return self._scene.shared(self._person.workspace, name)
