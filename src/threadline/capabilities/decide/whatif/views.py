"""A what-if in the form in which callers read it, under way or ended."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.definition import Rule, RuleSet
from threadline.capabilities.decide.rules.what_if_results import About
from threadline.capabilities.decide.whatif.candidate import Candidate
from threadline.capabilities.decide.whatif.changes import RuleChange, rule_changes
from threadline.capabilities.decide.whatif.comparison import (
    AskedRules,
    Counts,
    PointsEffect,
    RuleCount,
    Sample,
    SegmentEffect,
)
from threadline.capabilities.decide.whatif.simulation import Simulation
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.kernel.disclosure import SENTENCE, not_personal

Part = TypeVar("Part", Rule, RuleSet)

LINES_MAX = 2_000
CONTEXT_LINES = 3


def differences(old: Candidate, new: Candidate) -> list[str]:
    """The lines of rules and sets that differ between the two; those taken out begin with ``-``, new ones with
    ``+``. Bounded: the last line says so where there are more."""
    rules = _changes(old.active.rules, new.active.rules, lambda rule: f"rule {rule.id} version {rule.version}")
    sets = _changes(old.active.sets, new.active.sets, lambda rule_set: f"rule set {rule_set.name}")
    lines = [*rules, *sets]
    if len(lines) > LINES_MAX:
        return [*lines[:LINES_MAX], f"… and {len(lines) - LINES_MAX:,} more lines"]
    return lines


def _changes(old: Mapping[str, Part], new: Mapping[str, Part], title: Callable[[Part], str]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        was, becomes = old.get(name), new.get(name)
        before, after = (None if part is None else part.content for part in (was, becomes))
        if before != after:
            names = ["nothing" if part is None else title(part) for part in (was, becomes)]
            yield from difflib.unified_diff(
                _lines(before), _lines(after), names[0], names[1], n=CONTEXT_LINES, lineterm=""
            )


def _lines(content: Mapping[str, Any] | None) -> list[str]:
    if content is None:
        return []
    shown = {name: value for name, value in content.items() if value not in ("", [], None)}
    return yaml_of(shown, width=120).splitlines()


State = Literal["running", "done", "cancelled", "failed"]


@not_personal
class MatrixCell(msgspec.Struct, kw_only=True):
    """How many answers went from one status to another."""

    old: str
    new: str
    same: Annotated[int, Meta(description="Answers that say the same on both sides.")]
    changed: Annotated[int, Meta(description="Those that do not: another status, or another output or other actions.")]
    people: Annotated[list[str], Meta(description="Some with changed answers: those with the smallest ids.")] = []


@not_personal
class RuleTotals(msgspec.Struct, kw_only=True):
    """The outcome of one rule."""

    rule: str
    asked: Annotated[int, Meta(description="Events on which it ran, on either side.")]
    changed: int
    changed_share: Annotated[float, Meta(description="`changed` of `asked`, 0 to 1.")]
    people: Annotated[int, Meta(description="People for whom an answer changed.")]
    errors: Annotated[int, Meta(description="Errors of the candidate.")]
    old: Annotated[dict[str, int], Meta(description="Status -> answers; `NoMatch` are those that say nothing.")]
    new: dict[str, int]


class ActionTotals(msgspec.Struct, kw_only=True):
    """How often a kind of action was wished for."""

    action: str
    old: int
    new: int


@not_personal
class WhatIfView(msgspec.Struct, kw_only=True):
    """A what-if: what was asked, how far it is, and its result so far."""

    id: str
    state: State
    saved: Annotated[bool, Meta(description="Whether the result is kept in the store.")]
    problem: Annotated[str, Meta(description="Why it failed."), SENTENCE] = ""
    old: Annotated[str, Meta(description="What stands against the candidate.")]
    new: Annotated[str, Meta(description="The candidate.")]
    start: Instant
    stop: Instant
    asked: Annotated[dict[str, Any], Meta(description="The question.")]
    diff: Annotated[list[str], Meta(description="Rules and sets that differ, line by line, as `diff -u` shows it.")]
    changes: Annotated[list[RuleChange], Meta(description="Rules that decide otherwise.")] = []
    people: Annotated[int, Meta(description="People whose history was run, or should have been.")]
    events: Annotated[int, Meta(description="Events that they have, those outside of the range included.")]
    events_in_all: Annotated[int | None, Meta(description="Events of the whole store, where it can tell.")] = None
    people_changed: int = 0
    decisions: Annotated[
        int, Meta(description="Answers: one for each rule that is asked of an event, whether it matches or not.")
    ] = 0
    same: int = 0
    changed: int = 0
    errors: Annotated[int, Meta(description="Answers of the candidate that are errors.")] = 0
    failed: Annotated[
        int, Meta(description="Those whose history could not be run; none of their answers is counted.")
    ] = 0
    cut: Annotated[
        int,
        Meta(
            description="Events of which more came under the candidate than may come of one, so that the rest of it "
            "was left out, as `threadline.cascade_cut` would say in the thread."
        ),
    ] = 0
    historical: Annotated[
        Literal["all", "by_set"],
        Meta(description="Of which historical events rules were asked: of all, or as live only by sets that say so."),
    ] = "all"
    historical_events: Annotated[
        int,
        Meta(
            description="Historical events of which live no rule, or fewer, would be asked, because a set has "
            "`existing: false`. They are counted with `all`, and left out with `by_set`."
        ),
    ] = 0
    asked_of: Annotated[dict[str, int], Meta(description="Event type -> events on which rules ran.")] = {}
    matrix: list[MatrixCell] = []
    rules: list[RuleTotals] = []
    actions: list[ActionTotals] = []
    segments: list[SegmentEffect] = []
    points: PointsEffect | None = None
    samples: Annotated[list[Sample], Meta(description="People by id; the same ones every time.")] = []
    failures: Annotated[
        dict[str, str], Meta(description="Person -> what went wrong, for some of the failed."), SENTENCE
    ] = {}


def view(
    simulation: Simulation,
    state: State,
    people: int,
    events: int,
    *,
    saved: bool = False,
    problem: str = "",
    events_in_all: int | None = None,
) -> WhatIfView:
    """The view: the question, and what has been counted so far."""
    shown = WhatIfView(
        id=simulation.id,
        state=state,
        saved=saved,
        problem=problem,
        old=simulation.old.title,
        new=simulation.new.title,
        start=instant(simulation.start),
        stop=instant(simulation.stop),
        asked=_asked(simulation),
        people=people,
        events=events,
        events_in_all=events_in_all,
        diff=differences(simulation.old, simulation.new),
        changes=rule_changes(simulation.old, simulation.new),
    )
    counts = simulation.tally.counts
    for name in ("people_changed", "decisions", "same", "changed", "errors", "failed", "cut"):
        setattr(shown, name, getattr(counts, name))
    _fill(shown, counts, simulation.tally.asked)
    return shown


def _asked(simulation: Simulation) -> dict[str, Any]:
    """What differs from what holds anyway."""
    asked: dict[str, Any] = msgspec.to_builtins(simulation.asked)
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def _fill(shown: WhatIfView, counts: Counts, asked: AskedRules) -> None:
    shown.historical = "all" if asked.all_history else "by_set"
    shown.historical_events = asked.not_live(counts)
    historical = {type: n for type, n in counts.historical.items() if asked.of(type, historical=True)}
    shown.asked_of = dict(sorted((Counter(counts.events) + Counter(historical)).items()))
    shown.matrix = [
        MatrixCell(old=old, new=new, same=cell[0], changed=cell[1], people=counts.cells.get(old, {}).get(new, []))
        for old, row in sorted(counts.matrix.items())
        for new, cell in sorted(row.items())
    ]
    shown.rules = [totals(rule, counts, asked) for rule in sorted({*counts.rules, *asked.ids})]
    shown.actions = [ActionTotals(action=name, old=old, new=new) for name, (old, new) in sorted(counts.actions.items())]
    shown.segments = [item for _, item in sorted(counts.segments.items())]
    shown.points = counts.points
    shown.samples = [item for _, item in sorted(counts.samples.items())]
    shown.failures = dict(sorted(counts.failures.items()))


def totals(rule: str, counts: Counts, asked: AskedRules) -> RuleTotals:
    """What became of one rule in all."""
    count = counts.rules.get(rule) or RuleCount()
    asked_of = max(asked.number(counts, rule), sum(count.old.values()), sum(count.new.values()))
    return RuleTotals(
        rule=rule,
        asked=asked_of,
        changed=count.changed,
        changed_share=round(count.changed / max(asked_of, 1), 6),
        people=count.people,
        errors=count.errors,
        old=dict(sorted(count.old.items())),
        new=dict(sorted(count.new.items())),
    )


def about(simulation: Simulation) -> About | None:
    """What an activation goes by; None for a what-if that is of no written version against what is in force."""
    asked = simulation.asked
    if asked.rule is None or asked.version is None or asked.content is not None or asked.baseline == "recorded":
        return None
    rule, before = simulation.new.active.rules[asked.rule], simulation.old.active.rules.get(asked.rule)
    counts = simulation.tally.counts
    total = totals(asked.rule, counts, simulation.tally.asked)
    return About(
        rule=rule.id,
        version=rule.version,
        hash=rule.hash,
        against=0 if before is None else before.version,
        whole=not asked.people and not asked.types,
        asked=total.asked,
        changed=total.changed,
        errors=total.errors + counts.failed,
    )
