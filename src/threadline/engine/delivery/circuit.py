"""The circuit breaker of each destination: its queue flows, is left alone for a while, or is stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from threadline.kernel.errors import NotFound
from threadline.kernel.outbox import CircuitState
from threadline.kernel.sender import Outcome, Queue, rest_seconds
from threadline.kernel.store import Batch, Check, Item, Key, Put, Refusal, Store
from threadline.kernel.time import SECOND, Clock

STATES = "lane"
"""Table: the circuit of each queue, in one partition."""
_ALL = "-"


class StoredCircuit(NamedTuple):
    """A circuit and the version of its item; 0 if there is none."""

    state: CircuitState
    version: int


class Circuit:
    """Decides from outcomes when a destination is left alone, and when it is called again.

    Not thread-safe: each worker counts the failures that it has seen itself.
    """

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._failures = 0
        """In a row."""

    def after(self, before: CircuitState, outcomes: Sequence[Outcome]) -> CircuitState:
        """The state after these outcomes."""
        after = before
        for outcome in outcomes:
            if outcome.destination == "gone":
                return CircuitState(stopped_at=self._clock(), why=outcome.parked)
            if outcome.destination == "failing":
                self._failures += 1
                # One failure is enough after a rest.
                if self._queue.failures_max and (before.rests or self._failures >= self._queue.failures_max):
                    after = self._rested(before)
            elif not outcome.parked:
                self._failures = 0
                after = CircuitState()
        return after

    def _rested(self, before: CircuitState) -> CircuitState:
        self._failures = 0
        until = self._clock() + rest_seconds(before.rests) * SECOND
        return CircuitState(rests=before.rests + 1, rest_until=until)


def circuit_of(store: Store, name: str) -> StoredCircuit:
    """The circuit of a queue now."""
    item = store.get([Key(STATES, _ALL, name)])[0]
    return StoredCircuit(CircuitState(), 0) if item is None else StoredCircuit(_read(item), item.version)


def circuits(store: Store) -> dict[str, CircuitState]:
    """The circuits of all queues that a dispatcher has seen, by name."""
    return {item.key.sort: _read(item) for item in store.query(STATES, _ALL)}


def change_circuit(
    store: Store, name: str, circuit: CircuitState, expected: int | None, *checks: Check
) -> Refusal | None:
    """Write the circuit of a queue; the refusal if another process has changed it."""
    put = Put(Key(STATES, _ALL, name), msgspec.msgpack.encode(circuit), expected)
    return store.commit([Batch(writes=[put, *checks])])[0]


def _read(item: Item) -> CircuitState:
    return msgspec.msgpack.decode(item.value, type=CircuitState)


def queues_to_work(store: Store, queues: Mapping[str, Queue]) -> list[Queue]:
    """The declared queues, and former ones: effects still in them must not wait for ever."""
    known = circuits(store)
    for name in queues.keys() - known.keys():
        change_circuit(store, name, CircuitState(), 0)
    return [*queues.values(), *(Queue(name) for name in known.keys() - queues.keys())]


def stop_queue(store: Store, clock: Clock, queues: Mapping[str, Queue], name: str, why: str) -> bool:
    """Stop sending there; whether that changes anything. What is due there becomes a dead letter."""
    if name not in queues:
        raise NotFound(f"nothing is sent to {name!r}: it is not declared")
    if circuit_of(store, name).state.stopped_at:
        return False
    change_circuit(store, name, CircuitState(stopped_at=clock(), why=why), None)
    return True


def start_queue(store: Store, queues: Mapping[str, Queue], name: str) -> bool:
    """Resume sending there at once; whether that changes anything. Dead letters of the meantime wait to be redriven."""
    if name not in queues:
        raise NotFound(f"nothing is sent to {name!r}: it is not declared")
    if circuit_of(store, name).state == CircuitState():
        return False
    change_circuit(store, name, CircuitState(), None)
    return True
