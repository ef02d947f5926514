"""The policy ``broadcasts``: whoever is addressed by a broadcast gets its mail, once."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.broadcasts.events import BROADCAST_ADDRESSED, HOLDOUT, broadcast_of
from threadline.capabilities.broadcasts.projection import BROADCASTS
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Policy, PolicyView, Read, Wish
from threadline.kernel.time import parse_time

MESSAGE = ("template", "subject", "sender", "topic", "arm")


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    id, properties = broadcast_of(recorded), recorded.event.properties
    if not id or properties.get("arm") == HOLDOUT:
        return ()
    # Two who were both addressed and are one person by now get one mail.
    if any(other == id and event != recorded.id for _, other, event, _ in known[BROADCASTS.name]):
        return ()
    given = {name: properties[name] for name in MESSAGE if type(properties.get(name)) is str and properties[name]}
    variables = properties.get("variables")
    data = {
        **given, "broadcast": id, "occurrence": f"broadcast/{id}",
        "variables": variables if type(variables) is dict else {},
    }  # fmt: skip
    return (Effect(kind="mail", queue="mail", key=id, due_at=_due(properties.get("due_at")), data=data),)


def _due(text: object) -> int:
    try:
        return parse_time(text) if type(text) is str else 0
    except InvalidValue:
        return 0


POLICY = Policy(
    name=BROADCASTS.name,
    handles=frozenset({BROADCAST_ADDRESSED}),
    react=_react,
    emits=frozenset(),
    sends=frozenset({"mail"}),
    reads=(Read(BROADCASTS.name),),
)
