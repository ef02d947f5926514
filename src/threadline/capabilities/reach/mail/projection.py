"""The ledger: what was sent to a person and what became of it, and when each template was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from threadline.capabilities.reach.feedback.events import (
    MAIL_BOUNCED,
    MAIL_CLICKED,
    MAIL_COMPLAINED,
    MAIL_DELAYED,
    MAIL_DELIVERED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SENT,
)
from threadline.capabilities.reach.mail.definition import KIND
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED, MAIL_SKIPPED
from threadline.kernel.event import Recorded
from threadline.kernel.limits import MAIL_LEDGER_MAX, MAIL_TEMPLATES_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.names import PATH_NAME
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_UNKNOWN
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.kernel.view_parts import Parts, values

WARM_UP = "mail_warm_up"
"""Table of the mails that a new domain has sent on a day."""
STATUSES = (
    (MAIL_SKIPPED, "skipped"),
    (EFFECT_PARKED, "failed"),
    (EFFECT_UNKNOWN, "unknown"),
    (MAIL_SENT, "sent"),
    (MAIL_DELAYED, "delayed"),
    (MAIL_DELIVERED, "delivered"),
    (MAIL_OPENED, "opened"),
    (MAIL_CLICKED, "clicked"),
    (MAIL_REPLIED, "replied"),
    (MAIL_BOUNCED, "bounced"),
    (MAIL_COMPLAINED, "complained"),
)
"""What is known of a mail, by event type; of several what stands last counts."""
_BITS = {type: 1 << position for position, (type, _) in enumerate(STATUSES)}
_OURS = frozenset({MAIL_SENT, MAIL_SKIPPED, EFFECT_PARKED, EFFECT_UNKNOWN})
_SENT_BIT = _BITS[MAIL_SENT]
_GONE = _SENT_BIT | _BITS[EFFECT_UNKNOWN]
"""A mail of which nobody knows counts for frequency caps: it may have arrived."""
_BY_MACHINES = frozenset({MAIL_OPENED, MAIL_CLICKED})

_MESSAGE_LENGTH_MAX = 64
_DOMAIN_LENGTH_MAX = 255

_SENT_AT, _FIRST_AT, _SEEN, _TEMPLATE, _TRANSACTIONAL = range(5)
_COUNT, _FIRST, _LAST = range(3)

Mailed = list[Any]
"""When it was sent (0: not), the first event about it, bits of `STATUSES`, its template, whether transactional."""
State = dict[str, dict[str, Any]]
"""``mails``: message -> `Mailed`; ``templates``: name -> [how often it was sent, first, last]."""


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    properties = event.properties
    message = properties.get("message")
    if type(message) is not str or not 0 < len(message) <= _MESSAGE_LENGTH_MAX:
        return None
    if event.type in (EFFECT_PARKED, EFFECT_UNKNOWN) and properties.get("kind") != KIND:
        return None
    if (event.type in _BY_MACHINES and properties.get("machine") is True) or properties.get("test") is True:
        return None
    at, is_sent = event.occurred_at, event.type == MAIL_SENT
    template = properties.get("template")
    if type(template) is not str or not PATH_NAME.fullmatch(template):
        template = ""
    transactional = properties.get("transactional") is True and event.type in _OURS
    mailed = [at if is_sent else 0, at, _BITS[event.type], template, transactional]
    mails = state["mails"]
    mails[message] = _merge_mailed(mails[message], mailed) if message in mails else mailed
    if len(mails) > MAIL_LEDGER_MAX:
        del mails[min(mails, key=lambda name: (_at(mails[name]), name))]
    if is_sent and template:
        templates = state["templates"]
        counted = [1, at, at]
        templates[template] = _merge_counts(templates[template], counted) if template in templates else counted
        keep_smallest(templates, MAIL_TEMPLATES_MAX)
    return state


def _at(mailed: Mailed) -> int:
    return int(mailed[_SENT_AT] or mailed[_FIRST_AT])


def _merge_mailed(first: Mailed, second: Mailed) -> Mailed:
    sent = [mailed[_SENT_AT] for mailed in (first, second) if mailed[_SENT_AT]]
    return [
        min(sent, default=0),
        min(first[_FIRST_AT], second[_FIRST_AT]),
        first[_SEEN] | second[_SEEN],
        max(first[_TEMPLATE], second[_TEMPLATE]),
        first[_TRANSACTIONAL] or second[_TRANSACTIONAL],
    ]


def _merge_counts(first: list[int], second: list[int]) -> list[int]:
    return [first[_COUNT] + second[_COUNT], min(first[_FIRST], second[_FIRST]), max(first[_LAST], second[_LAST])]


def _in_place(state: State, recorded: Recorded) -> bool:
    """Whether the order of events shows in nothing yet: no mail has been dropped."""
    return len(state["mails"]) < MAIL_LEDGER_MAX


def _merge(first: State, second: State) -> State | None:
    if len(first["mails"]) + len(second["mails"]) > MAIL_LEDGER_MAX:
        return None
    return {
        "mails": merge_entries(first["mails"], second["mails"], _merge_mailed),
        "templates": keep_smallest(
            merge_entries(first["templates"], second["templates"], _merge_counts), MAIL_TEMPLATES_MAX
        ),
    }


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    mails = sorted(state["mails"].items(), key=lambda item: (_at(item[1]), item[0]), reverse=True)
    return {
        "mails": [
            {
                "message": message,
                "template": mailed[_TEMPLATE],
                "status": status_of(mailed[_SEEN]),
                "at": format_time(_at(mailed)),
                "transactional": mailed[_TRANSACTIONAL],
            }
            for message, mailed in mails
            if mailed[_SEEN] & _OURS_BITS or mailed[_TEMPLATE]
        ],
        "templates": {
            name: {"count": counts[_COUNT], "first": format_time(counts[_FIRST]), "last": format_time(counts[_LAST])}
            for name, counts in sorted(state["templates"].items())
        },
    }


_OURS_BITS = sum(_BITS[type] for type in _OURS)


def status_of(seen: int) -> str:
    """The status that the last of what is known gives."""
    return STATUSES[seen.bit_length() - 1][1]


_NOT_GONE = frozenset({"skipped", "failed"})


def marketing_sent(view: Mapping[str, Any]) -> list[int]:
    """When marketing mails went to the person, or may have, by the view of the ledger."""
    return [
        parse_time(mail["at"])
        for mail in view.get("mails", ())
        if not mail["transactional"] and mail["status"] not in _NOT_GONE
    ]


def warm_up_partition(workspace: str, domain: str, day: int) -> str:
    """The partition of the mails of a domain on a day, counted from 1970-01-01 in UTC."""
    return f"{workspace}/{domain}/{day}"


def _event_rows(recorded: Recorded) -> Iterable[Row]:
    event = recorded.event
    domain = event.properties.get("domain")
    counts = event.type == MAIL_SENT and event.properties.get("warm_up") is True
    if counts and type(domain) is str and 0 < len(domain) <= _DOMAIN_LENGTH_MAX:
        partition = warm_up_partition(event.workspace, domain, event.occurred_at // DAY)
        yield Row(WARM_UP, partition, f"{event.occurred_at:020d}.{recorded.id}")


_TEMPLATE_PARTS = Parts(values("count", "first", "last"))
_PARTS = Parts(values("mails") | {"templates": Parts(named="template", inside=_TEMPLATE_PARTS)})
LEDGER = Projection(
    name="mail",
    version=1,
    handles=frozenset(_BITS),
    empty=lambda: {"mails": {}, "templates": {}},
    fold=_fold,
    view=_view,
    depends=Depends(parts=_PARTS),
    index=Index(event_rows=_event_rows),
    faster=Faster(merge=_merge),
    ordered=True,
    in_place=_in_place,
)
"""Ordered, because the oldest mail of a full ledger is dropped; feedback in any order changes nothing before that."""

WARM_UP_TABLE = StoreTable(WARM_UP, "event_rows", why="it counts mails of a day, by the ids of events")
MAILS_FILE = PersonFile(
    "mails",
    "Mails to you",
    "Mails that were sent to you, or were to be and were left out, and why.",
    joined(shown_views("mail"), shown_events(MAIL_SENT, MAIL_SKIPPED, MAIL_REQUESTED)),
    ("mail",),
)
