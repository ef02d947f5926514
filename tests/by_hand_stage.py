"""Processes on one store, each as a server is: by its files, by what is made by hand, and by the newest of that."""

from __future__ import annotations

from typing import Any

import msgspec

from threadline.app import catalogue_of
from threadline.capabilities.foundation.definitions.document import BY_HAND
from threadline.capabilities.foundation.definitions.versions import newest
from threadline.engine.context import Context
from threadline.engine.definition_history import refuse_changed
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine, Surroundings
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.applying import fingerprint
from threadline.kernel.store import Store
from threadline.kernel.time import SECOND
from threadline.surfaces.by_hand import Following
from threadline.surfaces.operation_calls import call

FILE = "threadline.yaml"
STARTS_AT = 1_767_225_600 * SECOND


def made_of(files: str, by_hand: str = "") -> Catalogue:
    """The catalogue of a file, and of what is made by hand."""
    return catalogue_of([*([(FILE, files)] if files else []), *([(BY_HAND, by_hand)] if by_hand else [])])


class Process:
    """One process on a store."""

    def __init__(self, store: Store, files: str = "", now: int = STARTS_AT) -> None:
        self.store, self.files, self.now = store, files, now
        self.engine = self._opened()
        self.following = Following(lambda: self.engine, lambda version: self._reload() and None)

    def _opened(self) -> Engine:
        by_hand = newest(self.store)
        made = made_of(self.files, by_hand.text)
        surroundings = Surroundings(by_hand=by_hand.number)
        engine = Engine(self.store, made, lambda: self.now, surroundings)
        engine.maintenance.reloader = self._reload
        engine.maintenance.checker = self._check
        return engine

    def _check(self, by_hand: str) -> str:
        made = made_of(self.files, by_hand)
        refuse_changed(self.store, made)
        return fingerprint(made)

    def _reload(self) -> Engine:
        self.engine = self._opened()
        return self.engine

    def ask(self, operation: str, /, *, source: str = "olga", **params: Any) -> Any:
        """Run an operation, with plain values in and out."""
        self.now += 1
        context = Context(self.engine, "default", self.now, source)
        return msgspec.to_builtins(call(self.engine.catalogue.operation(operation), context, params, strict=True))

    def work(self) -> None:
        """Carry out what is due."""
        worker = Dispatcher(self.engine, {}, "worker")
        while worker.run_once():
            self.now += 1
        worker.let_go()

    def segments(self) -> list[str]:
        """The names of those in force."""
        return [segment["name"] for segment in self.ask("segments_list")["segments"]]
