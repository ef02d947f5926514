"""A request for one message by a caller: an event that its operation vouches for, and the effect that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from threadline.capabilities.foundation.events.requests import derived_key, place_and_key, wish
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.operation import Context
from threadline.kernel.suggestion import suggestion


class Requested(NamedTuple):
    """A message that waits in the outbox."""

    person: str
    message: str
    """The id of its effect."""
    event: str
    """The id of the event of the request."""
    status: Literal["queued", "duplicate"]


class Asking(NamedTuple):
    """How a channel is asked for one message."""

    type: str
    """The type of the event of a request."""
    policy: str
    """The policy that makes its effect of it."""
    key: str
    """The key of that effect."""
    what: str
    """A message of the channel, in words."""


def requested(asking: Asking, context: Context, id: str, properties: dict[str, Any], request: str) -> Requested:
    """Record a request about a person; a ``request`` that was made before is a duplicate. Raises `Conflict` and
    `InvalidValue`."""
    person = context.engine.reader.person(context.workspace, id)
    named = request or derived_key(str(person.position), canonical_json(properties).decode())
    identifier, event_key = place_and_key(context, person, asking.type, named, named=request)
    # The operation vouches for it: an event of this type from a producer is recorded and sends nothing.
    event = wish(context, identifier, asking.type, properties, event_key, vouched=True)
    receipt = context.engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {request!r} was used for another {asking.what}; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    effect = context.engine.delivery.effect(context.workspace, asking.policy, receipt.id, asking.key, event.occurred_at)
    status: Literal["queued", "duplicate"] = "queued" if receipt.status == "accepted" else "duplicate"
    return Requested(receipt.person or person.id, effect.id, receipt.id, status)


class Variable(Protocol):
    """What is declared of a variable of a template."""

    @property
    def default(self) -> Any:
        """None: it must be given."""
        ...


def check_variables(template: str, declared: Mapping[str, Variable], given: Mapping[str, Any]) -> None:
    """A caller learns of a mistake at once, and not from a dead letter. Raises `InvalidValue`."""
    for name in given:
        if name not in declared:
            raise InvalidValue(
                f"the template {template!r} has no variable {name[:64]!r}; {suggestion(name, declared)}",
                param="variables",
            )
    missing = [name for name, variable in declared.items() if variable.default is None and name not in given]
    if missing:
        raise InvalidValue(f"the template {template!r} needs the variable {missing[0]!r}", param="variables")
