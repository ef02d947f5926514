"""The policy ``rules``: the rules in force for an event are asked in order; each answer has its trace and a hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from threadline.capabilities.decide.rules.acting import ERROR, NO_MATCH, UNMATCHED, Acted, act, acted
from threadline.capabilities.decide.rules.actions import KINDS, NOTIFICATION, WEBHOOK, Cause
from threadline.capabilities.decide.rules.active_rules import ActiveRules, Ordered, make_active_rules
from threadline.capabilities.decide.rules.body import Answer, Inputs, Outcome
from threadline.capabilities.decide.rules.definition import Rule, RuleSet
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.decide.rules.hashing import ENGINE, decision_hash
from threadline.capabilities.foundation.conditions import Path, Subject, Traced
from threadline.capabilities.foundation.conditions.fields import reader, reason_of
from threadline.capabilities.foundation.conditions.placeholders import OUTPUT, Look
from threadline.capabilities.foundation.conditions.tracing import field_name, shortened
from threadline.capabilities.reach.mail.definition import KIND as MAIL
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.event_counter import EventCounter
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Declared, Emit, Policy, PolicyView, Shared, Wish, source_of
from threadline.kernel.time import format_time

POLICY = "rules"
SOURCE = source_of(POLICY)
"""The source of the events that the policy adds."""

LIVE, REPLAY, DRY = "live", "replay", "dry"
"""Modes: decided when the event was recorded; decided later, about an event of before; only tried."""

_NOTHING = Outcome(False, {}, [], {})
_UNFILLED: Inputs = {}
_NO = (NO_MATCH, ERROR)


class Decided(msgspec.Struct, eq=False):
    """What a rule answered. What costs time (trace, inputs, hash) is made when it is asked for.

    A struct, because every rule that is asked makes one, and a struct is made without a call of Python.
    """

    rule: Rule
    rule_set: str
    _answer: Answer
    _acted: Acted
    _filled: Inputs
    _subject: Subject | None = None
    _hash: str = ""

    @property
    def status(self) -> str:
        """One of `acting.STATUSES`."""
        return self._acted.status

    @property
    def output(self) -> dict[str, Any]:
        """What the rule stored, or under ``error`` what went wrong."""
        return self._acted.output

    @property
    def wished(self) -> list[dict[str, Any]]:
        """The actions with what they were filled with, in order; none of a decision that is an error."""
        return self._acted.wished

    @property
    def inputs(self) -> Inputs:
        """What was read, by conditions and by placeholders."""
        if type(self._answer) is Traced and not self._filled:
            return self._answer.inputs
        return {name: shortened(value) for name, value in {**self._answer.inputs, **self._filled}.items()}

    @property
    def trace(self) -> list[dict[str, Any]]:
        """Every condition in order: expected, found, matched or skipped."""
        return self._answer.trace

    @property
    def hash(self) -> str:
        """See `hashing.decision_hash`."""
        if not self._hash:
            answer, acted = self._answer, self._acted
            if type(answer) is Traced and not self._filled:
                # The same bytes, put together from what is known of the rule and of the event already.
                hasher = self.rule.hasher.copy()
                hasher.update(answer.written(acted.before, acted.after).encode())
                self._hash = hasher.hexdigest()
            else:
                self._hash = decision_hash(
                    self.rule.standard, self.inputs, self.status, self.output, self.trace, self.wished
                )
        return self._hash

    @property
    def plain(self) -> dict[str, Any]:
        """As it is kept, without what depends on when and where it was decided."""
        hash, trace, inputs, acted = self.hash, self._answer.trace, self.inputs, self._acted
        missing = self._missing(trace)
        return {
            "rule": self.rule.id,
            "version": self.rule.version,
            "rule_set": self.rule_set,
            "status": acted.status,
            "output": acted.output,
            "inputs": inputs,
            "trace": trace,
            "wished": acted.wished,
            "engine": ENGINE,
            "hash": hash,
            **({"missing": missing} if missing else {}),
        }

    def _missing(self, trace: list[dict[str, Any]]) -> dict[str, str]:
        """Why fields had no value, where their views say so. Not hashed: the decision rests on the absence alone, which
        its inputs have, and so it can be decided again from these."""
        reasons: dict[str, str] = {}
        subject = self._subject
        if subject is None:
            return reasons
        for step in trace:
            if step.get("note") == "missing":
                field = step["field"]
                path = tuple(field.split(".") if isinstance(field, str) else field)
                if reason := reason_of(subject, path):
                    reasons[field_name(field)] = reason
        return reasons

    def properties(self, recorded: Recorded, mode: str, at: int) -> dict[str, Any]:
        """The properties of the decision's event."""
        return {
            "decision_id": decision_id(recorded, self.rule, mode),
            "event_id": recorded.id,
            "mode": mode,
            "evaluated_at": format_time(at),
            **self.plain,
        }

    def wishes(self, recorded: Recorded) -> list[Wish]:
        """The decision as an event, and what its actions want."""
        key = f"{self.rule.id}/{self.rule.version}/{LIVE}"
        # At the time of its cause, so that a read of the past finds both or neither.
        at = min(recorded.event.occurred_at, recorded.recorded_at)
        properties = self.properties(recorded, LIVE, recorded.recorded_at)
        wishes: list[Wish] = [Emit(type=DECISION_MADE, key=key, occurred_at=at, properties=properties)]
        for number, wished in enumerate(self._acted.wished, 1):
            ((name, params),) = wished.items()
            make = KINDS[name].wish
            if make is not None:
                wishes.append(make(params, Cause(self.rule.id, self.rule.version, f"{key}/{number}", at)))
        return wishes


def decision_id(recorded: Recorded, rule: Rule, mode: str = LIVE) -> str:
    """The id of the decision of a rule about an event: a function of (event, rule, version, mode)."""
    return event_id(recorded.event.workspace, SOURCE, decision_key(recorded.id, rule, mode))


def decision_key(event: str, rule: Rule, mode: str) -> str:
    """The key of a decision's event."""
    return f"{event}/{rule.id}/{rule.version}/{mode}"


def decide(active: ActiveRules, recorded: Recorded, person: PersonView, *, history: bool = False) -> list[Decided]:
    """What the rules in force for this event answer, set by set, in the order in which they are asked.

    A rule that two sets name is asked for the first of them. ``history``: whatever the sets say of what was so before,
    decide it too. Pure: it depends on the rules, the event and the views only, and it never raises.
    """
    plan = active.plan(recorded.event.type)
    if not plan:
        return []
    subject = Subject(person.view, recorded, person.at)
    at, is_news = recorded.known_at, history or recorded.event.is_news
    asked: dict[str, bool] = {}
    decisions: list[Decided] = []
    for ordered in plan:
        if not (is_news or ordered.set.takes_existing):
            continue
        if len(plan) == 1 and ordered.set.record == "all" and ordered.set.policy == "all":
            _ask_every(ordered, subject, at, decisions)
        else:
            _ask_set(ordered, subject, at, asked, decisions)
    return decisions


def _ask_every(ordered: Ordered, subject: Subject, at: int, decisions: list[Decided]) -> None:
    """The usual way of a set that records everything: no answer bears on whether another rule is asked."""
    name = ordered.set.name
    for rule in ordered.rules:
        if rule.is_limited and not rule.is_effective(at):
            continue
        # As in `decide_rule`, without a call of it: most rules say no, and a call is a sixth of asking one.
        try:
            answer = rule.body.evaluate(subject)
        except Exception as error:  # noqa: BLE001 — see there
            decisions.append(_failed(rule, name, _NOTHING, error))
            continue
        if answer.matched:
            decisions.append(decided_of(rule, name, answer, lambda path: reader(path)(subject), subject))
        else:
            decisions.append(Decided(rule, name, answer, UNMATCHED, _UNFILLED, subject))


def _ask_set(ordered: Ordered, subject: Subject, at: int, asked: dict[str, bool], decisions: list[Decided]) -> None:
    every = ordered.set.record == "all"
    rules = ordered.every if every else ordered.promising(subject)
    for rule, sure in rules:
        if rule.is_limited and not rule.is_effective(at):
            continue
        matched = asked.get(rule.id)
        if matched is None:
            decided = decide_rule(rule, ordered.set, subject, every=every or sure)
            matched = decided is not None and decided.status not in _NO
            if decided is not None:
                # Of what says nothing here a set that records everything may want to know: it asks again.
                asked[rule.id] = matched
                decisions.append(decided)
        if matched and ordered.set.policy == "first":
            return


def decide_rule(rule: Rule, rule_set: RuleSet | None, subject: Subject, *, every: bool = True) -> Decided | None:
    """What one rule answers; None if it does not match and only what matches is wanted."""
    name = "" if rule_set is None else rule_set.name
    try:
        test = None if every else rule.body.test
        if test is not None and not test(subject):
            return None
        answer = rule.body.evaluate(subject)
    except Exception as error:  # noqa: BLE001 — whatever a body meets must not stop the event, nor the other rules
        return _failed(rule, name, _NOTHING, error)
    if not answer.matched:
        return Decided(rule, name, answer, UNMATCHED, _UNFILLED, subject) if every else None
    return decided_of(rule, name, answer, lambda path: reader(path)(subject), subject)


def decided_of(rule: Rule, rule_set: str, answer: Answer, read: Look, subject: Subject | None = None) -> Decided:
    """The decision that follows from what a body answered; ``read`` gives the value at a path of a placeholder."""
    if not answer.matched:
        return Decided(rule, rule_set, answer, UNMATCHED, _UNFILLED, subject)
    filled: Inputs = {}

    def look(path: Path) -> Any:
        value = output_at(answer.output, path[1:]) if path[0] == OUTPUT else read(path)
        filled[field_name(".".join(path))] = value
        return value

    try:
        if not answer.output and rule.fixed is not None:
            return Decided(rule, rule_set, answer, rule.fixed, _UNFILLED, subject)
        decided = Decided(rule, rule_set, answer, act(rule.actions, answer.output, look), filled, subject)
        assert decided.hash, "what cannot be written is found out here, and not when it is recorded"
    except InvalidValue as error:
        return _failed(rule, rule_set, answer, error)
    return decided


def output_at(output: Mapping[str, Any], steps: Path) -> Any:
    """What a body computed, at the end of some steps; None if there is nothing."""
    value: Any = output
    for step in steps:
        value = value.get(step) if type(value) is dict else None
    return value


def _failed(rule: Rule, rule_set: str, answer: Answer, error: Exception) -> Decided:
    text = str(error) if isinstance(error, InvalidValue) else f"{type(error).__name__}: {error}"
    return Decided(rule, rule_set, answer, acted(ERROR, {"error": text[:1_000]}, []), {})


def _rule_of(event: Event) -> tuple[str, ...] | None:
    # Anybody may send an event of this type, and fill a label with what they like.
    if event.source != SOURCE:
        return None
    return str(event.properties.get("rule", "")), str(event.properties.get("version", ""))


DECISIONS = EventCounter(
    "decisions_total", "Decisions of rules.", ("rule", "version"), frozenset({DECISION_MADE}), _rule_of
)


# --- shadows: versions asked beside those that count, which do nothing -----------------------------

SHADOW = "shadow"
"""The mode of such a decision."""


def shadow_wishes(
    active: ActiveRules, recorded: Recorded, live: Sequence[Decided], tried: Sequence[Decided]
) -> list[Wish]:
    """A decision for each shadow that matches, or does not match where the active version does.

    Its actions are kept in it and not carried out. ``live`` are the decisions that count, ``tried`` those of the rules
    with shadows in place of the active versions.
    """
    counts = {decided.rule.id: decided for decided in live}
    at = min(recorded.event.occurred_at, recorded.recorded_at)
    wishes: list[Wish] = []
    for decided in tried:
        id = decided.rule.id
        if id not in active.shadows:
            continue
        beside = counts.get(id)
        status = NO_MATCH if beside is None else beside.status
        if decided.status == NO_MATCH == status:
            continue
        properties = decided.properties(recorded, SHADOW, recorded.recorded_at)
        properties["beside"] = {
            "version": active.rules[id].version if id in active.rules else 0,
            "status": status,
            "same": beside is not None
            and (beside.status, beside.output, beside.wished) == (decided.status, decided.output, decided.wished),
        }
        key = f"{id}/{decided.rule.version}/{SHADOW}"
        wishes.append(Emit(type=DECISION_MADE, key=key, occurred_at=at, properties=properties))
    return wishes


# --- the policy ------------------------------------------------------------------------------------


def rules_policy(declared: ActiveRules) -> Policy:
    """The policy for what the definitions declare and whatever each workspace adds to it by operations."""
    return Policy(
        name=POLICY,
        handles=None,
        react=_react,
        sends=frozenset({MAIL, NOTIFICATION, WEBHOOK}),
        reads=tuple(read for rule in declared.rules.values() for read in rule.reads),
        shared=Shared(
            name=POLICY,
            make=partial(make_active_rules, declared),
            handles=ActiveRules.handles,
            declared=tuple(Declared(r.id, r.version, r.canonical, r.place) for r in declared.rules.values()),
        ),
        existing=lambda active: any(rule_set.takes_existing for rule_set in active.sets.values()),
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    active: ActiveRules = known.shared(POLICY)
    decisions = decide(active, recorded, known)
    wishes = [wish for decided in decisions for wish in decided.wishes(recorded)]
    if active.shadow is not None:
        # Asked after all that counts, and last, so that a shadow can take room from nothing.
        wishes += shadow_wishes(active, recorded, decisions, decide(active.shadow, recorded, known))
    return wishes
