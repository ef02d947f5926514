"""Whether a rule acts on the event that it is asked about, and if not, every reason why."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.acting import ERROR, NO_MATCH
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.rules.in_force import in_force
from threadline.capabilities.decide.rules.policy import LIVE, SOURCE, Decided, decide, decision_key
from threadline.capabilities.decide.rules.repository import stored_head
from threadline.kernel.disclosure import SENTENCE
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context
from threadline.kernel.person_view import PersonView
from threadline.kernel.time import format_time

Code = Literal[
    "no_match", "error", "unwritten", "draft", "tested", "shadow", "retired", "no_rule_set", "no_event", "event_type",
    "historical", "not_effective", "before_rule", "first_match", "undecided", "replay",
]  # fmt: skip


@key_fields("code", "message")
class Reason(msgspec.Struct, frozen=True):
    """Why a rule does not act."""

    code: Annotated[Code, Meta(description="Stable, for programs.")]
    message: Annotated[str, Meta(description="The same in words."), SENTENCE]


_SILENT = (NO_MATCH, ERROR)
UNWRITTEN = Reason("unwritten", "the rule is not written")
REPLAYED = Reason("replay", "a decision in the mode `replay` carries nothing out")


class Effectiveness:
    """Finds the reasons for answers about one event, or about a person without one."""

    def __init__(
        self,
        context: Context,
        active: ActiveRules,
        person: PersonView,
        recorded: Recorded | None,
        at: int,
        *,
        stored: bool,
    ) -> None:
        """``stored``: whether the event is in the log. ``at``: when the rule's own dates have to include it."""
        self._context = context
        self._active = active
        self._person = person
        self._recorded = recorded
        self._at = at
        self._stored = stored

    def reasons(self, decided: Decided) -> list[Reason]:
        """Every reason why an answer does not act; none: it does, and did if the event is in the log."""
        rule = decided.rule
        reasons = [*_of_answer(decided), *self._of_version(rule), *self._of_sets(rule)]
        if not rule.is_effective(self._at):
            dates = "outside of its `effective_from` and `effective_until`"
            reasons.append(Reason("not_effective", f"{format_time(self._at)} is {dates}"))
        if decided.status not in _SILENT and self._recorded is not None:
            reasons += self._of_event(rule, self._recorded, others=bool(reasons))
        return reasons

    def _of_version(self, rule: Rule) -> Iterator[Reason]:
        active = self._active.rules.get(rule.id)
        if active is not None and active.version == rule.version:
            return
        head, _ = stored_head(self._context, rule.id)
        state = head.states[rule.version - 1] if rule.version <= len(head.states) else "retired"
        # Under an id that the definitions declare too, what is written as active is not.
        code: Code = "shadow" if rule.version == head.shadow else "retired" if state == "active" else state
        other = "no version" if active is None else f"version {active.version}"
        yield Reason(code, f"version {rule.version} is {code}, and {other} is active")

    def _of_sets(self, rule: Rule) -> Iterator[Reason]:
        sets, recorded = self._active.sets_of(rule.id), self._recorded
        names = "rule set " + ", ".join(repr(rule_set.name) for rule_set in sets)
        types = ", ".join(sorted({type for rule_set in sets for type in rule_set.events}))
        if not sets:
            yield Reason("no_rule_set", f"no rule set names the rule {rule.id!r}")
        elif recorded is None:
            yield Reason("no_event", f"rules act on events, and there is none; {names} runs on {types}")
        elif not (running := [rule_set for rule_set in sets if recorded.event.type in rule_set.events]):
            yield Reason("event_type", f"{names} runs on {types}, not on {recorded.event.type}")
        elif not recorded.event.is_news and not any(rule_set.takes_existing for rule_set in running):
            text = f"the event is not new ({recorded.event.why}), and {names} has `existing: false`"
            yield Reason("historical", text)

    def _of_event(self, rule: Rule, recorded: Recorded, *, others: bool) -> Iterator[Reason]:
        if self._stored:
            key = decision_key(recorded.id, rule, LIVE)
            if self._context.engine.log.of_key(self._context.workspace, SOURCE, key) is not None:
                return
            then = in_force(self._context, rule.id, recorded.recorded_at)
            if then is None or then.version != rule.version:
                was = "no version" if then is None else f"version {then.version}"
                at = format_time(recorded.recorded_at)
                yield Reason("before_rule", f"when the event came, at {at}, {was} of the rule was active")
                return
        if others:
            return
        if rule.id not in self._live:
            before = ", ".join(map(repr, self._live))
            yield Reason("first_match", f"its rule set ends at the first match, and {before} comes before it")
        elif self._stored:
            text = "when the event came, the rule did not act: its rule set, or what it reads, was different then"
            yield Reason("undecided", text)

    @cached_property
    def _live(self) -> dict[str, None]:
        """The rules that match when all are asked as a live event asks them: a set may end at an earlier match."""
        assert self._recorded is not None, "without an event no rule is asked"
        live = decide(self._active, self._recorded, self._person)
        return {decided.rule.id: None for decided in live if decided.status not in _SILENT}


def _of_answer(decided: Decided) -> Iterator[Reason]:
    if decided.status == NO_MATCH:
        yield Reason("no_match", "it does not match; the trace shows the condition that failed")
    elif decided.status == ERROR:
        yield Reason("error", f"it failed: {decided.output['error']}")
