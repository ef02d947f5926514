"""What a tool is: a name, a choice, and the operation that each value of the choice calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from threadline.kernel.operation import Operation

PERSONAL = "personal"
"""The scope with which personal data is shown unmasked; `admin` includes it."""


class Caller(NamedTuple):
    """Who calls: the workspace, the name of the credential and its scopes."""

    workspace: str
    name: str
    scopes: tuple[str, ...]
    over_wire: bool = True

    def allows(self, scope: str) -> bool:
        """Whether it may do what needs this scope."""
        return scope in self.scopes or "admin" in self.scopes


@dataclass(frozen=True, slots=True)
class Call:
    """An operation as a tool calls it."""

    operation: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that the caller cannot choose."""
    default: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for callers who give none."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Argument of the tool -> parameter, where the tool has another word for it."""
    needed: frozenset[str] = frozenset()
    """Arguments that the tool needs although the operation does not."""
    preview: str = ""
    """Of a change: the operation that shows what it would do."""
    previewed: Mapping[str, str] = field(default_factory=dict)
    """Parameter of the change -> that of the preview."""
    tries: bool = False
    """It works in a sandbox or on a copy, so it needs no confirmation although it is no GET."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Its operations decide what it needs: a caller sees the choices that the scopes allow."""

    name: str
    title: str
    description: str
    choice: str
    """The argument that selects the operation."""
    calls: Mapping[str, Call]
    """The first is called by those who leave the choice out, unless `must_choose`."""
    must_choose: bool = False
    group: str = ""
    """Every GET operation of this group is a choice as well, by its verb."""

    def all_calls(self, operations: Mapping[str, Operation]) -> dict[str, Call]:
        """The calls of those operations that there are."""
        grouped = {
            operation.verb: Call(operation.name)
            for operation in operations.values()
            if self.group and operation.group is not None and operation.group.name == self.group
        }
        offered = {
            choice: Call(operation.name)
            for operation in operations.values()
            for tool, _, choice in (operation.tool.partition(" "),)
            if tool == self.name
        }
        calls = {**grouped, **offered, **self.calls}
        return {value: call for value, call in calls.items() if call.operation in operations}


def changes(operation: Operation, call: Call) -> bool:
    """Whether a call has to be confirmed: it changes or sends something."""
    return operation.method != "GET" and operation.scope != "read" and not call.tries
