"""Reactors: which policies want to see which events, and what they share, while one group is placed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadline.engine.catalogue import Catalogue
from threadline.engine.shared import SharedValues
from threadline.kernel.policy import Policy


class Reactors:
    """Which policies want to see what, as things stand while one group is placed."""

    def __init__(self, catalogue: Catalogue, values: SharedValues) -> None:
        self._catalogue = catalogue
        self._values = values
        self._shared: dict[tuple[str, str], Any] = {}
        self._found: dict[tuple[str, str], tuple[Policy, ...]] = {}

    def look(self, workspaces: Iterable[str]) -> None:
        """Take in all that is shared in these workspaces now, so that whatever decides had begun by now."""
        names = {policy.shared.name for policy in self._catalogue.policies if policy.shared is not None}
        for workspace in workspaces:
            for name in names:
                self.shared(workspace, name)

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`: one and the same for the whole group."""
        if (workspace, name) not in self._shared:
            self._shared[workspace, name] = self._values.current(workspace, name)
        return self._shared[workspace, name]

    def of(self, workspace: str, event_type: str) -> tuple[Policy, ...]:
        """The policies that want to see an event of this type in this workspace."""
        found = self._found.get((workspace, event_type))
        if found is None:
            found = tuple(
                policy
                for policy in self._catalogue.reactors(event_type)
                if policy.shared is None or policy.shared.heeds(self.shared(workspace, policy.shared.name), event_type)
            )
            self._found[workspace, event_type] = found
        return found

    def heeded(self, workspace: str, type: str) -> bool:
        """Whether a policy names events of this type."""
        return any(policy.names_types for policy in self.of(workspace, type))
