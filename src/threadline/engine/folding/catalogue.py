"""The catalogue: every projection, policy and operation in force, found by discovery and indexed by event type."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property, partial
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from threadline.engine.folding.capabilities import Capabilities, shipped
from threadline.kernel.capability import Capability
from threadline.kernel.errors import InvalidDefinition, NotFound
from threadline.kernel.event import Event, Recorded
from threadline.kernel.event_counter import EventCounter
from threadline.kernel.event_type import EventType, EventTypes
from threadline.kernel.identity import IdentityRules
from threadline.kernel.ids import short_hash
from threadline.kernel.job_kind import JobKind
from threadline.kernel.lasting import Expiring, Lasting, erased_too_soon
from threadline.kernel.names import NameKind, Names, hint
from threadline.kernel.opening import OPENING, fold_opening
from threadline.kernel.operation import Inspection, Operation, Refresh
from threadline.kernel.personal import PersonFile, Remainder, StoreTable
from threadline.kernel.policy import Policy, Read, Reliance, Shared
from threadline.kernel.preparation import Guard, Preparation
from threadline.kernel.projection import Fold, Projection, Row, State, is_handled
from threadline.kernel.public_route import PublicRoute
from threadline.kernel.reading import Readings, ReadValues
from threadline.kernel.requirement import Requirement
from threadline.kernel.screen import Screen
from threadline.kernel.section import Declarations, Section
from threadline.kernel.sender import Queue, SenderFactory
from threadline.kernel.sql_view import SqlView


class Plan(NamedTuple):
    """What an event of one type changes."""

    steps: tuple[tuple[int, Fold], ...]
    """Index of each projection touched, and the fold, compiled where there is one."""
    rows: tuple[int, ...]
    """Index of each projection whose index rows may change."""
    marks: tuple[Callable[[Recorded], Iterable[Row]], ...] = ()
    """Functions that give the rows of the event itself."""


class Folding(Protocol):
    """The projections that are folded: all of a catalogue, or those that a simulation reads."""

    @property
    def projections(self) -> tuple[Projection, ...]:
        """In the order of a person's states."""
        ...

    @property
    def event_types(self) -> EventTypes:
        """What is declared of types of events."""
        ...

    def plan(self, event_type: str) -> Plan:
        """What an event of this type changes."""
        ...

    def empty(self) -> list[State]:
        """The states before any event, in the order of `projections`."""
        ...


class Nothing(NamedTuple):
    """A projection of which a person has had no event: its state, and its view, which is then the same at any time."""

    state: State
    packed: bytes
    """The same as MessagePack: to Python 0 equals false, to who reads a state it may not."""
    view: bytes
    """As MessagePack, so that nobody changes that of others."""


OWN = ("threadline.senders", "threadline.engine.event_types", "threadline.engine.maintenance.store_tables")
"""What is declared beside the capabilities, and always in force."""
_pack = msgspec.msgpack.Encoder().encode

PLANS_CACHED = 10_000
"""Bound of caches by event type: producers choose types freely."""


class Catalogue:
    """Everything declared. Immutable once built, apart from its caches of plans."""

    def __init__(
        self,
        values: Iterable[object],
        rules: IdentityRules,
        definitions: Declarations | None = None,
        capabilities: Capabilities | None = None,
        off: _SwitchedOff | None = None,
    ) -> None:
        declared = list(values)
        self.capabilities = Capabilities(shipped()) if capabilities is None else capabilities
        """Those in force, and those that are there and switched off."""
        self._off = off or _SwitchedOff([], {}, [])
        self.rules = rules
        self.definitions = definitions
        """What users declared, from which `variant` makes another; None without definitions."""
        self._failed = frozenset() if definitions is None else definitions.failed
        self.projections: tuple[Projection, ...] = _unique(v for v in declared if isinstance(v, Projection))
        self.policies: tuple[Policy, ...] = _unique(v for v in declared if isinstance(v, Policy))
        self._policies = {policy.name: policy for policy in self.policies}
        self.operations: tuple[Operation, ...] = _unique(v for v in declared if isinstance(v, Operation))
        self.sections: tuple[Section, ...] = _unique(v for v in declared if isinstance(v, Section))
        self.inspections: tuple[Inspection, ...] = _unique(v for v in declared if isinstance(v, Inspection))
        self.refreshes: tuple[Refresh, ...] = _unique(v for v in declared if isinstance(v, Refresh))
        self.job_kinds = {kind.name: kind for kind in _unique(v for v in declared if isinstance(v, JobKind))}
        self.queues = {queue.name: queue for queue in _unique(v for v in declared if isinstance(v, Queue))}
        self.senders: tuple[SenderFactory, ...] = _unique(v for v in declared if isinstance(v, SenderFactory))
        self.guards = {guard.policy: guard for guard in _unique(v for v in declared if isinstance(v, Guard))}
        self.preparations = {
            preparation.kind: preparation for preparation in _unique(v for v in declared if isinstance(v, Preparation))
        }
        """By the kind of effects."""
        self.public_routes: tuple[PublicRoute, ...] = _unique(v for v in declared if isinstance(v, PublicRoute))
        self.screens: tuple[Screen, ...] = _unique(v for v in declared if isinstance(v, Screen))
        """Those of the console that capabilities declare beside its own."""
        self.sql_views: tuple[SqlView, ...] = _unique(v for v in declared if isinstance(v, SqlView))
        """Those that capabilities declare beside the curated tables."""
        of_policies = [p.shared for p in self.policies if p.shared is not None]
        self.shared: tuple[Shared, ...] = _unique([*(v for v in declared if isinstance(v, Shared)), *of_policies])
        """Those of policies, and those that only operations read."""
        self.requirements = {
            requirement.name: requirement for requirement in _unique(v for v in declared if isinstance(v, Requirement))
        }
        """By event type."""
        self.event_types = EventTypes(
            _unique(v for v in declared if isinstance(v, EventType)),
            {requirement.name: requirement.schema for requirement in self.requirements.values()},
            () if definitions is None else definitions.known_types,
        )
        self.values_read = ReadValues(_unique(v for v in declared if isinstance(v, Readings)))
        """What is read in events, for the marks of those whose values cannot be."""
        self.tables: tuple[StoreTable, ...] = _unique(v for v in declared if isinstance(v, StoreTable))
        """Every table of the store, those of `Shared` apart, which have nothing of people."""
        self.remainders: tuple[Remainder, ...] = _unique(v for v in declared if isinstance(v, Remainder))
        self.person_files: tuple[PersonFile, ...] = _unique(v for v in declared if isinstance(v, PersonFile))
        self.shown_properties = {type.name: type.shown for type in self.event_types.declared.values()}
        """What of our own events is not personal, by their type."""
        self.counters: tuple[EventCounter, ...] = _unique(v for v in declared if isinstance(v, EventCounter))
        self.layout = " ".join(f"{p.name}={p.version}:{p.fingerprint}" for p in self.projections)
        """Name, version and fingerprint of each state of a packed person, in order."""
        self.index = {p.name: i for i, p in enumerate(self.projections)}
        self.looks = tuple(p.look for p in self.projections)
        self.with_rows = tuple(i for i, p in enumerate(self.projections) if p.index.rows is not None)
        self.ordered = tuple(i for i, p in enumerate(self.projections) if p.ordered)
        self.never_ahead = frozenset().union(*(p.never_ahead for p in self.projections))
        self._plans: dict[str, Plan] = {}
        self._reactors: dict[str, tuple[Policy, ...]] = {}
        self.names = Names.of(_unique(v for v in declared if isinstance(v, NameKind)), definitions)
        """Of every kind, what the definitions declare."""
        relying = _unique(v for v in declared if isinstance(v, Reliance))
        reads = [*(policy.reads for policy in self.policies), *(value.reads for value in relying)]
        self._reads = [read for several in reads for read in several]
        if definitions is None:
            self.refuse_unread(self._reads)
        else:
            self._note_unknown(definitions)
            definitions.refuse()

    @cached_property
    def filled_as(self) -> dict[str, dict[str, str]]:
        """By the name of a `Refresh` and of its part, what changes with the definitions that decide it."""
        return {
            refresh.name: {
                name: f"{part.version}.{short_hash(*self._contents_read(refresh.name, part.reads))[:16]}"
                for name, part in sorted(refresh.parts.items())
            }
            for refresh in self.refreshes
        }

    def _contents_read(self, refresh: str, reads: Iterable[Read]) -> Iterator[str]:
        """What decides the views that are read, but for what the refresh itself writes, whose version tells."""
        sections = {} if self.definitions is None else self.definitions.contents()
        named = {(read.projection, read.path) for read in reads if read.projection in self.index.keys() - {refresh}}
        for name, path in sorted(named):
            projection = self.projections[self.index[name]]
            content = projection.depends.content
            if content is None:
                yield f"{name}={projection.version}:{projection.fingerprint}:{sorted(sections.get(name, {}).items())}"
            else:
                yield f"{name}={projection.version}:{content(path)}"

    @classmethod
    def declared(
        cls,
        definitions: Declarations,
        rules: IdentityRules,
        *besides: object,
        capabilities: Capabilities | None = None,
    ) -> Catalogue:
        """Everything in force, shaped by these definitions: all that ships, or these ``capabilities``.

        Raises `InvalidDefinition` with every mistake in the definitions.
        """
        selected = Capabilities(shipped()) if capabilities is None else capabilities
        packages = [*OWN, *(capability.package for capability in selected.on)]
        off = _switched_off(selected.off, type(definitions)())
        values = [*_values(packages, definitions), *off.lasting, *besides]
        definitions.problems += erased_too_soon([*values, *off.uncounted])
        try:
            made = cls(values, rules, definitions, selected, off)
        except InvalidDefinition as error:
            definitions.problems += str(error).split("\n")
        definitions.refuse_unknown({name: owner for (kind, name), owner in off.owners.items() if kind is Section})
        return made

    def _note_unknown(self, definitions: Declarations) -> None:
        """Note every name and path that leads nowhere, each where it stands."""
        noted = definitions.noted_paths
        definitions.note_unknown(lambda named: self.names.unknown(named.kind, named.name), self._unread)
        for read in self._reads:
            if (read.projection, read.path) not in noted and (problem := self._unread(read)):
                definitions.problems.append(f"{read.place}: {problem}")

    def variant(self, definitions: Declarations) -> Catalogue:
        """The catalogue of other definitions, with the same identity rules and capabilities."""
        return Catalogue.declared(definitions, self.rules, capabilities=self.capabilities)

    def empty(self) -> list[State]:
        """The states before any event, in the order of `projections`."""
        return [p.empty() for p in self.projections]

    def plan(self, event_type: str) -> Plan:
        """What an event of this type changes."""
        plan = self._plans.get(event_type)
        if plan is None:
            steps = tuple(
                (i, fold) for i, p in enumerate(self.projections) if (fold := _fold_of(p, event_type)) is not None
            )
            marks = tuple(
                rows
                for p in self.projections
                if (rows := p.index.event_rows) is not None and is_handled(p.handles, event_type)
            )
            plan = Plan(steps, tuple(i for i, _ in steps if i in self.with_rows), marks)
            if len(self._plans) >= PLANS_CACHED:
                self._plans.clear()
            self._plans[event_type] = plan
        return plan

    def folds(self, event: Event) -> list[str]:
        """The projections that fold an event."""
        return [self.projections[index].name for index, _ in self.plan(self.event_types.counts_as(event)).steps]

    def has(self, projection: str) -> bool:
        """Whether there is a projection of this name."""
        return projection in self.index

    def left_rows(self, recorded: Recorded) -> Iterable[Row]:
        """The rows that an event has of its own: those of the projections in force, and those that switched-off ones
        have written while they were."""
        type = self.event_types.counts_as(recorded.event)
        for mark in self.plan(type).marks:
            yield from mark(recorded)
        for projection in self._off.projections:
            if projection.index.event_rows is not None and is_handled(projection.handles, type):
                yield from projection.index.event_rows(recorded)

    @property
    def left_tables(self) -> tuple[str, ...]:
        """Tables of rows of people's states that no projection in force writes: what is in them is of former ones."""
        written = {table for projection in self.projections for table in projection.index.tables}
        return tuple(
            table.name for table in self.tables if table.contents == "state_rows" and table.name not in written
        )

    def reactors(self, event_type: str) -> tuple[Policy, ...]:
        """The policies that react to an event of this type."""
        reactors = self._reactors.get(event_type)
        if reactors is None:
            reactors = tuple(p for p in self.policies if is_handled(p.handles, event_type) or event_type in p.also)
            if len(self._reactors) >= PLANS_CACHED:
                self._reactors.clear()
            self._reactors[event_type] = reactors
        return reactors

    def touches(self, event_type: str, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change the value at a path of a projection's view."""
        index = self.index.get(name)
        if index is None or all(index != touched for touched, _ in self.plan(event_type).steps):
            return False
        feeds = self.projections[index].depends.feeds
        types = feeds(path) if feeds is not None and path else None
        return types is None or event_type in types or event_type == OPENING

    @cached_property
    def nothing_known(self) -> tuple[Nothing, ...]:
        """Of each projection, what there is before any event."""
        return tuple(Nothing(p.empty(), _pack(p.empty()), _pack(p.view(p.empty(), 0, []))) for p in self.projections)

    def of_nobody(self, name: str, at: int) -> Any:
        """A projection's view of somebody about whom nothing is known; None if there is no such projection."""
        index = self.index.get(name)
        return None if index is None else self.projections[index].view(self.projections[index].empty(), at, [])

    def refuse_unread(self, reads: Iterable[Read]) -> None:
        """Raise `InvalidDefinition` for parts of views that can never have a value, each with its place."""
        problems = [f"{read.place}: {problem}" for read in reads if (problem := self._unread(read))]
        if problems:
            raise InvalidDefinition("\n".join(problems))

    def _unread(self, read: Read) -> str:
        if not self._failed.isdisjoint((read.projection, *read.path)):
            return ""
        index = self.index.get(read.projection)
        if index is None:
            if owner := self._off.owners.get((Projection, read.projection)):
                return f"{read.projection!r} is of {_is_off(owner)}"
            return f"nothing is known under {read.projection!r}; {hint(read.projection, self.index)}"
        projection = self.projections[index]
        depends = projection.depends
        if read.path and depends.lacks is not None and (problem := depends.lacks(read.path)):
            return problem
        if depends.parts is not None and (problem := depends.parts.lacks(read.path, read.projection, self.names)):
            return problem
        if not read.path or (feeds := projection.depends.feeds) is None or feeds(read.path) != frozenset():
            return ""
        shown = projection.view(projection.empty(), 0, [])
        return f"{read.projection} has no {'.'.join(read.path)!r}; {hint(read.path[0], shown)}"

    def operation(self, name: str) -> Operation:
        """The operation of this name, as the definitions in force shape it. Raises `NotFound` if they leave it out, or
        if its capability is switched off."""
        operation = next((o for o in self.operations if o.name == name), None)
        if operation is None:
            owner = self._off.owners.get((Operation, name))
            why = "switched off by the definitions of this store" if owner is None else f"of {_is_off(owner)}"
            raise NotFound(f"`{name}` is {why}")
        return operation

    def policy(self, name: str) -> Policy | None:
        """The policy of this name."""
        return self._policies.get(name)


def _fold_of(projection: Projection, event_type: str) -> Fold | None:
    if event_type == OPENING:
        return None if projection.carries is None else partial(fold_opening, projection)
    return projection.fold_of(event_type)


Declared = TypeVar(
    "Declared",
    Projection,
    Policy,
    Operation,
    Section,
    Inspection,
    Refresh,
    EventCounter,
    EventType,
    JobKind,
    Queue,
    Requirement,
    SenderFactory,
    Guard,
    Preparation,
    PublicRoute,
    Reliance,
    Screen,
    SqlView,
    Shared,
    StoreTable,
    PersonFile,
    Remainder,
    Lasting,
    Readings,
    Expiring,
    NameKind,
)


def _unique(values: Iterable[Declared]) -> tuple[Declared, ...]:
    by_name: dict[str, Declared] = {}
    for value in values:
        if by_name.setdefault(value.name, value) is not value:
            kind = type(value).__name__.lower()
            raise InvalidDefinition(f"two {kind}s are named {value.name!r}; rename one")
    return tuple(by_name[name] for name in sorted(by_name))


_DECLARED = frozenset(Declared.__constraints__)
_LASTING = (EventType, StoreTable, PersonFile, Remainder, Lasting)
"""What is declared of data that was stored already. It stays in force where its capability is switched off: else an
erasure would leave the data, expiry take what it needs when it comes back, and anybody could speak in its name."""


def _is_off(capability: str) -> str:
    return f"the capability {capability!r}, which the setting `capabilities` switches off"


class _SwitchedOff(NamedTuple):
    """What capabilities that are switched off declare."""

    lasting: list[object]
    """What stays in force."""
    owners: dict[tuple[type, str], str]
    """What does not: (kind, name) -> the capability."""
    projections: list[Projection]
    """Those that wrote rows of single events, which an erasure finds by them."""

    @property
    def uncounted(self) -> Iterator[Projection]:
        """What reads events of types that it names, and misses those that are erased before it comes back."""
        return (replace(p, carries=None) for p in self.projections if p.handles is not None)


def _switched_off(capabilities: Iterable[Capability], without: Declarations) -> _SwitchedOff:
    """``without`` are definitions in which nothing is defined."""
    switched_off = _SwitchedOff([], {}, [])
    for capability in capabilities:
        # A state or a section is mostly called like its capability, and there only if something is defined.
        switched_off.owners.update({(kind, capability.name): capability.name for kind in (Projection, Section)})
        for value in _values([capability.package], without):
            if isinstance(value, _LASTING):
                switched_off.lasting.append(value)
            elif isinstance(value, Projection | Section | Operation):
                switched_off.owners[type(value), value.name] = capability.name
            if isinstance(value, Projection):
                switched_off.projections.append(value)
    return switched_off


def discover(*packages: str, definitions: Declarations | None) -> list[object]:
    """Everything declared in the modules of these packages: projections, policies, operations and the rest of
    `_DECLARED`.

    A module declares by holding such values at its top level, each or in a tuple, or by a function
    ``declare(definitions)`` that makes them from what users declared, the ``definitions`` given here. There is no list
    to keep: a new file is enough.
    """
    values = _values(packages or (*OWN, *(capability.package for capability in shipped())), definitions)
    if definitions is not None:
        definitions.problems += erased_too_soon(values)
        definitions.refuse()
    return values


def _values(packages: Iterable[str], definitions: Declarations | None) -> list[object]:
    values: list[object] = []
    for package in packages:
        for module in _declaring(importlib.import_module(package)):
            values += module.values
            if module.declare is not None:
                values += module.declare(definitions)
    return list({id(v): v for v in values}.values())


class _Declaring(NamedTuple):
    """What one module declares."""

    values: tuple[object, ...]
    declare: Callable[[Declarations | None], Iterable[object]] | None


@cache
def _declaring(root: ModuleType) -> tuple[_Declaring, ...]:
    """The modules of a package that declare something, in order. Modules do not change, so they are looked at once."""
    declaring = []
    for module in _modules(root):
        values = tuple(_declared_in(vars(module).values()))
        declare = vars(module).get("declare")
        own = declare if isinstance(declare, FunctionType) and declare.__module__ == module.__name__ else None
        if values or own is not None:
            declaring.append(_Declaring(values, own))
    return tuple(declaring)


def _declared_in(values: Iterable[object]) -> Iterator[object]:
    """The values that declare something, alone or in a tuple of nothing else."""
    for value in values:
        if type(value) in _DECLARED:
            yield value
        elif type(value) is tuple and value and all(type(member) in _DECLARED for member in value):
            yield from value


def _modules(root: ModuleType) -> Iterable[ModuleType]:
    yield root
    for info in pkgutil.walk_packages(getattr(root, "__path__", []), prefix=f"{root.__name__}."):
        yield importlib.import_module(info.name)
