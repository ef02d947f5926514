"""One person's events, each as laborious to record as it can be, for a law and for a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from threadline.kernel.event import Event, Identifier
from threadline.kernel.limits import EVENT_BYTES_MAX, IDENTIFIERS_PER_EVENT_MAX
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND

ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
"""Their days differ by one or two."""

Attack = Callable[[int], Event]
"""The event of a number, which is its place in the order of sending."""


def attacks(who: Identifier, types: Sequence[str], now: int) -> dict[str, Attack]:
    """The attacks of a person by name, with events of these types. The first is what ordinary people send."""

    def event(number: int, type: str = "page", at: int | None = None, *, zoned: bool = False) -> Event:
        return Event(
            type=type,
            identifiers=(who,),
            occurred_at=now - DAY + number * SECOND if at is None else at,
            key=f"{who.value} {number}",
            properties={"title": "Home"},
            context={"timezone": ZONES[number % 2]} if zoned else {},
        )

    def zoned_now_and_then(number: int) -> Event:
        context = {"timezone": ZONES[number // 2 % 2]} if number % 2 else {}
        return _with(event(number, at=now - number * 7_919 % 20_000 * MINUTE), context=context)

    def named(number: int) -> Event:
        new = [Identifier("anonymous_id", f"{who.value} {number} {i}") for i in range(IDENTIFIERS_PER_EVENT_MAX - 1)]
        return _with(event(number), identifiers=(who, *new))

    def anything(number: int) -> Event:
        draw = Random(f"anything {number}")
        at = now - draw.choice((0, draw.randrange(HOUR), draw.randrange(400 * DAY)))
        properties = {f"p{draw.randrange(50)}": draw.random() for _ in range(draw.randrange(20))}
        return _with(event(number, draw.choice(types), at, zoned=True), properties={"title": "Home", **properties})

    return {
        "in order": event,
        "alternating zones": lambda n: event(n, zoned=True),
        "in reverse": lambda n: event(n, at=now - n * HOUR),
        "in reverse, alternating zones": lambda n: event(n, at=now - n * HOUR, zoned=True),
        "days in reverse, alternating zones": lambda n: event(n, at=now - n * DAY, zoned=True),
        "the same instant": lambda n: event(n, at=now, zoned=True),
        "hours of long ago, alternating zones": lambda n: event(n, at=now - 400 * DAY - n * HOUR, zoned=True),
        "zones between events that name none": zoned_now_and_then,
        "every type": lambda n: event(n, types[n % len(types)]),
        "every type in reverse": lambda n: event(n, types[n % len(types)], now - n * HOUR, zoned=True),
        "ahead of the clock": lambda n: event(n, at=now + (n * 7_919 % 3_000) * SECOND),
        "as many identifiers as may be": named,
        "as large as may be": lambda n: _with(
            event(n), properties={"title": "Home", "text": "x" * (EVENT_BYTES_MAX - 1_000)}
        ),
        "as many traits as may be": lambda n: _with(
            event(n, "identify"), properties={f"t{n}-{i}": "y" for i in range(200)}
        ),
        "anything": anything,
    }


def _with(event: Event, **fields: Any) -> Event:
    return msgspec.structs.replace(event, **fields)
