"""Those who send events: what they send, what they were answered, and what they have to send again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from tests.simulator.definitions import ORDERED, SIGNED_UP
from threadline.kernel.event import Event, Identifier, Receipt, event_id
from threadline.kernel.time import DAY, HOUR
from threadline.testing import scenarios

QUIET, WILD = "default", "wild"
"""Workspaces: in the first nobody but producers does anything, so that the auditor knows who is who; in the second
operators join and split, identifiers are shared, and payloads are hostile."""
PEOPLE = 4
LEAVING, LEAVING_PEOPLE = "leaving-", 6
"""Who are erased, and named nowhere else."""
_NAME = re.compile("(user-|anonymous-|[wa])[0-9-]+")
"""Identifiers that are in their normal form."""
_TYPES = (ORDERED, ORDERED, ORDERED, SIGNED_UP, "page", "page", "identify", "tool_used", "app_opened")


class Clients:
    """Everybody who sends events."""

    def __init__(self, random: Random, events: int, is_erased: Callable[[str], bool]) -> None:
        self.is_erased = is_erased
        """Whether of an event of this id nothing but the id is left."""
        self.leaving: dict[str, bool] = {}
        """Who was to be erased -> whether nothing was sent about them since, nor on its way then."""
        self._on_the_way: Counter[str] = Counter()
        self.sent: dict[str, list[Event]] = {}
        """Event id -> all that was ever sent under it."""
        self.acknowledged: dict[str, Event] = {}
        """Event id -> what the log has under it, as a receipt says."""
        self.counts = 0
        self._accepted: set[str] = set()
        self._random = random
        quiet = scenarios.telling(
            scenarios.shuffled, random, scenarios.history(random, PEOPLE, events // 3, workspace=QUIET)
        )
        wild = scenarios.telling(
            scenarios.shuffled, random, scenarios.history(random, PEOPLE, events // 3, workspace=WILD)
        )
        self._calls = [*quiet, *wild]
        random.shuffle(self._calls)
        self._again: list[list[Event]] = []
        self._number = 0

    @property
    def is_done(self) -> bool:
        """Whether everything was sent and answered."""
        return not self._calls and not self._again

    def next_call(self, now: int) -> list[Event]:
        """What somebody sends now."""
        choice = self._random.random()
        if self._again and choice < 0.3:
            return self._again.pop(self._random.randrange(len(self._again)))
        if self._calls and choice < 0.65:
            return self._calls.pop()
        return self._drawn(now)

    def rest(self) -> list[list[Event]]:
        """All that has no answer yet."""
        calls, self._calls, self._again = [*self._calls, *self._again], [], []
        return calls

    def leave(self, who: str) -> None:
        """Somebody is to be erased."""
        self.leaving.setdefault(who, not self._on_the_way[who])

    def returned(self, call: Sequence[Event]) -> None:
        """A call that went out is no longer on its way."""
        self._on_the_way.subtract(name.value for event in call for name in event.identifiers)

    def sending(self, call: Sequence[Event]) -> None:
        """A call goes out."""
        for event in call:
            for name in event.identifiers:
                self._on_the_way[name.value] += 1
                if name.value in self.leaving:
                    self.leaving[name.value] = False
            variants = self.sent.setdefault(_id(event), [])
            if not any(_same(event, other) for other in variants):
                variants.append(event)

    def unanswered(self, call: list[Event]) -> None:
        """A call got no answer: it is sent again."""
        self._again.append(call)

    def answered(self, call: Sequence[Event], receipts: Sequence[Receipt]) -> None:
        """A call was answered. Raises what contradicts what was answered before."""
        self.counts += len(call)
        for event, receipt in zip(call, receipts, strict=True):
            id = _id(event)
            known = self.acknowledged.get(id)
            if receipt.code == "being_erased":
                self.unanswered([event])
                continue
            if self.is_erased(id):
                continue  # whatever is sent under the id is a duplicate of it
            if receipt.status == "rejected":
                assert event.source == "hostile", f"{event.key} was rejected: {receipt.code}: {receipt.message}"
                assert known is None or not _same(known, event), f"{event.key} was rejected, and accepted before"
                continue
            assert receipt.id == id, f"{event.key} was recorded under {receipt.id}"
            if receipt.status == "conflict":
                assert known is None or not _same(known, event), f"{event.key} conflicts with itself"
                others = [other for other in self.sent[id] if not _same(other, event)]
                assert others, f"{event.key} conflicts with what was never sent"
                if len(others) == 1:
                    self.acknowledged[id] = others[0]
                continue
            assert known is None or _same(known, event), f"{event.key} was {receipt.status}, and in conflict before"
            if receipt.status == "accepted":
                assert id not in self._accepted, f"{event.key} was accepted twice"
                self._accepted.add(id)
            self.acknowledged[id] = event

    # --- what is drawn ----------------------------------------------------------------------

    def _drawn(self, now: int) -> list[Event]:
        return [self._event(now) for _ in range(self._random.choice((1, 1, 1, 2, 5, 12)))]

    def _event(self, now: int) -> Event:
        random = self._random
        if random.random() < 0.08 and self.sent:
            return self._malicious(random.choice(random.choice(list(self.sent.values()))))
        self._number += 1
        type = random.choice(_TYPES)
        at = now - random.choice((0, 1, random.randrange(HOUR), random.randrange(40 * DAY), -random.randrange(HOUR)))
        order = {"order": f"o{self._number}", "total": random.choice((10, 40, 60, 900))}
        return Event(
            type=type,
            identifiers=self._identifiers(),
            occurred_at=at,
            key=f"d{self._number}",
            workspace=WILD,
            source=random.choice(("web", "app")),
            properties=order if type == ORDERED else {"title": "Home"},
        )

    def _identifiers(self) -> tuple[Identifier, ...]:
        random = self._random
        if random.random() < 0.15:
            who = f"{LEAVING}{random.randrange(LEAVING_PEOPLE)}"
            if who not in self.leaving:
                return (Identifier("user_id", who), Identifier("anonymous_id", f"{who}-phone"))[: random.choice((1, 2))]
        names = [
            Identifier("user_id", f"w{random.randrange(6)}"),
            Identifier("anonymous_id", f"a{random.randrange(12)}"),
            Identifier("email", f"w{random.randrange(6)}@example.com"),
        ]
        return tuple(random.sample(names, random.choice((1, 1, 1, 1, 2, 2, 3))))

    def _malicious(self, event: Event) -> Event:
        """Something like an event that was sent before, that must be rejected or is in conflict with it."""
        self._number += 1
        replace, random = msgspec.structs.replace, self._random
        fields: dict[str, Any] = random.choice(
            (
                {"type": ""},
                {"type": "x" * 300},
                {"type": "threadline.forged"},
                {"identifiers": (Identifier("user_id", "null"),)},
                {"properties": {"text": "\ud800"}},
                {"properties": {"deep": "größer \U0001f600", "zero": -0.0, "big": 2**63 - 1}},
                None,
            )
        )
        if fields is None:
            return replace(event, properties={"other": self._number})
        return replace(event, source="hostile", key=f"h{self._number}", **fields)


def _id(event: Event) -> str:
    return event_id(event.workspace, event.source, event.key)


def _same(one: Event, other: Event) -> bool:
    return repr(payload(one)) == repr(payload(other))


def payload(event: Event) -> tuple[Any, ...]:
    """What makes an event the same as another one, also after its identifiers were put into their normal form.

    Its time is no part of it: what lies too far ahead of the clock of whoever records it is dated back."""
    names = sorted(f"{each.kind}:{each.value}" for each in event.identifiers if _NAME.fullmatch(each.value))
    return event.type, event.properties, event.context, event.object_ref, names
