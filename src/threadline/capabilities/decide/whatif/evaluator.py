"""Rules as evaluators of history: what they decide about an event, and what that changes for the events to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.decide.rules import ActiveRules, Decided, decide
from threadline.capabilities.decide.rules.acting import ERROR, NO_MATCH
from threadline.capabilities.decide.rules.actions import KINDS
from threadline.capabilities.decide.rules.events import DECISION, DECISION_MADE
from threadline.capabilities.decide.rules.policy import LIVE, POLICY
from threadline.capabilities.foundation.conditions import Path
from threadline.kernel.event import Recorded
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Effect, Emit, Wish

UNCHANGING = frozenset(name for name, kind in KINDS.items() if kind.emits is None)
"""Actions that put nothing into the thread."""


class RulesEvaluator:
    """Decides as the rules policy does, by one variant of the rules."""

    name = POLICY

    def __init__(
        self, active: ActiveRules, *, history: bool, explaining: bool = False, also: Iterable[tuple[str, Path]] = ()
    ) -> None:
        self._active = active
        self._asked = active.recording_all() if explaining else active
        self._history = history
        """Whether back-filled events are decided whatever the sets say of them."""
        self._explaining = explaining
        self.handles = active.handles
        reads = (read for rule in active.rules.values() for read in rule.reads)
        self.reads: Sequence[tuple[str, Path]] = tuple(
            dict.fromkeys([*((read.projection, read.path) for read in reads), *also])
        )
        """``also`` are parts that are compared at the end."""

    def decisions(self, recorded: Recorded, person: PersonView) -> Mapping[str, Decided]:
        """What the rules say of an event, by rule."""
        answers = decide(self._asked, recorded, person, history=self._history)
        return {decided.rule.id: decided for decided in answers} if answers else _NOTHING

    def wishes(
        self, recorded: Recorded, decisions: Mapping[str, Decided], matters: Callable[[str], bool]
    ) -> Sequence[Wish]:
        """What comes of it; the event of a decision is made only where something reads decisions."""
        tells = matters(DECISION_MADE)
        wanted: list[Wish] = []
        for decided in decisions.values():
            if self._explaining and decided.status == NO_MATCH and self._active.sets[decided.rule_set].record != "all":
                continue  # it is here for its reasons only
            names = [name for wished in decided.wished for name in wished]
            if tells or not UNCHANGING.issuperset(names):
                wanted += decided.wishes(recorded)
            else:
                wanted += [_DECISION, *(_SENT for name in names if KINDS[name].sends)]
        return wanted

    def decides_as(self, other: RulesEvaluator, event_type: str) -> bool:
        """Whether the sets and rules that are asked of a type say the same in both variants, to the version."""
        return self.asked_of(event_type) == other.asked_of(event_type)

    def asked_of(self, event_type: str) -> list[Any]:
        """The sets that are asked of a type, each with its rules in order, as JSON has them."""
        return [
            (ordered.set.content, [rule.content for rule in ordered.rules]) for ordered in self._asked.plan(event_type)
        ]

    def alike(self, wish: Emit) -> Any:
        """Which version decided, and by which numbers, makes no difference where what it came to is the same."""
        if wish.type != DECISION_MADE:
            return (wish.type, wish.occurred_at, wish.properties)
        return (wish.type, wish.occurred_at, [wish.properties[name] for name in _CAME_TO])


_DECISION = Emit(type=DECISION_MADE, key="", occurred_at=0)
_SENT = Effect(kind="", key="")
"""What a decision wishes for where nothing reads it."""
_CAME_TO = ("rule", "status", "output", "wished")
_NOTHING: Mapping[str, Decided] = {}


class RecordedAnswer(NamedTuple):
    """A decision as it was recorded, with what a comparison looks at."""

    version: int
    status: str
    output: dict[str, Any]
    wished: list[dict[str, Any]]
    trace: list[dict[str, Any]]


def recorded_decision(recorded: Recorded) -> tuple[str, str, RecordedAnswer] | None:
    """(event, rule, decision) of a live decision's event; None for any other event."""
    event = recorded.event
    if event.type != DECISION_MADE or not DECISION.may_be_from(event) or event.properties.get("mode") != LIVE:
        return None
    properties = event.properties
    decision = RecordedAnswer(**{name: properties[name] for name in RecordedAnswer._fields})
    return properties["event_id"], properties["rule"], decision


def version_of(verdict: Decided | RecordedAnswer) -> int:
    """The version of the rule that decided."""
    return verdict.version if isinstance(verdict, RecordedAnswer) else verdict.rule.version


def same(old: Decided | RecordedAnswer | None, new: Decided | RecordedAnswer | None) -> bool:
    """Whether two verdicts come to the same: status, what was stored, and what was wished for."""
    if old is None or new is None:
        return status_of(old) == status_of(new)
    return old.status == new.status and old.output == new.output and old.wished == new.wished


def status_of(verdict: Decided | RecordedAnswer | None) -> str:
    """The status; `NO_MATCH` for a rule that did not match or was not asked."""
    return NO_MATCH if verdict is None else verdict.status


def is_error(verdict: Decided | RecordedAnswer | None) -> bool:
    """Whether a rule could not answer."""
    return verdict is not None and verdict.status == ERROR
