"""The tally of a what-if: same, changed and error, by outcome and by rule, with the same samples every time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import ActiveRules, RuleSet
from threadline.capabilities.decide.rules.acting import NO_MATCH
from threadline.capabilities.decide.rules.views import TRACE
from threadline.capabilities.decide.whatif.evaluator import is_error, same, status_of, version_of
from threadline.kernel.disclosure import NOT_PERSONAL, free, not_personal
from threadline.kernel.event import Recorded
from threadline.kernel.time import EARLIEST, LATEST, format_time

FAILURES_MAX = 20
"""People whose history could not be replayed, shown with the reason; all of them are counted."""
PEOPLE_MAX = 10
"""People who entered or left a segment, shown for each."""
CELL_PEOPLE_MAX = 5
"""People shown for each cell of the matrix."""
_TEXT_MAX = 500
_NONE: frozenset[str] = frozenset()


class RuleCount(msgspec.Struct):
    """The outcome of one rule."""

    changed: int = 0
    people: int = 0
    errors: int = 0
    old: dict[str, int] = {}
    new: dict[str, int] = {}
    """Status -> how often; those that did not match are the rest of how often it was asked."""


@not_personal
class SegmentEffect(msgspec.Struct, kw_only=True):
    """Who would be elsewhere at the end."""

    segment: str
    entered: Annotated[int, Meta(description="People who belong to it under the candidate, and not otherwise.")] = 0
    left: int = 0
    people: Annotated[list[str], Meta(description="Some of them, those with the smallest ids.")] = []


class PointsEffect(msgspec.Struct, kw_only=True):
    """Points at the end, all people together, the candidate's less those in force."""

    people: Annotated[int, Meta(description="People whose points differ.")] = 0
    earned: int = 0
    balance: int = 0


class Sample(msgspec.Struct, kw_only=True):
    """Somebody for whom it would have been otherwise, and the first time that it would."""

    person: str
    changed: Annotated[int, Meta(description="Answers of theirs that changed.")]
    rule: str = ""
    event: str = ""
    type: str = ""
    at: Annotated[str, NOT_PERSONAL] = ""
    old: Annotated[dict[str, Any], Meta(description="Status, version and output."), free("status")] = {}
    new: Annotated[dict[str, Any], free("status")] = {}
    step: Annotated[
        dict[str, Any] | None,
        Meta(description="The first step of the trace that differs, on each side; null: they differ beyond it."),
        TRACE,
    ] = None


class Counts(msgspec.Struct):
    """Everything that is counted. It can be written down at any page and taken up again."""

    people: int = 0
    people_changed: int = 0
    events: dict[str, int] = {}
    """Events of which a rule was asked, by type, without those of `historical`."""
    historical: dict[str, int] = {}
    """Historical events by type, whether or not a rule was asked of them."""
    decisions: int = 0
    """Answers: one for each rule that is asked of an event, matching or not."""
    same: int = 0
    changed: int = 0
    errors: int = 0
    failed: int = 0
    cut: int = 0
    """Events of which more came under the candidate than may come of one."""
    matrix: dict[str, dict[str, list[int]]] = {}
    """Old status -> new status -> [same, changed]: a decision may keep its status and say something else."""
    cells: dict[str, dict[str, list[str]]] = {}
    """Old status -> new status -> people with changed answers there, those with the smallest ids."""
    rules: dict[str, RuleCount] = {}
    actions: dict[str, list[int]] = {}
    """Kind of action -> how often it was wished for, [old, new]."""
    segments: dict[str, SegmentEffect] = {}
    points: PointsEffect | None = None
    samples: dict[str, Sample] = {}
    failures: dict[str, str] = {}


class AskedRules:
    """The rules that are asked of an event in either variant, by its type and by whether it is historical."""

    def __init__(self, *both: ActiveRules, all_history: bool) -> None:
        """``all_history``: of historical events too, whatever their sets say."""
        self.all_history = all_history
        self._live = _by_type(both, lambda rule_set: True)
        self._by_set = _by_type(both, lambda rule_set: rule_set.takes_existing)
        self.ids = frozenset(id for ids in self._live.values() for id in ids)

    def of(self, type: str, *, historical: bool) -> frozenset[str]:
        """The ids of the rules."""
        return (self._by_set if historical and not self.all_history else self._live).get(type, _NONE)

    def number(self, counts: Counts, rule: str) -> int:
        """How many of the events counted a rule was asked of."""
        return sum(
            number
            for historical, events in ((False, counts.events), (True, counts.historical))
            for type, number in events.items()
            if rule in self.of(type, historical=historical)
        )

    def not_live(self, counts: Counts) -> int:
        """The historical events of which rules are asked only with ``all_history``."""
        return sum(n for type, n in counts.historical.items() if self._live.get(type) != self._by_set.get(type))


class Tally:
    """Counts people, one after the other; see `engine.whatif.Tally`."""

    def __init__(
        self, asked: AskedRules, samples: int, types: Collection[str] = (), counts: Counts | None = None
    ) -> None:
        self.counts = Counts() if counts is None else counts
        self.asked = asked
        self._types = frozenset(types)
        self._samples = samples

    def take(self, person: str, pairs: Sequence[Any]) -> bool:
        """Count a person; whether their first difference is wanted as a sample."""
        counts = self.counts
        counts.people += 1
        changed: dict[str, int] = {}
        for recorded, old, new in pairs:
            type = recorded.event.type
            if self._types and type not in self._types:
                continue
            historical = not recorded.event.is_news
            events = counts.historical if historical else counts.events
            events[type] = events.get(type, 0) + 1
            asked = self.asked.of(type, historical=historical)
            if old or new:
                self._compare(person, old, new, changed)
                asked -= {**old, **new}.keys()
            counts.decisions += len(asked)
            self._same(NO_MATCH, len(asked))
        for rule in changed:
            self._rule(rule).people += 1
        if not changed:
            return False
        counts.people_changed += 1
        return self._sample(person, sum(changed.values()))

    def _rule(self, rule: str) -> RuleCount:
        count = self.counts.rules.get(rule)
        if count is None:
            count = self.counts.rules[rule] = RuleCount()
        return count

    def _same(self, status: str, count: int) -> None:
        if count:
            self.counts.same += count
            self._cell(status, status)[0] += count

    def _cell(self, old: str, new: str) -> list[int]:
        return self.counts.matrix.setdefault(old, {}).setdefault(new, [0, 0])

    def _compare(self, person: str, old: Mapping[str, Any], new: Mapping[str, Any], changed: dict[str, int]) -> None:
        """Count the rules that answered in either variant."""
        counts = self.counts
        answered = {**old, **new}
        for rule in answered:
            was, becomes = old.get(rule), new.get(rule)
            count = self._rule(rule)
            self._count_status(0, count.old, was)
            self._count_status(1, count.new, becomes)
            if is_error(becomes):
                counts.errors += 1
                count.errors += 1
            if same(was, becomes):
                self._same(status_of(was), 1)
            else:
                counts.changed += 1
                count.changed += 1
                changed[rule] = changed.get(rule, 0) + 1
                self._cell(status_of(was), status_of(becomes))[1] += 1
                shown = counts.cells.setdefault(status_of(was), {}).setdefault(status_of(becomes), [])
                shown[:] = sorted({*shown, person})[:CELL_PEOPLE_MAX]
        counts.decisions += len(answered)

    def _count_status(self, side: int, statuses: dict[str, int], verdict: Any) -> None:
        if status_of(verdict) == NO_MATCH:
            return
        statuses[verdict.status] = statuses.get(verdict.status, 0) + 1
        for wished in verdict.wished:
            for name in wished:
                self.counts.actions.setdefault(name, [0, 0])[side] += 1

    # --- samples ------------------------------------------------------------------------------

    def _sample(self, person: str, changed: int) -> bool:
        """Keep those with the smallest ids, which are hashes: the same people, whatever the order and the pages."""
        samples = self.counts.samples
        if self._samples == 0 or (len(samples) >= self._samples and person > max(samples)):
            return False
        samples[person] = Sample(person=person, changed=changed)
        if len(samples) > self._samples:
            del samples[max(samples)]
        return True

    def explain(self, person: str, pairs: Sequence[Any]) -> None:
        """The first difference of a sample, with the step of the trace at which the variants differ."""
        sample = self.counts.samples[person]
        for recorded, old, new in pairs:
            if self._types and recorded.event.type not in self._types:
                continue
            for rule in sorted({**old, **new}):
                was, becomes = old.get(rule), new.get(rule)
                if not same(was, becomes):
                    _explain(sample, recorded, rule, was, becomes)
                    return

    # --- the end ------------------------------------------------------------------------------

    def end(self, person: str, old: Any, new: Any) -> None:
        """Segments entered and left, and points more or less."""
        counts = self.counts
        for name in sorted(new["segments"] ^ old["segments"]):
            effect = counts.segments.setdefault(name, SegmentEffect(segment=name))
            if name in new["segments"]:
                effect.entered += 1
            else:
                effect.left += 1
            effect.people = sorted([*effect.people, person])[:PEOPLE_MAX]
        if old["points"] != new["points"]:
            points = counts.points = counts.points or PointsEffect()
            points.people += 1
            points.earned += new["points"][0] - old["points"][0]
            points.balance += new["points"][1] - old["points"][1]

    def cut(self, events: int) -> None:
        """Events of a person of which more came than may come of one."""
        self.counts.cut += events

    def fail(self, person: str, problem: str) -> None:
        """A person whose history could not be replayed."""
        counts = self.counts
        counts.failed += 1
        counts.samples.pop(person, None)
        for shown in (people for row in counts.cells.values() for people in row.values() if person in people):
            shown.remove(person)
        counts.failures[person] = problem[:_TEXT_MAX]
        if len(counts.failures) > FAILURES_MAX:
            del counts.failures[max(counts.failures)]


def _by_type(both: Sequence[ActiveRules], counts: Callable[[RuleSet], bool]) -> dict[str, frozenset[str]]:
    by_type: dict[str, frozenset[str]] = {}
    for active in both:
        for rule_set in filter(counts, active.sets.values()):
            ids = active.rules.keys() & rule_set.rules
            for type in rule_set.events if ids else ():
                by_type[type] = by_type.get(type, _NONE) | ids
    return by_type


def _explain(sample: Sample, recorded: Recorded, rule: str, was: Any, becomes: Any) -> None:
    sample.rule, sample.event, sample.type = rule, recorded.id, recorded.event.type
    sample.at = format_time(min(max(recorded.event.occurred_at, EARLIEST), LATEST))
    sample.old, sample.new = _shown(was), _shown(becomes)
    sample.step = first_difference([] if was is None else was.trace, [] if becomes is None else becomes.trace)


def _shown(verdict: Any) -> dict[str, Any]:
    if verdict is None:
        return {"status": NO_MATCH}
    shown = {"status": verdict.status, "version": version_of(verdict), "output": verdict.output}
    return msgspec.json.decode(msgspec.json.encode(shown))  # type: ignore[no-any-return]


def first_difference(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The first step of two traces that differs, as ``{"old": …, "new": …}``; None where they do not."""
    for was, becomes in zip_longest(old, new):
        if was != becomes:
            return {"old": was, "new": becomes}
    return None
