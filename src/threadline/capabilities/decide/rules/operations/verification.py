"""Decisions recomputed: that the hash is of what stands there, and that it follows from what was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.acting import ERROR
from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.capabilities.decide.rules.hashing import ENGINE, decision_hash
from threadline.capabilities.decide.rules.in_force import rules_at
from threadline.capabilities.decide.rules.operations import DECISIONS_GROUP
from threadline.capabilities.decide.rules.policy import decided_of
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.foundation.conditions.tracing import field_name, is_shortened
from threadline.capabilities.foundation.events.parameters import Page
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import EventDamaged, InvalidDefinition, NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.operation import Context, Inspection, always, operation
from threadline.kernel.ports import Ports


def breaches(decision: Mapping[str, Any], rule: Rule) -> list[str]:
    """What is wrong with a decision, given the rule that made it; empty if nothing is.

    Its hash must be that of its content, and the rule must say the same of the same inputs. What a decision has kept as
    a hash only cannot be asked again; then the first is all that is looked at.
    """
    if decision["engine"] != ENGINE:
        return [f"it was made by engine {decision['engine']}, which this is not"]
    problems = []
    hashed = {name: decision[name] for name in ("inputs", "status", "output", "trace", "wished", "engine")}
    stands = decision_hash(rule.standard, **hashed)
    if stands != decision["hash"]:
        problems.append(f"its hash is {decision['hash']}, that of its content {stands}")
    inputs = decision["inputs"]
    if decision["status"] == ERROR or any(is_shortened(value) for value in inputs.values()):
        return problems
    outcome = rule.body.again(inputs)
    if _differ(outcome.trace, decision["trace"]):
        problems.append("the conditions say something else of the same inputs than its trace")
    again = decided_of(rule, decision["rule_set"], outcome, lambda path: inputs.get(field_name(".".join(path))))
    for name, now in (("status", again.status), ("output", again.output), ("wished", again.wished)):
        if _differ(now, decision[name]):
            problems.append(f"the same inputs give another {name}: {now!r}, not {decision[name]!r}")
    return problems


def _differ(first: Any, second: Any) -> bool:
    # In canonical JSON, in which the hash is: there 9.3e18 is 9300000000000000000, which it is not in Python.
    return canonical_json(first) != canonical_json(second)


def reckoned(decision: Mapping[str, Any], rules: Sequence[Rule]) -> tuple[Rule, list[str]]:
    """The rule among those of its number that made a decision, and the `breaches` of the decision."""
    pairs = [(rule, breaches(decision, rule)) for rule in rules]
    return next((pair for pair in pairs if not pair[1]), pairs[0])


@dataclass
class _Place:
    """As much of a context as reading rules takes."""

    engine: Ports
    workspace: str
    now: int = 0
    source: str = ""
    source_type: str = ""


class _Verifier:
    """Looks at decision after decision; each version of a rule is read once."""

    def __init__(self, engine: Ports) -> None:
        self._engine = engine
        self._rules: dict[tuple[str, str, int], list[Rule]] = {}

    def problems(self, recorded: Recorded) -> list[str]:
        decision = recorded.event.properties
        rules = self._rules_at(recorded.event.workspace, decision["rule"], decision["version"])
        if not rules:
            return [f"version {decision['version']} of rule {decision['rule']!r} is not known here"]
        return reckoned(decision, rules)[1]

    def _rules_at(self, workspace: str, id: str, version: int) -> list[Rule]:
        key = (workspace, id, version)
        if key not in self._rules:
            if len(self._rules) >= PAGE_ITEMS_MAX:
                self._rules.clear()
            try:
                self._rules[key] = rules_at(_Place(self._engine, workspace), id, version)
            except (NotFound, InvalidDefinition):
                self._rules[key] = []
        return self._rules[key]


def _decisions(engine: Ports, cursor: str, most: int) -> Iterator[tuple[str, Recorded | None]]:
    """(cursor, decision) of so many events of the feed; None for an event that is none."""
    while most > 0:
        page = engine.log.feed(cursor, min(most, PAGE_ITEMS_MAX))
        for feed_entry in page:
            cursor = feed_entry.cursor
            try:
                recorded = engine.log.read(feed_entry) if feed_entry.entry.type == DECISION_MADE else None
            except EventDamaged:
                recorded = None  # `verify` and the feed name it
            yield cursor, recorded if recorded is not None and decision_of(recorded) is not None else None
        most -= len(page)
        if not page:
            return


def _inspect(engine: Ports) -> Iterator[str]:
    verifier = _Verifier(engine)
    for _, recorded in _decisions(engine, "", 1 << 62):
        if recorded is not None:
            yield from (f"decision {recorded.id}: {problem}" for problem in verifier.problems(recorded))


INSPECTION = Inspection(name="decisions", inspect=_inspect)


class VerifyParams(Page, kw_only=True):
    """From where on to look."""

    limit: Annotated[int, Meta(description="Events looked at, decisions or not.", ge=1, le=10_000)] = 1_000


@key_fields("problems", "decision")
class Breach(msgspec.Struct, kw_only=True):
    """A decision that is not what it should be."""

    decision: str
    problems: list[str]


class VerifyResult(msgspec.Struct, kw_only=True):
    """What was looked at, and what is wrong."""

    decisions: Annotated[int, Meta(description="Decisions that were recomputed.")]
    breaches: list[Breach]
    next: Annotated[str, Meta(description="Where to go on; empty at the end.")] = ""


@operation(
    "GET /v1/decisions/verify",
    DECISIONS_GROUP,
    is_long=always,
    example=VerifyParams(limit=100),
    refused=lambda result: bool(result.breaches),
)
def verify(context: Context, params: VerifyParams) -> VerifyResult:
    """Recompute decisions from what they read, and list those that do not match."""
    verifier = _Verifier(context.engine)
    looked_at = count = 0
    last = ""
    broken: list[Breach] = []
    for cursor, recorded in _decisions(context.engine, params.cursor, params.limit):
        looked_at, last = looked_at + 1, cursor
        if recorded is not None and recorded.event.workspace == context.workspace:
            count += 1
            problems = verifier.problems(recorded)
            broken += [Breach(decision=recorded.id, problems=problems)] if problems else []
    return VerifyResult(decisions=count, breaches=broken, next=last if looked_at == params.limit else "")
