"""The policy ``broadcasts``: whoever is addressed by a broadcast gets its mail, once."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, HOLDOUT, broadcast_of, due_at
from threadline.capabilities.reach.broadcasts.projection import BROADCASTS
from threadline.capabilities.reach.broadcasts.repository import stopped
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Policy, PolicyView, Read, Wish
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import DueEffect, Guard, Postponed
from threadline.kernel.time import MINUTE

MESSAGE = ("subject", "sender", "topic", "arm")
PAUSED = 10 * MINUTE
"""After this long the mails of a broadcast that is paused are looked at again."""


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    id, properties = broadcast_of(recorded), recorded.event.properties
    if not id or properties.get("arm") == HOLDOUT:
        return ()
    # Two who were both addressed and are one person by now get one mail.
    if any(other == id and event != recorded.id for _, other, event, _ in known[BROADCASTS.name]):
        return ()
    given = {name: properties[name] for name in MESSAGE if type(properties.get(name)) is str}
    template, variables = properties.get("template"), properties.get("variables")
    about = {**given, "broadcast": id}
    return (
        mail_effect(
            id,
            template if type(template) is str else "",
            variables if type(variables) is dict else {},
            f"broadcast/{id}",
            due_at(recorded.event),
            **about,
        ),
    )


def _allow(engine: Ports, due: Sequence[DueEffect]) -> list[str | Postponed]:
    """Whether the broadcasts of mails go on."""
    named = [(pending.workspace, pending.effect.data["broadcast"]) for _, pending in due]
    answers: dict[tuple[str, str], str | Postponed] = {
        (workspace, id): _answer(engine, workspace, id) for workspace, id in set(named)
    }
    return [answers[key] for key in named]


def _answer(engine: Ports, workspace: str, id: str) -> str | Postponed:
    how = stopped(engine, workspace, id)
    if how == "paused":
        return Postponed(until=engine.recorder.clock() + PAUSED, why="broadcast_paused")
    return f"broadcast {id!r} was cancelled" if how else ""


GUARD = Guard(BROADCASTS.name, _allow)
POLICY = Policy(
    name=BROADCASTS.name,
    handles=frozenset({BROADCAST_ADDRESSED}),
    react=_react,
    emits=frozenset(),
    sends=frozenset({"mail"}),
    reads=(Read(BROADCASTS.name),),
)
