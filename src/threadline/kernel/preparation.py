"""A preparation: what an effect needs right before it is sent, and whether it may be sent at all.

Consent, suppression, frequency caps, quiet hours, and the rendering of a message: asked at the last moment, with the
person as of now, so that somebody who has unsubscribed since gets nothing.

    >>> from threadline.kernel.preparation import Postponed, Prepared, Preparation
    >>> from threadline.kernel.time import HOUR
    >>> def prepare(engine, effects, now):
    ...     at_night = now % (24 * HOUR) < 7 * HOUR
    ...     return [Postponed(until=now + HOUR) if at_night else Prepared(data={"text": "hello"}) for due in effects]
    >>> Preparation("pager", prepare).prepare(None, ["an effect"], 9 * HOUR)[0].data
    {'text': 'hello'}

The answer is `Prepared` (send this), `Postponed` (later), or an `Outcome` that settles the effect without sending it. A
`Guard` stops the effects of a policy that was paused or cancelled for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.sender import EFFECT_DONE, EFFECT_WITHDRAWN, Outcome


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The effect is to be sent, with this."""

    data: dict[str, Any]
    """What the sender gets in place of the data that the policy wished for. It is not stored, so it may hold anything,
    such as the bytes of a rendered message."""
    claims: tuple[str, ...] = ()
    """Keys, of the workspace, that belong to this effect alone from now on: claimed in the commit that claims the
    effect. The keys of a first attempt are those of its retries."""
    taken: Outcome = Outcome(type=EFFECT_WITHDRAWN, properties={"why": "another effect has claimed the same key"})
    """The outcome if another effect has one of these keys; nothing is sent."""
    done: Outcome = Outcome(type=EFFECT_DONE)
    """The outcome that is recorded if it proves to have happened without its sender saying so: an unknown effect that
    is resolved or assumed to be done. Its properties are in the event `EFFECT_UNKNOWN` as well."""


class Postponed(msgspec.Struct, frozen=True, kw_only=True):
    """The effect is due again at a later instant. That leaves no event and counts as no attempt."""

    until: int
    """Microseconds; an instant that is not after now means: soon."""
    why: str = ""
    """What holds it up, in a word of ours such as ``quiet_hours``."""


Answer = Prepared | Postponed | Outcome
"""What is to be sent; a later instant; or what settles the effect without sending it."""


class DueEffect(NamedTuple):
    """An effect that is due, and its person as of now."""

    view: PersonView
    pending: PendingEffect


@dataclass(frozen=True, slots=True)
class Guard:
    """Whether the effects of a policy may be sent now, by what is known beside the person: what they were wished for
    may be paused or cancelled for everybody. Declared like a sender and found by discovery; one per policy.

    `allow` is asked right before `Policy.withdrawn`, for all effects of the policy that are sent together: empty, one
    goes on; a text says why it is withdrawn; it may be due again at a later instant. It writes nothing; if it raises,
    each is asked for by itself, and the one for which it raises again is retried.
    """

    policy: str
    allow: Callable[[Ports, Sequence[DueEffect]], Sequence[str | Postponed]]

    @property
    def name(self) -> str:
        """The policy: there is one for each."""
        return self.policy


@dataclass(frozen=True, slots=True)
class Preparation:
    """What effects of a kind need before they are sent. Declared like a sender and found by discovery; one per kind.

    `prepare` is called right before the sender, on every attempt, with all effects of the kind that are sent together,
    no two of them of one person; whatever has changed since the policy wished for an effect counts. It may read
    anything through the ports, best for all of them at once, and writes nothing. It answers for each, in their order:
    with what is to be sent; with a later instant; or with the `Outcome` that settles the effect without sending it,
    such as one of the type ``mail_skipped`` with the reason. If it raises, each is prepared by itself; the one for
    which it raises again is not sent, and is retried.
    """

    kind: str
    prepare: Callable[[Ports, Sequence[DueEffect]], Sequence[Answer]]

    @property
    def name(self) -> str:
        """The kind: there is one for each."""
        return self.kind
