"""What people do who look after people, deliveries and jobs. A capability that comes later has its line here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from random import Random
from typing import Any
from zipfile import ZipFile

from tests.simulator.clients import LEAVING, LEAVING_PEOPLE, WILD, Clients
from tests.simulator.outside import Outside
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.sender import EFFECT_RETRIED, Outcome
from threadline.surfaces.operation_calls import call

Act = Callable[[Engine], Any]
_BROADCASTS = 3
_AGAIN = Outcome(type=EFFECT_RETRIED, retry_after_seconds=0.0)


class Operators:
    """Everybody who may do more than send events. Their requests may fail: they are not tried again."""

    def __init__(self, random: Random, outside: Outside, clients: Clients) -> None:
        self._random = random
        self._outside = outside
        self._clients = clients
        self._number = 0
        self._acts: list[Act] = [
            self._merge,
            self._merge,
            self._split,
            self._unmerge,
            self._review,
            self._redrive,
            self._resolve,
            self._start_queues,
            self._broadcast,
            self._broadcast,
            self._rejected,
            self._erase,
            self._export,
            self._verify,
        ]

    def act(self, on: Engine) -> None:
        """One thing that one of them does."""
        self._number += 1
        self._random.choice(self._acts)(on)

    def tidy(self, on: Engine) -> None:
        """What they do until nothing is left to be decided."""
        self._start_queues(on)
        self._redrive(on)
        self._resolve(on)
        for number in range(_BROADCASTS):
            with suppress(NotFound, Conflict):
                self._steer(on, "resume", f"b{number}")

    def _someone(self) -> str:
        return self._random.choice(
            (f"user_id:w{self._random.randrange(6)}", f"anonymous_id:a{self._random.randrange(12)}")
        )

    def _merge(self, on: Engine) -> None:
        forced = self._random.random() < 0.5
        on.identity.merge(WILD, self._someone(), self._someone(), request=f"m{self._number}", force=forced)

    def _split(self, on: Engine) -> None:
        who = self._someone()
        on.identity.split(WILD, who, [who], request=f"s{self._number}")

    def _unmerge(self, on: Engine) -> None:
        types = frozenset({"threadline.person_merged"})
        found = on.reader.events(on.reader.person(WILD, self._someone()), types=types, reverse=True, limit=1)
        if found:
            on.identity.unmerge(WILD, found[0].id, request=f"u{self._number}")

    def _review(self, on: Engine) -> None:
        for each in on.identity.quarantined(WILD):
            if each["status"] == "open":
                on.identity.review(WILD, each["id"], join=self._random.random() < 0.5)
                break

    def _redrive(self, on: Engine) -> None:
        on.delivery.redrive(on.delivery.dead_letters(WILD), "operator")

    def _resolve(self, on: Engine) -> None:
        for each in on.delivery.unknown(WILD):
            if self._outside.has_taken(each.pending.id):
                on.delivery.resolve(WILD, each.pending.id, None, "operator")
            elif self._outside.is_well:
                # Only once nobody can be about to send it who has claimed it and was paused.
                on.delivery.resolve(WILD, each.pending.id, _AGAIN, "operator")

    def _start_queues(self, on: Engine) -> None:
        for each in on.delivery.queues():
            if each.circuit.stopped_at:
                on.delivery.start(each.queue.name)

    def _broadcast(self, on: Engine) -> None:
        id = f"b{self._random.randrange(_BROADCASTS)}"
        if self._random.random() < 0.4:
            self._ask(on, "broadcasts_create", id=id, template="sale")
            self._ask(on, "broadcasts_start", id=id)
        else:
            self._steer(on, self._random.choice(("pause", "resume", "resume", "cancel")), id)

    def _steer(self, on: Engine, verb: str, id: str) -> None:
        self._ask(on, f"broadcasts_{verb}", id=id)

    def _rejected(self, on: Engine) -> None:
        for id, entry in on.rejected.page(WILD, limit=5):
            assert entry.code, f"{id} was rejected without a reason"

    def _erase(self, on: Engine) -> None:
        if self._random.random() < 0.4:  # somebody of whom more is sent: a new person, who may be in the same groups
            self._ask(on, "people_erase", id=self._someone(), request=f"e{self._number}")
            return
        who = f"{LEAVING}{self._random.randrange(LEAVING_PEOPLE)}"
        self._clients.leave(who)
        self._ask(on, "people_erase", id=f"user_id:{who}", request=f"e-{who}", reason=who.removeprefix(LEAVING))

    def _export(self, on: Engine) -> None:
        archive = b"".join(self._ask(on, "people_export", id=self._someone()))
        assert ZipFile(BytesIO(archive)).testzip() is None, "an archive is broken"

    def _verify(self, on: Engine) -> None:
        """Beside live traffic: what has just changed must not be told as a fault."""
        wrong = [each for each in refold_shard(on.store, on.catalogue) if each.differs or each.unreadable]
        wrong = [each for each in wrong if not each.is_stale]
        assert not wrong, f"{[each.item.key.partition for each in wrong]} {wrong[0].unreadable} are damaged"

    @staticmethod
    def _ask(on: Engine, name: str, **given: Any) -> Any:
        operation = next(each for each in on.catalogue.operations if each.name == name)
        return call(operation, Context(on, WILD, on.now()), given, strict=True)
