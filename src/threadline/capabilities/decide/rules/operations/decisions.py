"""Decisions as auditors read them: found by event, person or rule, each with its rule, its causes, its effects."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.acting import STATUSES
from threadline.capabilities.decide.rules.consequences import Consequence, consequences
from threadline.capabilities.decide.rules.effective import Effectiveness
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.decide.rules.in_force import in_force, rule_at, rules_at
from threadline.capabilities.decide.rules.operations import DECISIONS_GROUP, RULES_GROUP
from threadline.capabilities.decide.rules.operations.evaluation import decisions_of
from threadline.capabilities.decide.rules.operations.rules import KnownRule, Version
from threadline.capabilities.decide.rules.operations.verification import reckoned
from threadline.capabilities.decide.rules.policy import POLICY, decide_rule
from threadline.capabilities.decide.rules.projection import SHARDS, TABLE, decision_of, partition
from threadline.capabilities.decide.rules.views import DecisionView, Effective, Reasons, recorded_view, tried_view
from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.foundation.events.forms import (
    EventId,
    EventView,
    Instant,
    PersonRef,
    checked_id,
    event_view,
    instant,
    not_a_cursor,
    read_cursor,
    time_param,
    write_cursor,
)
from threadline.capabilities.foundation.events.parameters import Next, TimePage
from threadline.kernel.disclosure import SENTENCE
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import summary_fields
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.store import query_pages
from threadline.kernel.time import newest_first_key

_PAGE_ROWS = 100
"""Read at a time of each shard of one rule; of several rules fewer."""
_CURSOR = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{32}")


class DecisionRow(NamedTuple):
    """A row of a decision."""

    cursor: str
    event: str
    """The id of the decision's event."""
    text: str


def decision_rows(
    context: Context, table: str, rules: Sequence[str], start: int | None, stop: int | None, cursor: str = ""
) -> Iterator[DecisionRow]:
    """The rows of decisions recorded in a range of time, behind a cursor. Raises `InvalidValue` for another one."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise not_a_cursor(cursor)
    store, size = context.engine.store, max(_PAGE_ROWS // max(len(rules), 1), 10)
    # Later decisions have smaller sort keys.
    first, last = (
        cursor or ("" if stop is None else newest_first_key(stop - 1)),
        None if start is None else newest_first_key(start - 1),
    )
    partitions = (partition(context.workspace, rule, shard) for rule in rules for shard in SHARDS)
    shards = (query_pages(store, table, key, first, last, size) for key in partitions)
    for item in heapq.merge(*shards, key=lambda item: item.key.sort):
        yield DecisionRow(item.key.sort, item.key.sort.partition(".")[2], item.value.decode())


LOOKED_AT_MAX = 10_000
"""Index rows or events looked at for one page, where a filter leaves few of them."""
RULES_LISTED_MAX = 200
"""Rules whose decisions are listed together."""
CAUSES_MAX = 64


# --- finding ----------------------------------------------------------------------------------


class DecisionsParams(TimePage, kw_only=True):
    """Which decisions: those about an event, of a person, or by a rule, or all, and of these a part."""

    event: Annotated[EventId | None, Meta(description="About this event.")] = None
    person: PersonRef | None = None
    rule: KnownRule | None = None
    version: Version | None = None
    status: Annotated[Literal["", *STATUSES], Meta(description="Only decisions of this status.")] = ""  # type: ignore[valid-type]


class DecisionsPage(msgspec.Struct, kw_only=True):
    """Decisions, the newest first. A page may be short of its limit before the end."""

    decisions: list[DecisionView]
    next: Next = ""


class _Wanted:
    """The part that is asked for."""

    def __init__(self, params: DecisionsParams) -> None:
        self.start, self.stop = time_param(params.start), time_param(params.stop)
        self._rule, self._version, self._status = params.rule, params.version, params.status

    def has(self, recorded: Recorded) -> bool:
        decision = decision_of(recorded)
        if decision is None or (self._rule and decision[0] != self._rule):
            return False
        if self.start is not None and recorded.recorded_at < self.start:
            return False
        if self.stop is not None and recorded.recorded_at >= self.stop:
            return False
        return self.fits(*decision[1:])

    def fits(self, version: int, status: str) -> bool:
        return self._version in (None, version) and self._status in ("", status)


@operation("GET /v1/decisions", DECISIONS_GROUP, example=DecisionsParams(rule="risk-score", status="Rejected"))
def list_(context: Context, params: DecisionsParams) -> DecisionsPage:
    """List decisions, about an event, of a person, by a rule or all, the newest first."""
    wanted = _Wanted(params)
    if params.event is not None:
        recorded = context.engine.log.event(context.workspace, checked_id(params.event))
        person = context.engine.reader.person_of(recorded)
        decisions = [decision for decision in reversed(decisions_of(context, person, recorded)) if wanted.has(decision)]
        return DecisionsPage(decisions=[recorded_view(decision, person.id) for decision in decisions])
    of = _of_rules if params.person is None else _of_person
    return _page(of(context, params, wanted), params.limit)


_Found = tuple[str, DecisionView | None]
"""The cursor behind a decision, and its view; None for one that is not wanted."""


def _rules(context: Context) -> list[str]:
    """Every rule that may have decided."""
    written = [id for id, _ in repository.heads(context, "", RULES_LISTED_MAX + 1)]
    declared = context.engine.definition_history.names(POLICY)
    rules = sorted({*repository.active_rules_of(context).rules, *written, *declared})
    if len(rules) > RULES_LISTED_MAX:
        raise InvalidValue(
            f"the decisions of all rules are listed for up to {RULES_LISTED_MAX} rules, and there are more here",
            hint="Name an `event`, a `person` or a `rule`.",
        )
    return rules


def _of_person(context: Context, params: DecisionsParams, wanted: _Wanted) -> Iterator[_Found]:
    person = context.engine.reader.person(context.workspace, params.person or "")
    after, types = read_cursor(params.cursor), frozenset({DECISION_MADE})
    for recorded in context.engine.reader.all_events(person, types=types, after=after, reverse=True):
        yield write_cursor(recorded), recorded_view(recorded, person.id) if wanted.has(recorded) else None


def _of_rules(context: Context, params: DecisionsParams, wanted: _Wanted) -> Iterator[_Found]:
    rules = _rules(context) if params.rule is None else [params.rule]
    for row in decision_rows(context, TABLE, rules, wanted.start, wanted.stop, params.cursor):
        version, _, status = row.text.partition(" ")
        if wanted.fits(int(version), status):
            recorded = context.engine.log.event(context.workspace, row.event)
            yield row.cursor, recorded_view(recorded, _person(context, recorded))
        else:
            yield row.cursor, None


def _page(decisions: Iterator[_Found], limit: int) -> DecisionsPage:
    shown: list[DecisionView] = []
    for looked_at, (cursor, decision) in enumerate(decisions, 1):
        shown += [] if decision is None else [decision]
        if len(shown) == limit or looked_at == LOOKED_AT_MAX:
            return DecisionsPage(decisions=shown, next=cursor)
    return DecisionsPage(decisions=shown)


def _person(context: Context, recorded: Recorded) -> str:
    person = context.engine.reader.person_of(recorded)
    return "" if person is None else str(person.id)


# --- one decision -----------------------------------------------------------------------------


class AuditParams(Params, kw_only=True):
    """Which decision."""

    decision: Annotated[str, Meta(description="The id of a decision.", min_length=1, max_length=64)]


class AuditResult(msgspec.Struct, kw_only=True):
    """A decision with all that it rests on and all that it led to."""

    decision: DecisionView
    event: Annotated[EventView, Meta(description="The event it is about.")]
    causes: Annotated[list[EventView], Meta(description="What brought that event about, the nearest first.")]
    rule: Annotated[dict[str, Any], Meta(description="The content of the version that decided.")]
    in_force: Annotated[bool, Meta(description="Whether the log has this version in force at that time.")]
    problems: Annotated[
        list[str], Meta(description="What is wrong when it is recomputed; empty if nothing is."), SENTENCE
    ]
    consequences: Annotated[list[Consequence], Meta(description="Action by action, in order.")]


@operation(
    "GET /v1/audit/{decision}", DECISIONS_GROUP, example=AuditParams(decision="0123456789abcdef0123456789abcdef")
)
def audit(context: Context, params: AuditParams) -> AuditResult:
    """Show a decision with its event, its rule, all values that it read, and what followed."""
    recorded = context.engine.log.event(context.workspace, checked_id(params.decision))
    if recorded.event.type != DECISION_MADE or decision_of(recorded) is None:
        raise NotFound(f"{params.decision} is not the id of a decision")
    properties = recorded.event.properties
    cause: Recorded = context.engine.log.event(context.workspace, properties["event_id"])
    rule, problems = reckoned(properties, rules_at(context, properties["rule"], properties["version"]))
    force = in_force(context, rule.id, recorded.recorded_at)
    person = _person(context, recorded)
    return AuditResult(
        decision=recorded_view(recorded, person),
        event=event_view(cause, _person(context, cause)),
        causes=list(_causes(context, cause)),
        rule=rule.content,
        in_force=force is not None and force.version == rule.version,
        problems=problems,
        consequences=consequences(context, recorded),
    )


def _causes(context: Context, recorded: Recorded) -> Iterator[EventView]:
    for _ in range(CAUSES_MAX):
        if not re.fullmatch(r"[0-9a-f]{32}", recorded.cause):
            return  # it came from outside, or from a request
        recorded = context.engine.log.event(context.workspace, recorded.cause)
        yield event_view(recorded)


# --- why, and why not -------------------------------------------------------------------------


class WhyParams(Params, kw_only=True):
    """Which rule, and whom."""

    id: PersonRef
    rule: KnownRule
    version: Annotated[Version | None, Meta(description="Without it the active one.")] = None


@summary_fields("rule", "matched", "effective", "reasons")
class WhyResult(msgspec.Struct, kw_only=True):
    """Why a rule would match, or would not."""

    person: str
    rule: str
    version: int
    matched: bool
    effective: Effective
    reasons: Reasons
    event: Annotated[
        EventView | None,
        Meta(description="The person's last event of a type that the rule runs on; null: it ran without one."),
    ]
    as_of: Instant
    decision: Annotated[DecisionView, Meta(description="What the rule says of that event and of the person now.")]


@operation("GET /v1/people/{id}/rules/{rule}", RULES_GROUP, example=WhyParams(id="user_id:42", rule="risk-score"))
def why(context: Context, params: WhyParams) -> WhyResult:
    """Explain, condition by condition, why a rule matches a person as they are now, or why not."""
    engine = context.engine
    active = repository.active_rules_of(context)
    person = engine.reader.person(context.workspace, params.id)
    if params.version is not None:
        rule = rule_at(context, params.rule, params.version)
    elif params.rule in active.rules:
        rule = active.rules[params.rule]
    else:
        raise NotFound(f"no version of a rule {params.rule!r} is active; name one with `version`")
    sets = active.sets_of(rule.id)
    types = frozenset(type for rule_set in sets for type in rule_set.events)
    # An event ahead of the clock is not yet part of the person.
    last = engine.reader.events(person, types=types, stop=context.now + 1, limit=1, reverse=True) if types else []
    recorded = last[0] if last else None
    known = engine.reader.as_of(person, context.now)
    subject = Subject(known.view, recorded, known.at)
    decided = decide_rule(rule, sets[0] if sets else None, subject)
    assert decided is not None, "a rule that is asked for every answer gives one"
    reasons = Effectiveness(context, active, known, recorded, context.now, stored=True).reasons(decided)
    view = tried_view(decided, person.id, "" if recorded is None else recorded.id, context.now)
    return WhyResult(
        person=person.id,
        rule=rule.id,
        version=rule.version,
        matched=decided.status not in ("NoMatch", "Error"),
        effective=not reasons,
        reasons=reasons,
        event=None if recorded is None else event_view(recorded),
        as_of=instant(context.now),
        decision=view,
    )
