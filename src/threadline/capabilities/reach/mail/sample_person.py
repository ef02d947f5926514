"""Somebody made up, for previews: whatever a template asks for is there, under its own name."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.reach.mail.rendering import Compiled
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.projection import Edge

_ADA = (Identifier("user_id", "ada"), Identifier("email", "ada@example.com"))


class SamplePerson:
    """A `PersonView` of nobody: a trait `first_name` is the text "[first_name]"."""

    def __init__(self, compiled: Compiled, workspace: str, at: int) -> None:
        self.person = "0" * 32
        self.workspace = workspace
        self.identifiers = _ADA
        self.at = at
        self._compiled = compiled

    def view(self, name: str, at: int | None = None) -> Any:
        """See `PersonView`."""
        if name == "profile":
            return {"traits": self._below("person", "traits"), "tags": [], "groups": {}}
        if name == "features":
            return {name: {"value": 1} for name in self._compiled.read_below("features") if name}
        return None

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """See `PersonView`."""
        return []

    def due(self, name: str, at: int | None = None) -> int | None:
        """See `PersonView`."""
        return None

    def ahead(self, at: int | None = None) -> int | None:
        """See `PersonView`."""
        return None

    def event(self) -> Recorded | None:
        """See `threadline.capabilities.reach.mail.context.Facts`."""
        event = Event(
            type="example", identifiers=_ADA, occurred_at=self.at, key="", properties=self._below("event", "properties")
        )  # fmt: skip
        return Recorded(event, "0" * 32, self.person, 1, self.at)

    def _below(self, root: str, part: str) -> dict[str, str]:
        steps = (path.split(".") for path in self._compiled.reads)
        return {step[2]: f"[{step[2]}]" for step in steps if step[:2] == [root, part] and len(step) > 2}
