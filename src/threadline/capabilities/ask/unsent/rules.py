"""Mails of rules that nobody asked for: the explanation of each rule that sends one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import convert

from threadline.capabilities.ask.unsent.answer import About, Unsent, failing, unsent
from threadline.capabilities.ask.unsent.asked import Subject, Wanted, of_operation
from threadline.capabilities.ask.unsent.reasons import RULE
from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.operations.decisions import WhyParams
from threadline.capabilities.foundation.conditions import Step
from threadline.kernel.time import parse_time

RULES_MAX = 50
"""Rules that send mail and are explained at once, by id."""


_WITHOUT_EVENT = ("no_event", "no_rule_set")


def of_rules(subject: Subject, wanted: Wanted) -> Iterator[Unsent]:
    """Why rules that send mail did not send one for the person's last event."""
    if wanted.journey or wanted.broadcast or subject.engine.catalogue.policy("rules") is None:
        return
    active = repository.active_rules_of(subject.context)
    for rule, template in islice(_senders(active, wanted), RULES_MAX):
        types = {type for rule_set in active.sets_of(rule) for type in rule_set.events}
        if types and not subject.has_any(types):
            yield unsent(About(template=template, rule=rule), f"{RULE}:no_event")
            continue
        why = of_operation(subject.context, "rules_why", WhyParams(id=subject.person.id, rule=rule))
        if why is None or not why.reasons:
            continue  # it sent one, which has an outcome or waits
        # Without an event no condition on one is met, which says less than that none came.
        code = next((reason.code for reason in why.reasons if reason.code in _WITHOUT_EVENT), why.reasons[0].code)
        at = parse_time(why.event.occurred_at) if why.event is not None else 0
        steps = (
            failing([convert(step, Step) for step in why.decision.trace if "operator" in step])
            if code == "no_match"
            else []
        )
        yield unsent(
            About(template=template, rule=rule),
            f"{RULE}:{code}",
            at=at,
            conditions=steps,
            event="" if why.event is None else why.event.id,
        )


def _senders(active: ActiveRules, wanted: Wanted) -> Iterator[tuple[str, str]]:
    """The rules that send mail, each with the template."""
    for id, rule in sorted(active.rules.items()):
        for action in rule.actions:
            template = action.params.get("template") if action.kind.name == "send_notification" else None
            if template is None or wanted.rule not in ("", id):
                continue
            if wanted.template in ("", template.plain):
                yield id, str(template.plain)
