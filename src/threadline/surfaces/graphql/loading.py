"""What one request reads: calls of operations, in batches, each once, on people who are read once and together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from strawberry.dataloader import DataLoader

from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.reading.person_reader import PersonReader
from threadline.kernel.errors import Forbidden
from threadline.kernel.event import is_thread_id
from threadline.kernel.operation import Operation
from threadline.kernel.ports import Person
from threadline.surfaces.graphql.measuring import Document
from threadline.surfaces.operation_calls import convert, run, stale_note

USER_FIELDS = frozenset({"alerts_of"})
"""The operations that a web token may call, about its own user."""


class Caller(NamedTuple):
    """Who asks, and what they may."""

    workspace: str
    source: str
    allows: Callable[[str], bool]
    """Whether a scope is theirs."""
    user: str = ""
    """The `user_id` of a web token's user, who may read what is their own and nothing else."""


class Call(NamedTuple):
    """An operation and its parameters by name."""

    operation: Operation
    values: dict[str, Any]


class Loading:
    """The reads of one request. All of it is about one instant, and a person's answers about one position."""

    def __init__(self, engine: Engine, caller: Caller, document: Document) -> None:
        self.caller = caller
        self.document = document
        self.stale: set[str] = set()
        """What the answer relies on that is older than the definitions in force; see `stale_note`."""
        self._people = _PeopleReadOnce(engine.reader, caller.workspace)
        ports: Any = _Ports(engine, self._people)
        self._context = Context(ports, caller.workspace, engine.now(), caller.source, over_wire=True)
        self._loader: DataLoader[Call, Any] = DataLoader(self._load, cache_key_fn=_key)

    async def call(self, operation: Operation, values: dict[str, Any]) -> Any:
        """The result of an operation. Raises what it raises, and `Forbidden`."""
        if self.caller.user and operation.name not in USER_FIELDS:
            raise Forbidden("a web token reads the alerts of its user; ask with a token of this server for all else")
        if not self.caller.allows(operation.scope):
            raise Forbidden(f"this token lacks the scope {operation.scope!r}")
        return await self._loader.load(Call(operation, values))

    async def _load(self, calls: Sequence[Call]) -> list[Any]:
        self._people.read(str(call.values["id"]) for call in calls if "id" in call.values)
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Any:
        try:
            params = convert(call.operation, call.values, strict=True)
            if (reason := call.operation.guarded(params)) and not self.caller.allows("admin"):
                return Forbidden(f"this token lacks the scope 'admin': {reason}")
            result = run(call.operation, self._context, params)
            self.stale |= {note for note in [stale_note(call.operation, self._context, params)] if note}
            return result
        except Exception as error:  # noqa: BLE001 — one of a batch: the others have their answers
            return error


def _key(call: Call) -> tuple[str, bytes]:
    return call.operation.name, msgspec.json.encode(call.values, order="deterministic")


class _PeopleReadOnce:
    """The reader of people, with those of this request read once; many are read together."""

    def __init__(self, reader: PersonReader, workspace: str) -> None:
        self._reader = reader
        self._workspace = workspace
        self._known: dict[str, Person] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, refs: Iterable[str]) -> None:
        """Read people of whom the ids are known."""
        unknown = {ref for ref in refs if is_thread_id(ref) and ref not in self._known}
        if len(unknown) < 2:
            return
        for id, person in self._reader.lookup.by_ids(sorted(unknown)).items():
            # Whose states are those of other definitions is read alone, as everywhere.
            if person.workspace == self._workspace and not person.stale:
                self._known[id] = person

    def person(self, workspace: str, ref: str, *, known_at: int | None = None) -> Person:
        """See `PersonReader.person`."""
        if known_at is not None:
            past: Person = self._reader.person(workspace, ref, known_at=known_at)
            return past
        if ref not in self._known:
            self._known[ref] = self._reader.person(workspace, ref)
        return self._known[ref]


class _Ports:
    """The engine's ports, with another reader of people."""

    def __init__(self, engine: Engine, reader: _PeopleReadOnce) -> None:
        self._engine = engine
        self.reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
