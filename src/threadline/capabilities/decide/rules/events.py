"""The events of rules; Threadline itself puts them into a person's thread."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from threadline.kernel.event_type import EventType, Maybe, Properties

DECISION_MADE = "decision_made"
RULE_LOGGED = "rule_logged"
DECISIONS_ASKED = "threadline.decisions_asked"


class _Decision(Properties):
    decision_id: Annotated[str, Meta(description="The decision's id, which is the event's.")]
    event_id: Annotated[str, Meta(description="The event that it is about.")]
    rule: Annotated[str, Meta(description="The rule.")]
    version: Annotated[int, Meta(description="The rule's version.")]
    rule_set: Annotated[str, Meta(description="The set through which it ran.")]
    mode: Annotated[str, Meta(description="live, replay or shadow.")]
    status: Annotated[str, Meta(description="Approved, Rejected, Review, Matched, NoMatch or Error.")]
    output: Maybe[Annotated[dict[str, Any], Meta(description="What was decided.")]] = UNSET
    inputs: Maybe[Annotated[dict[str, Any], Meta(description="What was read.")]] = UNSET
    trace: Maybe[Annotated[Any, Meta(description="Every condition in order, with what it found.")]] = UNSET
    wished: Maybe[Annotated[list[Any], Meta(description="The actions, with their placeholders filled in.")]] = UNSET
    evaluated_at: Maybe[Annotated[str, Meta(description="When it was decided.")]] = UNSET
    engine: Maybe[Annotated[int, Meta(description="The version of this form.")]] = UNSET
    hash: Maybe[Annotated[str, Meta(description="The hash of the decision.")]] = UNSET
    missing: Maybe[Annotated[Any, Meta(description="Fields that had no value.")]] = UNSET


class _Logged(Properties):
    message: Annotated[str, Meta(description="The note.")]
    rule: Annotated[str, Meta(description="The rule.")]
    version: Annotated[int, Meta(description="The rule's version.")]
    level: Maybe[Annotated[str, Meta(description="debug, info, warning or error.")]] = UNSET
    data: Maybe[Annotated[Any, Meta(description="What belongs to it.")]] = UNSET


DECISION = EventType(
    DECISION_MADE,
    "A rule was asked because of an event.",
    _Decision,
    speaker="threadline",
    sentence="Rule {rule} decided: {status}",
    shown=(
        "field",
        "journey",
        "mode",
        "note",
        "operator",
        "rule",
        "rule_set",
        "segment",
        "status",
        "tag",
        "template",
        "topic",
    ),
    lasts="a rule that decides once, or so often, would decide again; it is the proof of a decision",
)
EVENT_TYPES = (
    DECISION,
    EventType(
        RULE_LOGGED,
        "A rule had something to note.",
        _Logged,
        sentence="Rule {rule} noted: {message}",
        shown=("by", "rule", "to"),
    ),
    EventType(
        DECISIONS_ASKED, "An operator asked what the rules say of the person as they were then.", speaker="threadline"
    ),
)
