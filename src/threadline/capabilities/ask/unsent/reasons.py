"""The reasons for which a mail does not reach somebody, each in a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from threadline.capabilities.foundation.conditions import Step
from threadline.capabilities.foundation.conditions.wording import wording
from threadline.kernel.disclosure import words
from threadline.kernel.time import format_time

SENT = "sent"
WAITING = "waiting"
LEFT = "journey_left"
SUPPRESSED = "suppressed"
RULE = "rule"
OTHER = "other"

REASONS: Mapping[str, str] = {
    SENT: "it was sent",
    # --- skipped right before sending -----------------------------------------------------------
    "no_address": "the person has no mail address",
    "invalid_address": "the person's address is not a mail address",
    "unsubscribed": "the person unsubscribed",
    "unconfirmed": "the person has not confirmed the subscription",
    "opted_out": "the person did not subscribe, and the topic needs it",
    SUPPRESSED: "the address is suppressed",
    "suppressed:bounce": "the address is suppressed: a mail to it bounced",
    "suppressed:complaint": "the address is suppressed: its owner complained about a mail",
    "suppressed:manual": "the address is suppressed: somebody here did it",
    "suppressed:import": "the address is suppressed: an import says so",
    "frequency_cap": "a frequency cap allows no more mails",
    "duplicate": "this address got a mail for the same occasion",
    "template_failed": "the template could not be filled in",
    "given_up": "sending failed, and was given up",
    "unknown": "the provider did not say whether it was sent",
    "withdrawn": "it was withdrawn before it was sent",
    OTHER: "it was skipped",
    # --- waits in the outbox --------------------------------------------------------------------
    WAITING: "it is in the outbox",
    "retrying": "sending failed, and is tried again",
    "queue_stopped": "the mail queue is stopped",
    "quiet_hours": "it is night for the person, by the quiet hours",
    "warm_up": "the sending domain is being warmed up, and has sent all it may today",
    "journey_paused": "the journey is paused",
    "broadcast_paused": "the broadcast is paused",
    # --- journeys -------------------------------------------------------------------------------
    "holdout": "the person is in the holdout, which gets nothing to compare with",
    "journey_waits": "the person is at an earlier step",
    "other_path": "the person took another path",
    "event_awaited": "the event that sends it did not come",
    LEFT: "the person left the journey before",
    "journey_left:merged": "the person left the journey: they were merged with somebody who is in it",
    "journey_left:timeout": "the person left the journey: its time was over",
    "journey_left:requested": "the person was taken out of the journey",
    "journey_left:removed": "the person left the journey: it was removed",
    "journey_left:exit_on": "the person left the journey: an event that ends it came",
    "journey_left:bounced": "the person left the journey: a mail bounced",
    "journey_left:complained": "the person left the journey: they complained about a mail",
    "journey_left:step_removed": "the person left the journey: their step was removed from it",
    "by_request": "the journey has no trigger, and nobody put the person into it",
    "not_triggered": "the event that starts the journey did not come",
    "trigger_unmet": "the event that starts the journey came, and not as the journey wants it",
    "trigger_not_news": "the event that starts the journey was history, and the journey is for news only",
    "trigger_late": "the event that starts the journey came too late",
    "trigger_before": "the event that starts the journey came before the journey was in force, or while it was paused",
    "entered_before": "the person was in the journey before, and may not enter again yet",
    # --- broadcasts -----------------------------------------------------------------------------
    "broadcast_draft": "the broadcast was not started",
    "broadcast_scheduled": "the broadcast has not begun",
    "broadcast_running": "the broadcast is being sent, and has not come to the person yet",
    "broadcast_cancelled": "the broadcast was cancelled",
    "broadcast_failed": "the broadcast failed",
    "winner_awaited": "the broadcast waits for its winner",
    "not_in_audience": "the person was not in the audience",
    # --- rules ----------------------------------------------------------------------------------
    "rule:no_match": "the rule does not match",
    "rule:error": "the rule failed",
    "rule:unwritten": "the rule is not written",
    "rule:draft": "this version of the rule is a draft",
    "rule:tested": "this version of the rule is tested, and not active",
    "rule:shadow": "this version of the rule is a shadow",
    "rule:retired": "this version of the rule is retired",
    "rule:no_rule_set": "no rule set names the rule",
    "rule:no_event": "no event of a type that the rule runs on came",
    "rule:event_type": "the rule does not run on events of this type",
    "rule:historical": "the event was history, and the rule is for news only",
    "rule:not_effective": "the rule is outside of its dates",
    "rule:before_rule": "the event came before the rule was active",
    "rule:first_match": "another rule of its set matched first",
    "rule:undecided": "when the event came, the rule did not act: its set, or what it reads, was different",
    "rule:replay": "the decision was replayed, which carries nothing out",
    # --- nothing asks for it --------------------------------------------------------------------
    "not_requested": "no journey, broadcast, rule or call asked for it",
}
"""Reason -> the sentence that says it, without when."""

REASON = words(*REASONS)
"""Marks a field with one of them."""


def known_reason(reason: str) -> str:
    """A reason as answers have it: what others wrote, such as why an address is suppressed, is cut to its kind."""
    return next((known for known in (reason, reason.partition(":")[0]) if known in REASONS), OTHER)


_BEGINS = "the event that starts the journey"


def sentence(
    reason: str,
    *,
    at: int = 0,
    until: int = 0,
    is_waiting: bool = False,
    is_refused: bool = False,
    detail: str = "",
    begins: str = "",
) -> str:
    """A reason with when. ``is_refused``: it waits, and would not be sent then as things are now. ``detail`` is text of
    others, which is quoted; ``begins`` says what starts the journey."""
    if reason == SENT:
        lead = "Sent"
    elif is_waiting:
        lead = "Waits" if until else "Waits for now"
    else:
        lead = "Not sent"
    when = f" until {_time(until)}" if is_waiting and until else f" on {_time(at)}" if at and not is_waiting else ""
    when += ", and would then not be sent" if is_refused else ""
    quoted = f" ({json.dumps(detail, ensure_ascii=False)})" if detail else ""
    text = REASONS[reason].replace(_BEGINS, f"{_BEGINS} ({begins})") if begins else REASONS[reason]
    return f"{lead}{when}{quoted}." if reason == SENT else f"{lead}{when}: {text}{quoted}."


def with_conditions(text: str, steps: Sequence[Step]) -> str:
    """A sentence with the first condition that was not met."""
    if not steps:
        return text
    step = steps[0]
    path = tuple(step.field.split(".")) if isinstance(step.field, str) else tuple(step.field)
    missing = " (not known)" if step.note == "missing" else ""
    return f"{text} Not met: {wording(path, step.operator, step.expected)}{missing}."


def _time(at: int) -> str:
    return f"{format_time(at)[:16].replace('T', ' ')} UTC"
