"""How a screen asks: operations by name, in process, with the rights of whoever is signed in, and every call noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from threadline.engine.accounts import Session
from threadline.engine.context import Caller, Context
from threadline.engine.engine import Engine
from threadline.kernel.chart import Chart
from threadline.kernel.errors import Forbidden, NotFound
from threadline.kernel.operation import Operation
from threadline.kernel.roles import allows
from threadline.surfaces.console.as_call import Call
from threadline.surfaces.console.sentences import EventWords, event_words
from threadline.surfaces.operation_calls import convert, run, stale_note


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

    @property
    def words(self) -> EventWords:
        """Events in words."""
        return event_words(self.engine.catalogue)

    def ask(self, name: str, /, **values: Any) -> Any:
        """The answer of an operation as plain data, exactly as HTTP gives it. Parameters that are None are left out.

        Texts are read as in a query. Raises the errors of the operation, and `Forbidden` where the role does not allow
        it.
        """
        return msgspec.to_builtins(self._run(name, values))

    def ask_or(self, default: Any, name: str, /, **values: Any) -> Any:
        """The same, or a default where there is no such thing or it is not allowed: for what a page can do without."""
        try:
            return self.ask(name, **values)
        except (NotFound, Forbidden):
            return default

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
