"""Rules asked on demand: about an event that is there, about one that is given, or about a person now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.acting import NO_MATCH
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.definition import Rule, RuleSet, rule_of_json
from threadline.capabilities.decide.rules.document_import import content_of
from threadline.capabilities.decide.rules.effective import REPLAYED, UNWRITTEN, Effectiveness, Reason
from threadline.capabilities.decide.rules.events import DECISION_MADE, DECISIONS_ASKED
from threadline.capabilities.decide.rules.in_force import rule_at
from threadline.capabilities.decide.rules.models import ModelBody
from threadline.capabilities.decide.rules.operations import DECISIONS_GROUP
from threadline.capabilities.decide.rules.operations.rules import KnownRule, Version
from threadline.capabilities.decide.rules.operations.sets import SetName
from threadline.capabilities.decide.rules.policy import (
    LIVE,
    REPLAY,
    SOURCE,
    Decided,
    decide,
    decide_rule,
    decision_id,
    decision_key,
)
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.decide.rules.views import AskedDecision, asked_view, recorded_view, tried_view
from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.foundation.events.forms import EventId, NativeEvent, PersonRef, checked_id, native_event
from threadline.capabilities.foundation.events.requests import derived_key, wish
from threadline.kernel.errors import Conflict, EventRejected, InvalidValue, NotFound
from threadline.kernel.event import Event, Recorded
from threadline.kernel.names import names_a
from threadline.kernel.operation import Choice, Context, Params, operation
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Person


class EvaluateParams(Params, kw_only=True):
    """What is asked, and about which person. Without ``record`` nothing is left behind."""

    event_id: Annotated[EventId | None, Meta(description="An event that is recorded, with what was known then.")] = None
    event: Annotated[NativeEvent | None, Meta(description="An event as it would be recorded.")] = None
    person: Annotated[PersonRef | None, Meta(description="A person as they are now, without an event.")] = None
    rule: Annotated[KnownRule | None, Meta(description="Only this rule, whichever sets name it.")] = None
    version: Annotated[Version | None, Meta(description="Of that rule; without it the active one.")] = None
    content: Annotated[
        dict[str, Any] | None,
        Meta(
            description="A rule that is not written yet, as in the definitions. A `model` in it needs the scope admin."
        ),
    ] = None
    rule_set: Annotated[
        SetName | None, names_a("rule set"), Meta(description="Only this set, whatever its event types.")
    ] = None
    record: Annotated[
        bool,
        Meta(
            description="Record an event that is given, with all that follows; of what is there already, record "
            "the decisions alone, in the mode `replay`: their actions are not carried out."
        ),
    ] = False
    request: Annotated[
        str,
        Meta(
            description="With `person` and `record`: names this call, so that it is carried out once.", max_length=100
        ),
    ] = ""


class EvaluateResult(msgspec.Struct, kw_only=True):
    """What the rules say."""

    person: Annotated[str, Meta(description="Whose it is; empty for an event of somebody who is not known yet.")]
    event: Annotated[str, Meta(description="The event it is about; empty if there is none, or it is not recorded.")]
    recorded: bool
    decisions: Annotated[list[AskedDecision], Meta(description="Every rule that ran, in order.")]


def _guarded(params: EvaluateParams) -> str:
    # One that is written was written with that scope.
    brings = params.content is not None and ModelBody.kind in params.content
    return "a decision model in `content` may take any time and memory" if brings else ""


@operation(
    "POST /v1/decisions/evaluate",
    DECISIONS_GROUP,
    audited=False,
    scope="write",
    guarded=_guarded,
    choices=(
        Choice(("event_id", "event", "person"), required=True),
        Choice(("rule", "content", "rule_set")),
        # Decisions of a rule that is not written cannot be recorded.
        Choice(("record", "content")),
    ),
    needs=(("version", "rule"),),
    example=EvaluateParams(
        event=NativeEvent(type="payment_received", identifiers={"user_id": "42"}, key="try-1", properties={"score": 91})
    ),
)
def evaluate(context: Context, params: EvaluateParams) -> EvaluateResult:
    """Run the rules on an event or a person, and explain each answer. Records nothing by default."""
    if params.event is not None and params.record:
        return _record(context, params, params.event)
    active = repository.active_rules_of(context)
    if params.event is not None:
        return context.engine.recorder.rehearse(
            _event(context, params.event),
            lambda recorded, known: _result(
                context, "", "", _answers(context, params, active, recorded, known, recorded.known_at, stored=False)
            ),
        )
    if params.event_id is not None:
        return _of_log(
            context, params, active, context.engine.log.event(context.workspace, checked_id(params.event_id))
        )
    assert params.person is not None
    person = context.engine.reader.person(context.workspace, params.person)
    if params.record:
        return _of_log(context, params, active, _asked(context, params, person))
    known = context.engine.reader.as_of(person, context.now)
    answers = _answers(context, params, active, None, known, context.now, stored=False)
    return _result(context, person.id, "", answers)


def _event(context: Context, native: NativeEvent) -> Event:
    return native_event(
        native,
        workspace=context.workspace,
        source=context.source,
        source_type=context.source_type,
        received_at=context.engine.recorder.clock(),
    )


def _record(context: Context, params: EvaluateParams, native: NativeEvent) -> EvaluateResult:
    if params.rule is not None or params.rule_set is not None:
        message = "an event is recorded with all rules in force: leave `rule` and `rule_set` out"
        raise InvalidValue(message, param="record")
    (receipt,) = context.engine.recorder.record([_event(context, native)], expected=native.expected)
    if receipt.status == "rejected":
        raise EventRejected(receipt.code, receipt.message)
    if receipt.status == "conflict":
        raise Conflict("this key belongs to another event; give this one its own key")
    recorded = context.engine.log.event(context.workspace, receipt.id)
    person = context.engine.reader.person_of(recorded)
    views = [recorded_view(decision, person.id) for decision in decisions_of(context, person, recorded)]
    decisions = [asked_view(decision, [] if decision.mode == LIVE else [REPLAYED]) for decision in views]
    return EvaluateResult(person=person.id, event=receipt.id, recorded=True, decisions=decisions)


def _of_log(context: Context, params: EvaluateParams, active: ActiveRules, recorded: Recorded) -> EvaluateResult:
    person = context.engine.reader.person_of(recorded)
    # Right after the event, with what was known then: the rest of its own commit is among it. Imported history was
    # known when it happened, and that is when its rules are asked, as in a what-if.
    at = max(recorded.known_at, recorded.event.occurred_at) + 1
    then = context.engine.reader.person(
        context.workspace, str(person.identifiers[recorded.thread]), known_at=recorded.known_at
    )
    known = context.engine.reader.as_of(then, at, known_at=recorded.known_at)
    answers = _answers(context, params, active, recorded, known, recorded.known_at, stored=True)
    result = _result(context, person.id, recorded.id, answers)
    replayed = [decided for decided, _ in answers if decided.status != NO_MATCH] if params.record else []
    if replayed:
        events = [_replayed(context, decided, person, recorded) for decided in replayed]
        for receipt in context.engine.recorder.record(events, cause=recorded.id, known=True):
            if receipt.status == "rejected":
                raise EventRejected(receipt.code, receipt.message)
        ids = [decision_id(recorded, decided.rule, REPLAY) for decided in replayed]
        views = [recorded_view(context.engine.log.event(context.workspace, id), person.id) for id in ids]
        shown = {decision.rule: asked_view(decision, [REPLAYED]) for decision in views}
        result.decisions = [shown.get(decision.rule, decision) for decision in result.decisions]
    result.recorded = params.record
    return result


def _replayed(context: Context, decided: Decided, person: Person, recorded: Recorded) -> Event:
    now = context.engine.recorder.clock()
    at = min(recorded.event.occurred_at, now)
    return Event(
        type=DECISION_MADE,
        identifiers=(person.identifiers[recorded.thread],),
        occurred_at=at,
        source=SOURCE,
        key=decision_key(recorded.id, decided.rule, REPLAY),
        source_type="internal",
        workspace=context.workspace,
        properties=decided.properties(recorded, REPLAY, now),
        received_at=now,
    )


def _asked(context: Context, params: EvaluateParams, person: Person) -> Recorded:
    """The event that records the request about a person, which the decisions are about."""
    if not params.request:
        raise InvalidValue("give a `request`: it names this call, so that it is carried out only once")
    key = derived_key(DECISIONS_ASKED, params.request)
    event = wish(context, person.identifiers[person.id], DECISIONS_ASKED, {}, key, vouched=True)
    (receipt,) = context.engine.recorder.record([event], known=True)
    if receipt.status == "rejected":
        raise EventRejected(receipt.code, receipt.message)
    recorded: Recorded = context.engine.log.event(context.workspace, receipt.id)
    if context.engine.reader.person_of(recorded).id != person.id:
        raise Conflict(f"the request {params.request!r} was about another person; give this one its own name")
    return recorded


_Answers = list[tuple[Decided, list[Reason]]]


def _answers(
    context: Context,
    params: EvaluateParams,
    active: ActiveRules,
    recorded: Recorded | None,
    known: PersonView,
    at: int,
    *,
    stored: bool,
) -> _Answers:
    """What the rules say that are asked about, each with the reasons why it does not act."""
    effectiveness = Effectiveness(context, active, known, recorded, at, stored=stored)
    decided: Sequence[Decided | None]
    named = any(choice is not None for choice in (params.rule, params.content, params.rule_set))
    if recorded is None or recorded.event.type == DECISIONS_ASKED or named:
        subject = Subject(known.view, recorded, known.at)
        decided = [decide_rule(*pair, subject) for pair in _all(context, params, active, at)]
    else:
        decided = decide(active.recording_all(), recorded, known, history=True)
    return [
        (answer, effectiveness.reasons(answer) if params.content is None else [UNWRITTEN])
        for answer in decided
        if answer is not None
    ]


def _all(context: Context, params: EvaluateParams, active: ActiveRules, at: int) -> list[tuple[Rule, RuleSet | None]]:
    """Rules, each with the set that it is asked for: one that is named, or those that count at an instant."""
    if params.content is not None:
        return [(_unwritten(context, params.content), None)]
    if params.rule is not None:
        if params.version is not None:
            return [(rule_at(context, params.rule, params.version), None)]
        if params.rule not in active.rules:
            raise NotFound(f"no version of a rule {params.rule!r} is active; name one with `version`")
        return [(active.rules[params.rule], next(iter(active.sets_of(params.rule)), None))]
    if params.rule_set is not None and params.rule_set not in active.sets:
        raise NotFound(f"there is no rule set {params.rule_set!r}")
    chosen = [active.sets[params.rule_set]] if params.rule_set is not None else list(active.sets.values())
    by_id: dict[str, tuple[Rule, RuleSet | None]] = {}
    for rule_set in chosen:
        for rule in active.ordered(rule_set.name).rules:
            if rule.is_effective(at):
                by_id.setdefault(rule.id, (rule, rule_set))
    return list(by_id.values())


def _unwritten(context: Context, content: dict[str, Any]) -> Rule:
    rule = replace(rule_of_json("unwritten", content_of("unwritten", content, "content"), "content"), place="content")
    context.engine.catalogue.refuse_unread(rule.reads)
    return rule


def _result(context: Context, person: str, event: str, answers: _Answers) -> EvaluateResult:
    shown = [asked_view(tried_view(decided, person, event, context.now), reasons) for decided, reasons in answers]
    return EvaluateResult(person=person, event=event, recorded=False, decisions=shown)


def decisions_of(context: Context, person: Person, recorded: Recorded) -> list[Recorded]:
    """The decisions that were recorded about an event, in the order in which they were made."""
    start, stop = min(recorded.event.occurred_at, recorded.recorded_at), recorded.event.occurred_at + 1
    decisions = context.engine.reader.all_events(person, start=start, stop=stop, types=frozenset({DECISION_MADE}))
    own = [decision for decision in decisions if decision.cause == recorded.id and decision_of(decision) is not None]
    return sorted(own, key=lambda decision: (decision.recorded_at, decision.sequence))
