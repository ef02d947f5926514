"""From what a caller asks to a what-if that can be run, broken off and taken up again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import ActiveRules
from threadline.capabilities.decide.rules.operations.rules import RuleId, Version
from threadline.capabilities.decide.rules.policy import POLICY
from threadline.capabilities.decide.whatif import candidate
from threadline.capabilities.decide.whatif.candidate import RULE_SECTIONS, Candidate
from threadline.capabilities.decide.whatif.comparison import AskedRules, Counts, Tally
from threadline.capabilities.decide.whatif.evaluator import recorded_decision
from threadline.capabilities.foundation.events.forms import Duration, PersonRef, Time, time_param
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.operation import EVENT_TYPE, Context, Params
from threadline.kernel.policy import Policy
from threadline.kernel.ports import Catalogue
from threadline.kernel.simulation import Pages
from threadline.kernel.time import EARLIEST, format_time, parse_duration
from threadline.kernel.typed import prepared


def emitted(old: ActiveRules, new: ActiveRules) -> frozenset[str]:
    """The types of events that rules may put into threads, if rules that do so differ between the two."""
    differing = {id for id in {*old.rules, *new.rules} if _content(old, id) != _content(new, id)}
    if {rule_set.name: rule_set.content for rule_set in old.sets.values()} != {
        rule_set.name: rule_set.content for rule_set in new.sets.values()
    }:
        differing = {*old.rules, *new.rules}
    rules = [active.rules[id] for active in (old, new) for id in differing if id in active.rules]
    if not any(action.emits is not None for rule in rules for action in rule.actions):
        return frozenset()
    return frozenset(
        action.emits
        for active in (old, new)
        for rule in active.rules.values()
        for action in rule.actions
        if action.emits is not None
    )


def _content(active: ActiveRules, id: str) -> dict[str, Any] | None:
    rule = active.rules.get(id)
    return None if rule is None else {name: value for name, value in rule.content.items() if name != "version"}


def replayed(
    side: Candidate, both: Iterable[ActiveRules], sections: frozenset[str], types: frozenset[str]
) -> frozenset[str]:
    """The policies, rules apart, that react again: what they emit may differ, and is noticed.

    Different are those of a section that is another one; those that go by what such a section or policy shapes; and
    those that react to events that rules put into threads, or go by what these change. Noticed is what a rule reads or
    is asked of, what decides who belongs to a segment, and the points.
    """
    shapes = {section.name: section.shapes or {section.name} for section in side.catalogue.sections}
    changed = {name for section in sections - RULE_SECTIONS for name in shapes.get(section, {section})}
    found_reads = [rule.reads for active in both for rule in active.rules.values()]
    found_reads += [segment.reads for segment in side.segments]
    reads = {("points", ()), *((read.projection, read.path) for group in found_reads for read in group)}
    heeded = {type for active in both for rule_set in active.sets.values() for type in rule_set.events}
    noticed = [
        policy
        for policy in side.catalogue.policies
        if policy.name != POLICY and _is_noticed(side.catalogue, policy, reads, heeded)
    ]
    names: set[str] = set()
    while more := {p.name for p in noticed if p.name not in names and _differs(side.catalogue, p, changed, types)}:
        names |= more
        changed |= more
    return frozenset(names)


def _is_noticed(catalogue: Catalogue, policy: Policy, reads: Iterable[tuple[str, Any]], heeded: set[str]) -> bool:
    if policy.emits is None or policy.emits & heeded:
        return True
    return any(catalogue.touches(type, name, path) for type in policy.emits for name, path in reads)


def _differs(catalogue: Catalogue, policy: Policy, changed: set[str], types: frozenset[str]) -> bool:
    reads = {(read.projection, read.path) for read in policy.reads}
    if policy.name in changed or any(name in changed for name, _ in reads) or (changed and not reads):
        return True
    if policy.handles is not None and policy.handles & types:
        return True
    return any(catalogue.touches(type, name, path) for type in types for name, path in reads)


SAMPLES_MAX = 1_000
PEOPLE_MAX = 10_000


@prepared
class Asked(Params, kw_only=True):
    """What is tried, and on which history."""

    rule: Annotated[
        RuleId | None,
        Meta(description="Try one rule: its `version`, the newest without one, or a `content` not written yet."),
    ] = None
    version: Version | None = None
    content: Annotated[
        dict[str, Any] | None,
        Meta(description="The content of `rule`, as in the definitions; it need not be written first."),
    ] = None
    definitions: Annotated[
        str,
        Meta(
            description="Try definitions: YAML (or JSON, which is YAML). Each section that it holds stands in the "
            "place of that section in force; `event_schemas`, `identifiers` and `settings` are left aside.",
            max_length=1_000_000,
        ),
    ] = ""
    file: Annotated[
        str,
        Meta(description="What messages call `definitions`, such as the name of the file.", max_length=500),
    ] = ""
    against: Annotated[
        Version | None, Meta(description="Compare with this version of `rule`; by default with what is in force.")
    ] = None
    baseline: Annotated[
        Literal["reckoned", "recorded"],
        Meta(
            description="reckoned: the other side is reckoned in the sandbox as well, so that only the rules differ. "
            "recorded: it is the decisions that were made then."
        ),
    ] = "reckoned"
    historical: Annotated[
        Literal["all", "by_set"],
        Meta(
            description="Historical events, such as an import. all: rules are asked of them whatever their sets say. "
            "by_set: as live, only by sets with `existing: true`; always so with the baseline `recorded`."
        ),
    ] = "all"
    start: Annotated[Time | None, Meta(description="From the events that became known at this instant on.")] = None
    stop: Annotated[Time | None, Meta(description="Up to this instant; without it up to now.")] = None
    since: Annotated[Duration | None, Meta(description="Instead of `start`: this long before `stop`, such as 90d.")] = (
        None
    )
    people: Annotated[list[PersonRef], Meta(description="Only these people.", max_length=PEOPLE_MAX)] = []
    types: Annotated[
        list[str],
        EVENT_TYPE,
        Meta(
            description="Count only decisions about events of these types. A rule that no set names runs on them.",
            max_length=100,
        ),
    ] = []
    samples: Annotated[
        int, Meta(description="People who are shown with their first difference.", ge=0, le=SAMPLES_MAX)
    ] = 20


@prepared
class Checkpoint(msgspec.Struct, kw_only=True):
    """How far a what-if has come. It can be kept anywhere, and holds all that going on takes."""

    fingerprint: str
    start: int
    stop: int
    after: tuple[str, str, str] | None
    people: int
    events: int
    counts: Counts


@dataclass
class Simulation:
    """A what-if, ready to run."""

    asked: Asked
    old: Candidate
    new: Candidate
    start: int
    stop: int
    fingerprint: str
    tally: Tally
    pages: Pages

    @property
    def id(self) -> str:
        """The same for the same question of the same history."""
        return self.fingerprint[:32]

    def checkpoint(self, after: Any, people: int, events: int) -> Checkpoint:
        """Where it stands after a page."""
        position = None if after is None else (after.table, after.partition, after.sort)
        return Checkpoint(
            fingerprint=self.fingerprint,
            start=self.start,
            stop=self.stop,
            after=position,
            people=people,
            events=events,
            counts=self.tally.counts,
        )


def prepare(context: Context, asked: Asked, checkpoint: Checkpoint | None = None) -> Simulation:
    """Make ready what is asked, or go on from a checkpoint of the same question.

    Raises `InvalidValue` and `InvalidDefinition` for what cannot be tried, and `Conflict` for a checkpoint of another
    question.
    """
    if asked.rule is not None and asked.version is None and asked.content is None:
        asked = msgspec.structs.replace(asked, version=candidate.newest(context, asked.rule))
    start, stop = (checkpoint.start, checkpoint.stop) if checkpoint is not None else _range(context, asked)
    old, new = _candidates(context, asked)
    sections = candidate.sections_of(asked.definitions) if asked.definitions else frozenset[str]()
    both = (old.active, new.active)
    types = emitted(*both)
    policies = [replayed(side, both, sections, types) for side in (old, new)]
    recorded = asked.baseline == "recorded"
    # What was recorded was decided as the sets say.
    all_history = asked.historical == "all" and not recorded
    # Where everything is folded alike and rules put nothing into threads, people end up where they would have anyway.
    ends = not recorded and (bool(types) or old.catalogue is not new.catalogue)
    specs = [
        candidate.variant_spec(side, reacting, history=all_history, ends=ends)
        for side, reacting in zip((old, new), policies, strict=True)
    ]
    counted = {
        name: value for name, value in msgspec.to_builtins(asked).items() if name not in ("start", "stop", "file")
    }
    fingerprint = candidate.fingerprint({"asked": counted, "start": start, "stop": stop}, old, new)
    if checkpoint is not None and checkpoint.fingerprint != fingerprint:
        raise Conflict(
            "the checkpoint belongs to another what-if, or rules or definitions have changed since",
            hint="Ask the same question as then, or start over without the checkpoint.",
        )
    counts = None if checkpoint is None else checkpoint.counts
    tally = Tally(AskedRules(*both, all_history=all_history), asked.samples, asked.types, counts)
    people = None
    if asked.people:
        people = sorted({context.engine.reader.person(context.workspace, ref).id for ref in asked.people})
    pages = context.engine.simulations.replay(
        context.workspace,
        specs[0],
        specs[1],
        start,
        stop,
        tally,
        people=people,
        endings=(candidate.ending(old), candidate.ending(new)) if ends else None,
        recorded_decision=recorded_decision if recorded else None,
    )
    return Simulation(asked, old, new, start, stop, fingerprint, tally, pages)


def _range(context: Context, asked: Asked) -> tuple[int, int]:
    if asked.start and asked.since:
        raise InvalidValue("give `start` or `since`, not both")
    stop = time_param(asked.stop)
    stop = context.now if stop is None else stop
    if stop > context.now:
        raise InvalidValue(f"stop is in the future; it is now {format_time(context.now)}", param="stop")
    start = stop - parse_duration(asked.since) if asked.since else time_param(asked.start)
    start = EARLIEST if start is None else max(start, EARLIEST)
    if start >= stop:
        raise InvalidValue("`start` is not before `stop`", param="start")
    return start, stop


def _candidates(context: Context, asked: Asked) -> tuple[Candidate, Candidate]:
    if (asked.rule is None) == (not asked.definitions):
        raise InvalidValue("give a `rule` with its `version` or `content`, or `definitions`")
    if asked.rule is None and any(given is not None for given in (asked.version, asked.content, asked.against)):
        raise InvalidValue("`version`, `content` and `against` are of a `rule`; name it")
    old = candidate.in_force(context)
    if asked.rule is None:
        return old, candidate.of_definitions(context, old, asked.definitions, asked.file)
    new = candidate.of_rule(old, candidate.written(context, asked.rule, asked.version, asked.content), asked.types)
    if asked.against is not None:
        if asked.baseline == "recorded":
            raise InvalidValue("`against` goes with the baseline `reckoned` only; leave `baseline` out")
        old = candidate.of_rule(old, candidate.written(context, asked.rule, asked.against, None), asked.types)
    return old, new
