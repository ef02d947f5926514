"""The ledger of a channel: what was sent to a person and what became of it, and when each template was sent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from threadline.kernel.event import Recorded
from threadline.kernel.limits import MAIL_LEDGER_MAX, MAIL_TEMPLATES_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.names import PATH_NAME
from threadline.kernel.person_view import PersonView
from threadline.kernel.projection import Depends, Faster, Index, Projection
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_UNKNOWN
from threadline.kernel.time import format_time, parse_time
from threadline.kernel.view_parts import Parts, values

_MESSAGE_LENGTH_MAX = 64
_SENT_AT, _FIRST_AT, _SEEN, _TEMPLATE, _TRANSACTIONAL = range(5)
_COUNT, _FIRST, _LAST = range(3)
_NOT_GONE = frozenset({"skipped", "failed"})

Message = list[Any]
"""When it was sent (0: not), the first event about it, bits of its statuses, its template, whether transactional."""
State = dict[str, dict[str, Any]]
"""The messages under the name of their list: id -> `Message`; ``templates``: name -> [how often sent, first, last]."""


class Entries(NamedTuple):
    """What the ledger of a channel is made of."""

    channel: str
    """The name of the projection, and the kind of the channel's effects."""
    listed: str
    """What a person's messages are called in the view."""
    statuses: tuple[tuple[str, str], ...]
    """What is known of a message, by event type; of several what stands last counts."""
    sent: str
    skipped: str
    template_kind: str
    """What the names of its templates are a `NameKind` of."""
    by_machines: Collection[str] = frozenset()
    """Types that say nothing of a person where they are marked as a machine's."""

    @property
    def bits(self) -> dict[str, int]:
        """A bit for each type."""
        return {type: 1 << position for position, (type, _) in enumerate(self.statuses)}

    @property
    def ours(self) -> frozenset[str]:
        """What Threadline itself says of a message."""
        return frozenset({self.sent, self.skipped, EFFECT_PARKED, EFFECT_UNKNOWN})

    def status_of(self, seen: int) -> str:
        """The status that the last of what is known gives."""
        return self.statuses[seen.bit_length() - 1][1]


def ledger(entries: Entries, index: Index | None = None) -> Projection:
    """The projection of a channel. Ordered, because the oldest message of a full ledger is dropped; what comes in later
    in any order changes nothing before that."""
    bits, ours, listed = entries.bits, entries.ours, entries.listed
    bits_of_ours = sum(bits[type] for type in ours)

    def fold(state: State, recorded: Recorded) -> State | None:
        event = recorded.event
        properties = event.properties
        message = properties.get("message")
        if type(message) is not str or not 0 < len(message) <= _MESSAGE_LENGTH_MAX:
            return None
        if event.type in (EFFECT_PARKED, EFFECT_UNKNOWN) and properties.get("kind") != entries.channel:
            return None
        by_machine = event.type in entries.by_machines and properties.get("machine") is True
        if by_machine or properties.get("test") is True:
            return None
        at, is_sent = event.occurred_at, event.type == entries.sent
        template = properties.get("template")
        if type(template) is not str or not PATH_NAME.fullmatch(template):
            template = ""
        transactional = properties.get("transactional") is True and event.type in ours
        noted = [at if is_sent else 0, at, bits[event.type], template, transactional]
        messages = state[listed]
        messages[message] = _merge_messages(messages[message], noted) if message in messages else noted
        if len(messages) > MAIL_LEDGER_MAX:
            del messages[min(messages, key=lambda name: (_at(messages[name]), name))]
        if is_sent and template:
            templates = state["templates"]
            counted = [1, at, at]
            templates[template] = _merge_counts(templates[template], counted) if template in templates else counted
            keep_smallest(templates, MAIL_TEMPLATES_MAX)
        return state

    def in_place(state: State, recorded: Recorded) -> bool:
        """Whether the order of events shows in nothing yet: no message has been dropped."""
        return len(state[listed]) < MAIL_LEDGER_MAX

    def merge(first: State, second: State) -> State | None:
        if len(first[listed]) + len(second[listed]) > MAIL_LEDGER_MAX:
            return None
        counted = merge_entries(first["templates"], second["templates"], _merge_counts)
        return {
            listed: merge_entries(first[listed], second[listed], _merge_messages),
            "templates": keep_smallest(counted, MAIL_TEMPLATES_MAX),
        }

    def view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
        messages = sorted(state[listed].items(), key=lambda item: (_at(item[1]), item[0]), reverse=True)
        return {
            listed: [
                _shown(entries, id, message)
                for id, message in messages
                if message[_SEEN] & bits_of_ours or message[_TEMPLATE]
            ],
            "templates": {name: _shown_counts(counts) for name, counts in sorted(state["templates"].items())},
        }

    counts = Parts(named=entries.template_kind, inside=Parts(values("count", "first", "last")))
    return Projection(
        name=entries.channel,
        version=1,
        handles=frozenset(bits),
        empty=lambda: {listed: {}, "templates": {}},
        fold=fold,
        view=view,
        depends=Depends(parts=Parts(values(listed) | {"templates": counts})),
        index=index or Index(),
        faster=Faster(merge=merge),
        ordered=True,
        in_place=in_place,
    )


def marketing_sent(entries: Entries, view: PersonView) -> list[int]:
    """When marketing messages went to the person, or may have: one of which nobody knows counts."""
    return [
        parse_time(message["at"])
        for message in (view.view(entries.channel) or {}).get(entries.listed, ())
        if not message["transactional"] and message["status"] not in _NOT_GONE
    ]


def _shown(entries: Entries, id: str, message: Message) -> dict[str, Any]:
    return {
        "message": id,
        "template": message[_TEMPLATE],
        "status": entries.status_of(message[_SEEN]),
        "at": format_time(_at(message)),
        "transactional": message[_TRANSACTIONAL],
    }


def _shown_counts(counts: list[int]) -> dict[str, Any]:
    return {"count": counts[_COUNT], "first": format_time(counts[_FIRST]), "last": format_time(counts[_LAST])}


def _at(message: Message) -> int:
    return int(message[_SENT_AT] or message[_FIRST_AT])


def _merge_messages(first: Message, second: Message) -> Message:
    sent = [message[_SENT_AT] for message in (first, second) if message[_SENT_AT]]
    return [
        min(sent, default=0),
        min(first[_FIRST_AT], second[_FIRST_AT]),
        first[_SEEN] | second[_SEEN],
        max(first[_TEMPLATE], second[_TEMPLATE]),
        first[_TRANSACTIONAL] or second[_TRANSACTIONAL],
    ]


def _merge_counts(first: list[int], second: list[int]) -> list[int]:
    return [first[_COUNT] + second[_COUNT], min(first[_FIRST], second[_FIRST]), max(first[_LAST], second[_LAST])]
