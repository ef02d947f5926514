"""One mail that somebody did not get, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.unsent.reasons import REASON, known_reason, sentence, with_conditions
from threadline.capabilities.foundation.conditions import Step
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.disclosure import SENTENCE, not_personal
from threadline.kernel.key_fields import key_fields


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a mail is, and because of what it would come."""

    template: str = ""
    journey: str = ""
    step: str = ""
    broadcast: str = ""
    arm: str = ""
    rule: str = ""


@key_fields("template", "reason", "at", "sentence")
@not_personal
class Unsent(msgspec.Struct, kw_only=True):
    """A mail that the person could have got, and why they did not; or that it was sent after all."""

    template: str
    reason: Annotated[str, Meta(description="Stable, for programs; `sent` where it was sent after all."), REASON]
    sentence: Annotated[str, Meta(description="The same in words, with when."), SENTENCE]
    at: Annotated[Instant | None, Meta(description="When that was so: skipped, left, sent.")] = None
    until: Annotated[Instant | None, Meta(description="When it goes, or is looked at again.")] = None
    journey: Annotated[str, Meta(description="The journey that it belongs to.")] = ""
    step: Annotated[str, Meta(description="The step of the journey that sends it.")] = ""
    broadcast: Annotated[str, Meta(description="The broadcast that it belongs to.")] = ""
    arm: Annotated[str, Meta(description="The variant.")] = ""
    rule: Annotated[str, Meta(description="The rule that sends it.")] = ""
    conditions: Annotated[list[Step], Meta(description="The conditions that were not met.")] = []
    message: Annotated[str, Meta(description="The id of the mail; empty where none was asked for.")] = ""
    event: Annotated[str, Meta(description="The event that says so.")] = ""


def unsent(
    about: About,
    reason: str,
    *,
    at: int = 0,
    until: int = 0,
    is_waiting: bool = False,
    is_refused: bool = False,
    detail: str = "",
    begins: str = "",
    conditions: Sequence[Step] = (),
    message: str = "",
    event: str = "",
) -> Unsent:
    """The answer about one mail; see `reasons.sentence`."""
    known = known_reason(reason)
    written = detail or (reason if known != reason else "")
    when = {"at": at, "until": until}
    text = sentence(known, **when, is_waiting=is_waiting, is_refused=is_refused, detail=written, begins=begins)
    return Unsent(
        **msgspec.structs.asdict(about),
        reason=known,
        sentence=with_conditions(text, conditions),
        at=instant(at) if at else None,
        until=instant(until) if until else None,
        conditions=[*conditions],
        message=message,
        event=event,
    )


def failing(steps: Sequence[Step]) -> list[Step]:
    """Of the steps of an explanation those that were not met, or those asked where none is to blame alone."""
    return [step for step in steps if step.matched is False] or [step for step in steps if step.matched is not None]
