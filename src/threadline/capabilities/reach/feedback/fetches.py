"""The projection ``mail_fetches``: what was asked for of a person's mails within a day, by which it is decided who did.

A click is a person's or a machine's by what came just before and just after it. So it is decided once, `DECIDED_AFTER`
it came in, and only then recorded as a click: nobody who reads clicks has to take one back.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import Any, NamedTuple

from threadline.capabilities.reach.feedback.events import FETCHES, MAIL_CLICKED, MAIL_OPENED
from threadline.capabilities.reach.feedback.machines import BURST, HONEYPOT_WITHIN, Click, scanned
from threadline.kernel.event import Event, Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import MAIL_FETCH_REPEATS_MAX, MAIL_FETCHES_MAX
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.kernel.view_parts import VALUE, Parts

DECIDED_AFTER = BURST
WITHIN = DAY
"""How long a fetch is remembered behind the newest one."""
_AT, _ID, _MESSAGE = range(3)

State = list[list[Any]]
"""[occurred_at, event id, message, link, agent] of each fetch, in this order; as in `Fetch`."""


class Fetch(NamedTuple):
    """What was asked for, and by which program; both as hashes."""

    message: str
    link: str
    """Empty: the picture."""
    agent: str


_HASH_LENGTH = 16
HIDDEN = short_hash("link", "")[:_HASH_LENGTH]
"""The link that people do not see."""


def fetch_of(event: Event) -> Fetch:
    """What an event of a fetch says was asked for."""
    get = event.properties.get
    is_link = event.type == MAIL_CLICKED or get("fetch") == "clicked"
    link = short_hash("link", str(get("link", "")))[:_HASH_LENGTH] if is_link else ""
    return Fetch(str(get("message", "")), link, short_hash("agent", str(get("agent", "")))[:_HASH_LENGTH])


def repeated(state: State, fetch: Fetch, now: int) -> str:
    """The id of the fetch that this one only repeats, so that it is counted and not recorded; empty: it is news."""
    same = [entry for entry in state if entry[_MESSAGE:] == list(fetch) and entry[_AT] > now - WITHIN]
    if len(same) >= MAIL_FETCH_REPEATS_MAX:
        return str(same[-1][_ID])
    if len(state) < MAIL_FETCHES_MAX or state[0][_AT] <= now - HOUR:
        return ""
    return str(next((entry for entry in reversed(state) if entry[_MESSAGE] == fetch.message), state[-1])[_ID])


def by_machine(state: State, fetch: Fetch, at: int) -> str:
    """Why a fetch is a machine's, by the other fetches of its mail; empty: it is a person's."""
    entries = [(entry[_AT], Fetch(*entry[_MESSAGE:])) for entry in state if entry[_MESSAGE] == fetch.message]
    clicks = {(when, other): _click(when, other) for when, other in entries if other.link}
    reasons = scanned({*clicks.values(), *([_click(at, fetch)] if fetch.link else ())})
    if fetch.link:
        return reasons.get(_click(at, fetch), "")
    # Who loads the picture and follows all links is one and the same.
    for (when, other), click in clicks.items():
        if other.agent == fetch.agent and abs(when - at) <= HONEYPOT_WITHIN and click in reasons:
            return reasons[click]
    return ""


def _click(at: int, fetch: Fetch) -> Click:
    return Click(at, "" if fetch.link == HIDDEN else fetch.link)


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    message = event.properties.get("message")
    if not isinstance(message, str) or not 0 < len(message) < 100:
        return None
    if "of" in event.properties or "count" in event.properties:
        return None  # decided about a fetch that is here, or repeats of one
    entry = [event.occurred_at, recorded.id, *fetch_of(event)]
    if state and entry[_AT] <= state[-1][_AT] - WITHIN:
        return None
    insort(state, entry)
    return _newest(state)


def _newest(state: State) -> State:
    since = state[-1][_AT] - WITHIN if state else 0
    return [entry for entry in state[-MAIL_FETCHES_MAX:] if entry[_AT] > since]


def _merge(first: State, second: State) -> State:
    return _newest(sorted([*first, *second]))


def _view(state: State, now: int, edges: Sequence[Recorded]) -> dict[str, Any]:
    """By mail, when its pictures and links were last asked for."""
    return {entry[_MESSAGE]: format_time(entry[_AT]) for entry in state if entry[_AT] > now - WITHIN}


MAIL_FETCHES = Projection(
    name="mail_fetches",
    version=1,
    handles=FETCHES | {MAIL_OPENED, MAIL_CLICKED},
    empty=list,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts(named="", inside=VALUE)),
    faster=Faster(merge=_merge),
)
"""It commutes: it keeps the newest of the newest day. Opens and clicks that earlier versions recorded are fetches."""
