"""An engine whose definitions can be tried in another form: what it was told, and what would have been otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tests.capabilities.asked import Asked
from threadline.capabilities.foundation.definitions import Definitions
from threadline.kernel.event import Event
from threadline.kernel.time import MINUTE


class Tried(Asked):
    """What a caller sees of an engine that knows its own definitions."""

    def __init__(self, definitions: str) -> None:
        super().__init__(definitions=definitions)
        self.engine.catalogue.definitions = Definitions([("threadline.yaml", definitions)])

    def live(self, events: Iterable[Event], apart: int = MINUTE) -> None:
        """Record events one by one, each at an instant of its own."""
        for event in events:
            self.now += apart
            (receipt,) = self.engine.recorder.record([event])
            assert receipt.status in ("accepted", "rejected")

    def what_if(self, **params: Any) -> dict[str, Any]:
        """A what-if, waited for."""
        self.now += 1
        answer: dict[str, Any] = self.ask("what_if_run", wait=True, **params)
        assert answer["state"] == "done", answer["problem"]
        return answer


def counted(answer: dict[str, Any]) -> dict[str, Any]:
    """What was counted, without what depends on when and how it was asked."""
    apart = ("id", "saved", "start", "stop", "asked", "old", "new")
    return {name: value for name, value in answer.items() if name not in apart}


def yaml(definitions: dict[str, Any]) -> str:
    """Definitions as text; JSON is YAML."""
    return msgspec.json.encode(definitions).decode()
