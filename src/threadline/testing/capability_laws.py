"""The laws of a capability, whoever wrote it and wherever it lies: all that holds of what ships holds of it.

The first test of a plug-in or extension. Each law that is broken is a line that says by what:

    >>> import sys, types
    >>> from threadline.kernel.capability import Capability
    >>> from threadline.kernel.projection import Projection
    >>> from threadline.testing.capability_laws import broken
    >>> shop_chats = sys.modules["shop_chats"] = types.ModuleType("shop_chats")
    >>> shop_chats.CHATS = Projection(
    ...     name="chats", version=1, handles=frozenset({"chat_started"}), empty=lambda: {"count": 0},
    ...     fold=lambda state, recorded: {"count": state["count"] + 1}, view=lambda state, now, edges: state,
    ... )
    >>> broken(Capability("chats", "shop_chats"))
    ['projection chats: no `PersonFile` shows it in the archive of a person']

Its projections keep the projection laws and its policies the policy laws, by events of the types that they name and of
values that nobody expects. Nobody but the declared speaker can say its events. What it stores of a person is in their
archive and found by an erasure. Switched off, nothing of it acts.

Options of `broken`: ``definitions`` (file names and YAML, where the capability reads some), ``events`` (some that its
policies react to), ``seed``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.capabilities import Capabilities, shipped
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.capability import Capability
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Identifier
from threadline.kernel.event_type import EventType
from threadline.kernel.operation import Operation
from threadline.kernel.personal import PersonFile, StoreTable
from threadline.kernel.policy import Policy
from threadline.kernel.projection import Projection
from threadline.stores.memory import MemoryStore
from threadline.testing import projection_laws
from threadline.testing.policy_laws import watched
from threadline.testing.probing import asked_of, events_for
from threadline.testing.scenarios import NOW, recorded

Texts = Sequence[tuple[str, str]]
ADA = (Identifier("user_id", "ada"),)
_ROUNDS = 20
_EVENTS = 12
_STRANGE: tuple[Any, ...] = ("", "\x00", "é" * 600, -1, 2**53, 1e300, None, True, [], {}, ["x"] * 200, {"": {"": []}})


def broken(capability: Capability, definitions: Texts = (), events: Sequence[Event] = (), seed: int = 0) -> list[str]:
    """The laws that a capability breaks by these definitions, each in a line that says by what.

    ``events`` are some that the policies react to, beside those that are drawn from the ``seed``.
    """
    own = discover(capability.package, definitions=Definitions(definitions))
    random = Random(seed)
    return [
        *_of_projections([value for value in own if isinstance(value, Projection)], random),
        *_of_policies(capability, definitions, own, events, random),
        *_of_speakers(capability, definitions, own),
        *_of_people(own),
        *_of_operations([value for value in own if isinstance(value, Operation)]),
        *_switched_off(capability),
    ]


def catalogue_with(capability: Capability, definitions: Texts = ()) -> Catalogue:
    """All that ships, and this capability."""
    return _catalogue(Capabilities((*shipped(), capability)), definitions)


def _catalogue(capabilities: Capabilities, texts: Texts) -> Catalogue:
    definitions = Definitions(texts)
    return Catalogue.declared(definitions, rules(definitions), capabilities=capabilities)


def _of_projections(projections: Sequence[Projection], random: Random) -> Iterator[str]:
    for projection in projections:
        asked = asked_of(projection)
        for _ in range(_ROUNDS):
            plausible = events_for(asked, random, random.randrange(_EVENTS))
            met = recorded([*plausible, *_strange(asked.types, asked.properties, random)])
            for law in projection_laws.LAWS:
                try:
                    law(projection, met, random)
                except Exception as error:  # noqa: BLE001 — a fold that raises, whatever it is, breaks the law as well
                    yield f"projection {projection.name}: {law.__name__}: {error!r}"
                    return


def _strange(types: Sequence[str], properties: Sequence[str], random: Random) -> list[Event]:
    """Events in which nothing is what it should be, as the log would hold them."""
    made = [
        Event(
            type=random.choice(types),
            identifiers=ADA,
            occurred_at=NOW - random.randrange(10**9),
            key=f"strange-{number}",
            properties={name: random.choice(_STRANGE) for name in properties},
        )
        for number in range(random.randrange(_EVENTS))
    ]
    return [msgspec.json.decode(msgspec.json.encode(event), type=Event) for event in made]


def _of_policies(
    capability: Capability, texts: Texts, own: Sequence[object], events: Sequence[Event], random: Random
) -> list[str]:
    policies = [value for value in own if isinstance(value, Policy)]
    problems: list[str] = []
    made = catalogue_with(capability, texts)
    values = [*made.projections, *made.event_types.declared.values(), *watched(policies, problems)]
    engine = Engine(MemoryStore(), Catalogue(values, made.rules), lambda: NOW)
    types = sorted({type for policy in policies for type in policy.handles or () if not type.startswith("threadline.")})
    given = [*events, *(_strange(types, ("name", "value", "id"), random) if types else ())]
    for event in given:
        with suppress(EventRejected):
            engine.recorder.record([event])
    return [f"policy: {problem}" for problem in problems]


def _of_speakers(capability: Capability, texts: Texts, own: Sequence[object]) -> Iterator[str]:
    """Events that only Threadline may say, forged over a wire: they change no view of the capability."""
    engine = Engine(MemoryStore(), catalogue_with(capability, texts), lambda: NOW)
    engine.recorder.record([Event(type="page", identifiers=ADA, occurred_at=NOW - 1, key="page")])
    names = [value.name for value in own if isinstance(value, Projection)]
    person = engine.reader.person("default", "user_id:ada")
    before = {name: engine.reader.views(person, NOW).get(name) for name in names}
    for type in (value for value in own if isinstance(value, EventType) and value.speaker != "anyone"):
        properties = dict.fromkeys(type.properties.__struct_fields__, "forged")
        forged = Event(
            type=type.name,
            identifiers=ADA,
            occurred_at=NOW - 1,
            key=type.name,
            properties=properties,
            source_type="external",
        )
        engine.recorder.record([forged])
        shown = engine.reader.views(engine.reader.person("default", "user_id:ada"), NOW)
        yield from (f"event type {type.name}: forged, it changes {n}" for n in names if shown.get(n) != before[n])


def _of_people(own: Sequence[object]) -> Iterator[str]:
    shown = {name for value in own if isinstance(value, PersonFile) for name in value.projections}
    tables = {value.name for value in own if isinstance(value, StoreTable)}
    for projection in (value for value in own if isinstance(value, Projection)):
        if projection.name not in shown:
            yield f"projection {projection.name}: no `PersonFile` shows it in the archive of a person"
        for table in sorted(set(projection.index.tables) - tables):
            yield f"projection {projection.name}: no `StoreTable` says what its table {table} has of a person"


def _of_operations(operations: Sequence[Operation]) -> Iterator[str]:
    for operation in operations:
        if not operation.summary.endswith("."):
            yield f"operation {operation.name}: its summary does not end with a full stop"
        if operation.example is None and msgspec.structs.fields(operation.params):
            yield f"operation {operation.name}: it has parameters and no `example`"


def _switched_off(capability: Capability) -> Iterator[str]:
    made = _catalogue(Capabilities(shipped(), (capability,)), ())
    acting = {
        **{value.name: value.fold for value in made.projections},
        **{value.name: value.react for value in made.policies},
        **{value.name: value.run for value in made.operations},
        **{value.name: value.answer for value in made.public_routes},
        **{value.name: value.load for value in made.screens},
        **{value.name: value.step for value in made.job_kinds.values()},
    }
    for name, function in acting.items():
        if f"{function.__module__}.".startswith(f"{capability.package}."):
            yield f"{name}: it acts although the capability is switched off"
    yield from (f"view {view.name}: it is there although the capability is off" for view in made.sql_views)
