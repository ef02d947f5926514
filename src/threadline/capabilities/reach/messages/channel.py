"""A channel: one way to reach people, such as mail. What each has of its own; all else is done once, for all of them.

The steps of a message, in this order, each at the last moment:

1. `Channel.order`: what is asked for, with what the template and the person add to it;
2. consent and suppression, caps and quiet hours, by its `Limits`; then `Channel.paced`, what it waits for itself;
3. `Channel.complete`: what its template sees; `Channel.fill`: templates filled in, all at once, as confined work;
4. `Channel.make`: what the sender gets, what the event says that it was sent, and the address that is claimed;
5. the claim, the call, and the outcome are the outbox's: a queue of this name that ``claims``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from threadline.capabilities.reach.messages.ledger import Entries
from threadline.capabilities.reach.messages.limits import Limits
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Postponed

BELONGS_TO = ("journey", "broadcast", "rule", "step", "arm", "occurrence", "test")
"""What of an effect's data says why there is this message; it is in every event about the message."""


class Wanted(Protocol):
    """A message that is asked for."""

    @property
    def id(self) -> str:
        """The id of the effect."""
        ...

    @property
    def workspace(self) -> str:
        """Whose message it is."""
        ...

    @property
    def address(self) -> str:
        """As it was given; empty for a person without one."""
        ...

    @property
    def topic(self) -> str:
        """What people can unsubscribe from; empty: from all alone."""
        ...

    @property
    def transactional(self) -> bool:
        """Whether the person has asked for it by what they did."""
        ...


class Made(NamedTuple):
    """A message that is made."""

    address: str
    """What is claimed together with the occurrence: the address in the form in which two are compared."""
    data: Mapping[str, Any]
    """What the sender gets."""
    record: Mapping[str, Any]
    """The properties of the event that says that it was sent."""


W = TypeVar("W", bound=Wanted)
F = TypeVar("F")


class Channel(Protocol[W, F]):
    """One way to reach people. ``W`` is what it is asked for, ``F`` a template that is filled in, or why it is not."""

    @property
    def entries(self) -> Entries:
        """Its ledger, under the name of the channel: the kind of its effects, and the queue in which they wait."""
        ...

    @property
    def limits(self) -> Limits:
        """What holds up its messages."""
        ...

    def is_address(self, text: str) -> bool:
        """Whether messages can be sent there at all."""
        ...

    def order(self, view: PersonView, pending: PendingEffect) -> W:
        """What an effect asks for. Raises `InvalidValue` and `NotFound` for what is not declared."""
        ...

    def paced(self, ports: Ports, order: W, at: int) -> Postponed | None:
        """When it may go, if the channel itself lets it wait."""
        ...

    def complete(self, ports: Ports, order: W, view: PersonView, event: str) -> W:
        """The order with what its template sees; ``event``: the id of the event behind it."""
        ...

    def fill(self, ports: Ports, orders: Sequence[W]) -> Sequence[F]:
        """The templates of these orders, filled in."""
        ...

    def make(self, ports: Ports, order: W, filled: F) -> Made:
        """The message. Raises `InvalidValue` and `NotFound` where it cannot be made."""
        ...


def message_effect(
    channel: str, key: str, template: str, variables: Mapping[str, Any], occurrence: str, due_at: int, **about: Any
) -> Effect:
    """The effect by which any policy has a message sent to the person of the event that it reacts to.

    ``occurrence``: nobody gets two messages of a channel for one, whoever they are by then; empty: this effect is its
    only one. ``about``: what is not the template's, and `BELONGS_TO`.
    """
    given = {name: value for name, value in about.items() if value not in (None, "")}
    data = {"template": template, "variables": dict(variables), "occurrence": occurrence, **given}
    return Effect(kind=channel, key=key, due_at=due_at, data=data, queue=channel)
