"""How a screen asks: operations by name, in process, with the rights of whoever is signed in, and every call noted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.foundation.events.parameters import PAGE_MAX
from threadline.capabilities.profile.features.definition import TIMEZONE
from threadline.engine.accounts import Session
from threadline.engine.context import Caller, Context
from threadline.engine.engine import Engine
from threadline.kernel.chart import Chart
from threadline.kernel.errors import Forbidden, NotFound
from threadline.kernel.operation import Operation
from threadline.kernel.roles import allows
from threadline.surfaces.console.as_call import Call
from threadline.surfaces.console.sentences import EventWords, event_words
from threadline.surfaces.importing.uploads import Uploads
from threadline.surfaces.operation_calls import convert, field_names, run, stale_note
from threadline.surfaces.row_formats import rendered, rows_of


@dataclass(slots=True)
class Asking:
    """One request of somebody who is signed in. Screens get their data here and nowhere else."""

    engine: Engine
    operations: Mapping[str, Operation]
    session: Session
    now: int
    path: Mapping[str, str] = field(default_factory=dict)
    """The path parameters of the address."""
    query: Mapping[str, str] = field(default_factory=dict)
    """The query of the address; the last value of a name that is given more than once."""
    queries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All values by name."""
    calls: list[Call] = field(default_factory=list)
    """What was asked, for "as API call" beside the page."""
    stale: set[str] = field(default_factory=set)
    """What answers rely on that is older than the definitions in force."""
    uploads: Uploads = field(default_factory=Uploads)
    """Files that were uploaded to be imported."""

    @property
    def words(self) -> EventWords:
        """Events in words."""
        return event_words(self.engine.catalogue)

    @property
    def zone(self) -> str:
        """The zone that is declared, whose days lists are asked for."""
        return TIMEZONE.read(in_force(self.engine.catalogue), "UTC")

    def ask(self, name: str, /, **values: Any) -> Any:
        """The answer of an operation as plain data, exactly as HTTP gives it. Parameters that are None are left out.

        Texts are read as in a query. Raises the errors of the operation, and `Forbidden` where the role does not allow
        it.
        """
        return msgspec.to_builtins(self._run(name, values))

    def pieces(self, name: str, /, **values: Any) -> Iterator[bytes]:
        """The answer of an operation that is a file, in pieces."""
        made: Iterator[bytes] = self._run(name, values)
        return made

    def ask_or(self, default: Any, name: str, /, **values: Any) -> Any:
        """The same, or a default where there is no such thing or it is not allowed: for what a page can do without."""
        try:
            return self.ask(name, **values)
        except (NotFound, Forbidden):
            return default

    def table(self, name: str, /, most: int, *, without: Collection[str] = (), **values: Any) -> bytes:
        """A list as CSV without some of its columns: of one that comes in pages all, up to so many entries."""
        result, entries = None, list[Any]()
        cursor, in_pages = "", "cursor" in field_names(self._operation(name))
        while result is None or (cursor and len(entries) < most):
            page = {"cursor": cursor, "limit": min(most - len(entries), PAGE_MAX)} if in_pages else {}
            result = self._run(name, {**values, **page})
            kind: Any = type(result)
            rows, cursor = rows_of(kind), result.next if in_pages else ""
            assert rows is not None, "whoever shows a list as a table has chosen one"
            entries += getattr(result, rows.field)
            setattr(result, rows.field, entries)
        return rendered(result, "csv", without, is_flat=True).body

    def picture(self, name: str, /, **values: Any) -> tuple[Any, Chart | None]:
        """The answer as plain data, and its picture, where the operation has one."""
        result = self._run(name, values)
        picture = self._operation(name).picture
        return msgspec.to_builtins(result), picture(result) if picture is not None else None

    def may(self, name: str) -> bool:
        """Whether whoever is signed in may ask an operation, and it is in force."""
        operation = self.operations.get(name)
        return operation is not None and allows(self.session.role, operation, by_token=bool(self.session.token_scopes))

    def _operation(self, name: str) -> Operation:
        return self.operations.get(name) or self.engine.catalogue.operation(name)

    def _run(self, name: str, values: Mapping[str, Any]) -> Any:
        operation = self._operation(name)
        given = {member: value for member, value in values.items() if value is not None and value != ""}
        if not allows(self.session.role, operation, by_token=bool(self.session.token_scopes)):
            raise Forbidden(f"your role, {self.session.role}, may not ask {name!r}")
        params = convert(operation, given, strict=False)
        if (reason := operation.guarded(params)) and self.session.role != "admin":
            raise Forbidden(f"this needs the role admin: {reason}")
        call = Call(operation, given)
        if call not in self.calls:
            self.calls.append(call)
        caller = Caller(self.session.name, "token" if self.session.token_scopes else "account", "console")
        context = Context(self.engine, self.session.workspace, self.now, self.session.name, True, caller)
        result = run(operation, context, params)
        if operation.relies_on and (older := stale_note(operation, context, params)):
            self.stale.add(older)
        return result
