"""A sandbox: one person's history lived again in memory, where nothing can be sent and nothing is written."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.engine import wishes
from threadline.engine.sides import Judge, Side, Verdicts
from threadline.kernel.event import Event, Identifier, Recorded, event_id
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.policy import TIMER_FIRED, CancelTimer, Emit, Policy, Timer, Wish
from threadline.kernel.projection import Edge, State

TIMERS_MAX = 100_000
"""Timers that may fire in one life: a policy that sets one again and again must not hold up everybody else."""


class Parted(Exception):
    """What two judges want is not the same; the life that they shared is void, and each gets one of its own."""


class Judged(NamedTuple):
    """An event and what each judge decided about it."""

    recorded: Recorded
    verdicts: tuple[Verdicts, ...]


class Life:
    """One person, from their first event on. Events come in the order in which they became known."""

    def __init__(self, side: Side, workspace: str, person: str, identifiers: Mapping[str, Identifier]) -> None:
        self._side = side
        self.workspace = workspace
        self.person = person
        self._threads = identifiers
        self.identifiers = tuple(identifiers.values())
        self.states: list[State] = side.catalogue.empty()
        self.latest: tuple[int, str] = (-(1 << 63), "")
        self._events: list[tuple[int, str, Recorded]] = []
        """Everything that was folded, in occurred order."""
        self._timers: dict[tuple[str, str], tuple[int, str, dict[str, Any]]] = {}
        """(policy, key) -> when it is due, in which thread, what it was set with."""
        self._fired = 0
        self._now = 0
        self.judging = False
        """Whether the judges are asked: their range has begun."""
        self.judged: list[Judged] = []

    def live(self, recorded: Recorded) -> None:
        """One event of the log, after everything that was due before it."""
        now = recorded.known_at
        if self._timers:
            self.pass_time(now)
        self._now = now
        self._cascade(recorded)

    def pass_time(self, until: int) -> None:
        """Let every timer fire that is due by then."""
        while self._timers:
            (policy, key), (due_at, thread, data) = min(self._timers.items(), key=lambda each: (each[1][0], each[0]))
            if due_at > until:
                return
            self._fired += 1
            if self._fired > TIMERS_MAX:
                raise RuntimeError(f"policy {policy} keeps setting timers: {TIMERS_MAX:,} have fired for one person")
            del self._timers[policy, key]
            self._now = max(self._now, due_at)
            properties = {"policy": policy, "key": key, "data": data}
            fired = Emit(type=TIMER_FIRED, key=f"{thread}/{key}/{due_at}", occurred_at=due_at, properties=properties)
            self._cascade(self._made(thread, f"sandbox:{policy}", "", fired))

    def known(self, at: int) -> Known:
        """The person at an instant after the last event, for who looks at the end."""
        return Known(self, "", at, whole=False)

    # --- one event ----------------------------------------------------------------------------

    def _cascade(self, first: Recorded) -> None:
        """As `threadline.engine.cascade` does it, within the same bounds."""
        self._append(first)
        queue = [first]
        added, writes = 0, 2
        while queue:
            recorded = queue.pop(0)
            reactors = self._side.step(recorded.event.type).reactors
            if not reactors:
                continue
            at = max(recorded.known_at, recorded.event.occurred_at) + 1
            for policy in reactors:
                # What an earlier one has added is there for the next one, so that each looks for itself.
                known = Known(self, recorded.event.type, at, whole=policy is not None)
                for name, wish in self._wishes(policy, recorded, known):
                    writes += 2 if wish is None else wishes.writes_of(self._side.catalogue, wish)
                    if added == CASCADE_EVENTS_MAX - 1 or writes > 2 * CASCADE_EVENTS_MAX:
                        return
                    added += 1
                    emitted = None if wish is None else self._grant(recorded, name, wish)
                    if emitted is not None:
                        queue.append(emitted)

    def _wishes(self, policy: Policy | None, recorded: Recorded, known: Known) -> Iterator[tuple[str, Wish | None]]:
        if policy is None:
            yield from self._decide(recorded, known)
        elif wishes.concerns(policy, recorded):
            for wish in policy.react(recorded, known):
                yield policy.name, wish

    def _decide(self, recorded: Recorded, known: Known) -> Iterator[tuple[str, Wish | None]]:
        if not self.judging:
            return
        asked = self._side.step(recorded.event.type).judges
        judges = self._side.judges[:asked]
        verdicts = tuple([judge.judge(recorded, known) for judge in judges])
        self.judged.append(Judged(recorded, verdicts if len(judges) == len(self._side.judges) else verdicts * 2))
        if not any(verdicts):
            return
        wanted = [judge.wishes(recorded, each, self._matters) for judge, each in zip(judges, verdicts, strict=True)]
        if len(wanted) > 1 and self._seen(judges[0], wanted[0]) != self._seen(judges[1], wanted[1]):
            raise Parted
        for wish in wanted[0]:
            yield judges[0].name, wish

    def _seen(self, judge: Judge, wanted: Sequence[Wish | None]) -> list[Any]:
        """What of these wishes changes anything that is looked at."""
        return [judge.alike(wish) for wish in wanted if isinstance(wish, Emit) and self._matters(wish.type)]

    def _matters(self, event_type: str) -> bool:
        return self._side.step(event_type).matters

    def _grant(self, cause: Recorded, policy: str, wish: Wish) -> Recorded | None:
        """Carry a wish into this life. What would be sent goes nowhere: there is no outbox here."""
        if isinstance(wish, Emit):
            if not self._matters(wish.type):
                return None
            recorded = self._made(cause.thread, f"policy:{policy}", cause.id, wish)
            self._append(recorded)
            return recorded
        if isinstance(wish, Timer):
            pending = self._timers.get((policy, wish.key))
            if not wishes.stays(wish, () if pending is None else pending[:1]):
                self._timers[policy, wish.key] = (wish.due_at, cause.thread, wish.data)
        elif isinstance(wish, CancelTimer):
            self._timers.pop((policy, wish.key), None)
        return None

    def _made(self, thread: str, source: str, cause: str, wish: Emit) -> Recorded:
        event = Event(
            type=wish.type, identifiers=(self._threads[thread],), occurred_at=wish.occurred_at,
            key=f"{cause}/{wish.key}", source=source, source_type="internal", workspace=self.workspace,
            properties=wish.properties, received_at=self._now,
        )  # fmt: skip
        return Recorded(event, event_id(event.workspace, source, event.key), thread, 0, self._now, cause)

    def _append(self, recorded: Recorded) -> None:
        event = recorded.event
        folds = self._side.step(event.type).folds
        if not folds:
            return
        entry = (event.occurred_at, recorded.id, recorded)
        late = entry[:2] < self.latest
        if late:
            insort(self._events, entry, key=lambda each: each[:2])
        else:
            self._events.append(entry)
            self.latest = entry[:2]
        for index, fold in folds:
            if late and self._needs_order(index, recorded):
                self.states[index] = self._refolded(index, 1 << 63)
            else:
                self.states[index] = fold(self.states[index], recorded)

    def _needs_order(self, index: int, recorded: Recorded) -> bool:
        projection = self._side.catalogue.projections[index]
        if not projection.ordered:
            return False
        return projection.in_place is None or not projection.in_place(self.states[index], recorded)

    def _refolded(self, index: int, stop: int) -> State:
        projection = self._side.catalogue.projections[index]
        state = projection.empty()
        for at, _, recorded in self._events:
            if at >= stop:
                break
            for folded, fold in self._side.step(recorded.event.type).folds:
                if folded == index:
                    state = fold(state, recorded)
        return state

    # --- what is asked ------------------------------------------------------------------------

    def index(self, name: str, whole: bool) -> int | None:
        """See `Side.index`."""
        return self._side.index(name, whole)

    def state(self, index: int, at: int) -> State:
        """The state of a projection that holds at an instant."""
        return self.states[index] if self.latest[0] < at else self._refolded(index, at)

    def view(self, index: int, at: int, whole: bool) -> Any:
        """What a projection says at an instant."""
        view, edges = self._side.look(index, whole)
        state = self.state(index, at)
        wanted = edges(state, at) if edges is not None else []
        return view(state, at, self._at_edges(wanted) if wanted else [])

    def events(self, edge: Edge) -> list[Recorded]:
        """The events in a range, as far as anything that is looked at folds their types."""
        return self._at_edges([edge])

    def due(self, index: int, at: int) -> int | None:
        """The next instant after that at which it changes by time alone."""
        due = self._side.catalogue.projections[index].due
        return None if due is None else due(self.state(index, at), at)

    def ahead(self, at: int) -> int | None:
        """The next instant after that from which on a further event counts that is known already."""
        if self.latest[0] < at:
            return None
        return self._events[bisect_left(self._events, (at, ""), key=lambda each: each[:2])][0] + 1

    def of_nobody(self, name: str, at: int) -> Any:
        """What a projection says of somebody of whom nothing is known."""
        return self._side.catalogue.of_nobody(name, at)

    def _at_edges(self, edges: list[Edge]) -> list[Recorded]:
        found: list[Recorded] = []
        for edge in edges:  # they come sorted and apart
            first, last = (bisect_left(self._events, (at, ""), key=lambda each: each[:2]) for at in edge[:2])
            found += filter(edge.holds, (each[2] for each in self._events[first:last]))
        return found

    def touches(self, event_type: str, name: str, path: tuple[str, ...]) -> bool:
        """Whether an event of a type can change what stands at a path of a view."""
        return self._side.catalogue.touches(event_type, name, path)

    def heeded(self, type: str) -> bool:
        """Whether a judge or a policy that lives again names events of this type."""
        return any(policy is None or policy.names_types for policy in self._side.step(type).reactors)

    def shared(self, name: str) -> Any:
        """What policies share under a name."""
        return self._side.shared[name]


class Known:
    """What a policy or a judge sees; see `threadline.kernel.policy.Known`."""

    __slots__ = ("_life", "_type", "_views", "_whole", "at")

    def __init__(self, life: Life, event_type: str, at: int, *, whole: bool) -> None:
        self._life = life
        self._type = event_type
        self._whole = whole
        self._views: dict[str, Any] = {}
        self.at = at

    @property
    def person(self) -> str:
        """The person's id."""
        return self._life.person

    @property
    def workspace(self) -> str:
        """Where the person lives."""
        return self._life.workspace

    @property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The identifiers that name the person."""
        return self._life.identifiers

    def __getitem__(self, name: str) -> State:
        index = self._life.index(name, self._whole)
        if index is None:
            raise KeyError(name)
        return self._life.states[index]

    def get(self, name: str, default: Any = None) -> State:
        """The state of a projection, or ``default`` if there is none of that name."""
        index = self._life.index(name, self._whole)
        return default if index is None else self._life.states[index]

    def opened(self, name: str) -> State:
        """The state of a projection; nothing is ever packed here."""
        return self[name]

    def view(self, name: str, at: int | None = None) -> Any:
        """What a projection says at `at`, or at another instant; None if there is none of that name."""
        if at is None or at == self.at:
            if name not in self._views:
                self._views[name] = self._view(name, self.at)
            return self._views[name]
        return self._view(name, at)

    def _view(self, name: str, at: int) -> Any:
        index = self._life.index(name, self._whole)
        return None if index is None else self._life.view(index, at, self._whole)

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """The person's events in a range, of types that a projection folds."""
        # Events are there only from when on somebody looks at the whole of a projection that folds them.
        self._life.index(name, True)
        return self._life.events(edge)

    def due(self, name: str, at: int | None = None) -> int | None:
        """The next instant after `at` at which that view changes by time alone; None: never, or not told."""
        index = self._life.index(name, self._whole)
        return None if index is None else self._life.due(index, self.at if at is None else at)

    def ahead(self, at: int | None = None) -> int | None:
        """The next instant after `at` from which on a further event counts that is known already; None: none."""
        return self._life.ahead(self.at if at is None else at)

    def of_nobody(self, name: str) -> Any:
        """What a projection says of somebody of whom nothing is known; None if there is none of that name."""
        return self._life.of_nobody(name, self.at)

    def touches(self, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change what stands at a path of a projection's view."""
        return self._life.touches(self._type, name, path)

    def heeded(self, type: str) -> bool:
        """Whether a policy names events of this type, so that each may bring more with it in the same commit."""
        return self._life.heeded(type)

    def shared(self, name: str) -> Any:
        """What policies share under this name."""
        return self._life.shared(name)
