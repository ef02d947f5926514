"""An engine with the capabilities that points and leaderboards need, and a clock moved by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.capabilities import shipped
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.kernel.store import Store
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

STARTS_AT = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z, a Thursday."""
NEEDED = ("events", "features", "people", "points", "streaks")


@cache
def catalogue(definitions: str = "", *more: str) -> Catalogue:
    """What is in force under these definitions; ``more`` are names of further capabilities."""
    texts = [("test.yaml", definitions)] if definitions else []
    shipping = {capability.name: capability.package for capability in shipped()}
    packages = [shipping[name] for name in dict.fromkeys((*NEEDED, *more))]
    return Catalogue(discover(*packages, definitions=Definitions(texts)), rules())


class Stage:
    """Tells events and asks operations; ``now`` is moved by hand."""

    def __init__(self, definitions: str = "", *more: str, store: Store | None = None) -> None:
        self.now = STARTS_AT
        self.definitions = definitions
        self.engine = Engine(store or MemoryStore(), catalogue(definitions, *more), lambda: self.now)
        self.operations = {operation.name: operation for operation in self.engine.catalogue.operations}
        self._keys = 0

    def tell(self, type: str, /, who: str = "ada", at: int | None = None, **fields: Any) -> Receipt:
        """Record one event of somebody, at ``now`` if no time is given."""
        self._keys += 1
        fields.setdefault("key", f"key-{self._keys}")
        fields.setdefault("source_type", "external")
        occurred_at = self.now if at is None else at
        identifiers = fields.pop("identifiers", (Identifier("user_id", who),))
        event = Event(type=type, identifiers=identifiers, occurred_at=occurred_at, **fields)
        [receipt] = self.engine.recorder.record([event])
        return receipt

    def ask(self, operation: str, /, *, source: str = "shop", **params: Any) -> Any:
        """Run an operation as a surface does, with plain values in and out, an instant later."""
        self.now += 1
        declared = self.operations[operation]
        context = Context(self.engine, "default", self.now, source)
        result = declared.run(context, msgspec.convert(params, declared.params))
        # A result must be of the type that the documentation promises.
        return msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(result), declared.result))

    def points(self, who: str = "ada") -> dict[str, Any]:
        """A person's points an instant later."""
        found: dict[str, Any] = self.ask("points_of", id=f"user_id:{who}")
        return found

    def dispatch(self) -> int:
        """Work off what is due by now."""
        return Dispatcher(self.engine, {}, "test").run_once()

    def types(self, who: str = "ada") -> list[str]:
        """The types of a person's events, in the order in which they occurred."""
        person = self.engine.reader.person("default", f"user_id:{who}")
        return [recorded.event.type for recorded in self.engine.reader.events(person, limit=1_000)]
