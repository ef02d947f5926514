"""Decisions in the form in which callers read them, whether they were recorded or only tried."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.acting import STATUSES
from threadline.capabilities.decide.rules.consequences import WISHED
from threadline.capabilities.decide.rules.effective import Reason
from threadline.capabilities.decide.rules.policy import DRY, Decided
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.disclosure import FREE, SENTENCE, free
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields

TRACE = free("error", "field", "fields", "note", "operator", "reason")
"""Marks the steps of a trace; what each expected and found is as personal as its field."""
Effective = Annotated[bool, Meta(description="Whether the rule acts on the event: true if there are no `reasons`.")]
Reasons = Annotated[list[Reason], Meta(description="Every reason why it does not act.")]
Status = Annotated[str, Meta(description=f"One of {', '.join(STATUSES)}.")]


@key_fields("rule", "status", "evaluated_at", "output")
class DecisionView(msgspec.Struct, kw_only=True):
    """What a rule decided about an event, and why."""

    decision_id: Annotated[
        str, Meta(description="The id of the decision, and of its event; empty if it was only tried.")
    ]
    event_id: Annotated[str, Meta(description="The event it is about; empty without one.")]
    person: str
    rule: str
    version: int
    rule_set: Annotated[str, Meta(description="The set through which the rule ran.")]
    mode: Annotated[str, Meta(description="live, replay, or dry for what was only tried.")]
    status: Status
    output: Annotated[dict[str, Any], Meta(description="What the rule stored; under `error` what went wrong."), FREE]
    inputs: Annotated[dict[str, Any], Meta(description="Every field that was read, and what was there."), FREE]
    trace: Annotated[
        list[dict[str, Any]], Meta(description="Every condition: expected, actual, matched or skipped."), TRACE
    ]
    wished: Annotated[list[dict[str, Any]], Meta(description="The actions, filled in."), WISHED]
    evaluated_at: Instant
    engine: Annotated[int, Meta(description="The version of the form of decisions.")]
    hash: Annotated[str, Meta(description="SHA-256 over rule, inputs, status, output, trace and actions.")]
    missing: Annotated[
        dict[str, str],
        Meta(description="Why fields had no value, where that is known, such as two currencies."),
        SENTENCE,
    ] = {}


@key_fields("rule", "status", "effective", "output")
class AskedDecision(DecisionView, kw_only=True):
    """What a rule says when it is asked, and whether that leads to anything."""

    effective: Effective
    reasons: Reasons


def asked_view(shown: DecisionView, reasons: list[Reason]) -> AskedDecision:
    """The view of an answer with the reasons why it does not act."""
    return AskedDecision(**msgspec.structs.asdict(shown), effective=not reasons, reasons=reasons)


def recorded_view(recorded: Recorded, person: str) -> DecisionView:
    """The view of a decision's event."""
    return msgspec.convert({**recorded.event.properties, "person": person}, DecisionView, strict=False)


def tried_view(decided: Decided, person: str, event: str, at: int) -> DecisionView:
    """The view of a decision that was not recorded."""
    about = {"decision_id": "", "event_id": event, "person": person, "mode": DRY, "evaluated_at": instant(at)}
    return msgspec.convert({**about, **decided.plain}, DecisionView)
