"""An engine on a memory store with a clock that is moved by hand, asked through its operations."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.time import SECOND, format_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.operation_calls import call

STARTS_AT = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z."""

_DISCOVERED = discover(definitions=Definitions())


class Asked:
    """What a caller sees: operations by name, their answers as plain values."""

    def __init__(
        self, identifiers: dict[str, Any] | None = None, definitions: str = "", catalogue: Catalogue | None = None
    ) -> None:
        """``catalogue``: definitions that were read before; reading them takes a tenth of a second."""
        self.now = STARTS_AT
        if catalogue is None:
            catalogue = self._catalogue(identifiers, definitions)
        self.engine = Engine(MemoryStore(), catalogue, lambda: self.now)
        self.operations = {operation.name: operation for operation in self.engine.catalogue.operations}
        self._keys = 0

    @staticmethod
    def _catalogue(identifiers: dict[str, Any] | None, definitions: str) -> Catalogue:
        declared = Definitions([("threadline.yaml", definitions)]) if definitions else None
        found = discover(definitions=declared) if declared is not None else _DISCOVERED
        written = Definitions([("threadline.yaml", yaml.safe_dump({"identifiers": identifiers or {}}))])
        return Catalogue(found, rules(written), declared)

    def ask(self, operation: str, /, *, workspace: str = "default", source: str = "shop", **params: Any) -> Any:
        """Run an operation as a surface does, with plain values in and out, an instant after what came before."""
        self.now += 1
        declared = self.operations[operation]
        context = Context(self.engine, workspace, self.now, source)
        result = call(declared, context, params, strict=True)
        if declared.media_type:
            return b"".join(result)
        # A result must be of the type that the documentation promises.
        return msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(result), declared.result))

    def tell(self, type: str, /, at: int | None = None, workspace: str = "default", **fields: Any) -> dict[str, Any]:
        """Record one event and answer its receipt; identifiers are the fields that are not an event's own."""
        self._keys += 1
        event = {"type": type, "key": fields.pop("key", f"key-{self._keys}")}
        for name in ("properties", "context", "historical", "expected", "object_ref"):
            if name in fields:
                event[name] = fields.pop(name)
        if at is not None:
            event["occurred_at"] = format_time(at)
        answer = self.ask("record", workspace=workspace, events=[{**event, "identifiers": fields}])
        receipt: dict[str, Any] = answer["receipts"][0]
        return receipt


def job(stage: Any, operation: str, /, **params: Any) -> dict[str, int]:
    """Begin a job, work on it to its end, and answer its counts."""
    id = stage.ask(operation, **params)["id"]
    worker = Dispatcher(stage.engine, {}, "jobs")
    while worker.run_once():
        stage.now += 1
    found = stage.engine.jobs.get("default", id)
    assert found.state == "done", found
    return dict(found.counts)
