"""The candidate and what stands against it: the rules of both and their catalogues."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from threadline.capabilities.decide.rules import ActiveRules, Rule, RuleSet, repository
from threadline.capabilities.decide.rules.definition import rule_of_json
from threadline.capabilities.decide.rules.document_import import content_of
from threadline.capabilities.decide.rules.in_force import rule_at
from threadline.capabilities.decide.rules.policy import POLICY
from threadline.capabilities.decide.whatif.evaluator import RulesEvaluator
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.segments.definition import Segment, read_segments
from threadline.capabilities.profile.segments.membership import Memberships
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Context
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Catalogue
from threadline.kernel.simulation import VariantSpec

ASIDE = frozenset({"event_schemas", "identifiers", "settings"})
"""Sections of a candidate that are left aside: what may come in, who is who, and how the process runs, is no part of a
what-if."""
RULE_SECTIONS = frozenset({"rules", "rule_sets"})
CANDIDATE = "definitions"
"""How the text of a candidate is called in messages where nobody names its file: the parameter that it came as."""
TRIED = "tried"
"""The set in which a rule is asked that no set names."""


@dataclass(frozen=True)
class Candidate:
    """Rules, catalogue and segments of one variant of a what-if."""

    catalogue: Catalogue
    active: ActiveRules
    segments: tuple[Segment, ...]
    title: str
    file: str = ""
    """How the text of its definitions is called; empty: it has none."""


def in_force(context: Context) -> Candidate:
    """What decides live, now."""
    catalogue = context.engine.catalogue
    return Candidate(catalogue, repository.active_rules_of(context), _segments(_definitions(catalogue)), "in force")


def _definitions(catalogue: Catalogue) -> Definitions | None:
    definitions = catalogue.definitions
    assert definitions is None or isinstance(definitions, Definitions), "catalogues are made of `Definitions`"
    return definitions


def _segments(definitions: Definitions | None) -> tuple[Segment, ...]:
    return () if definitions is None else read_segments(definitions) or ()


def of_rule(current: Candidate, rule: Rule, types: Iterable[str]) -> Candidate:
    """What is in force, with this version of a rule in the place of whatever there is of it."""
    current.catalogue.refuse_unread(rule.reads)
    sets = list(current.active.sets.values())
    if not current.active.sets_of(rule.id):
        asked = tuple(types)
        if not asked:
            raise InvalidValue(
                f"no rule set names the rule {rule.id!r}, so it would never be asked",
                hint="Write it with its event types (`events`), name it in a rule set, or give the what-if `types`.",
            )
        sets.append(RuleSet(TRIED, events=asked, rules=(rule.id,)))
    others = [other for other in current.active.rules.values() if other.id != rule.id]
    return replace(current, active=ActiveRules([*others, rule], sets), title=f"rule {rule.id} version {rule.version}")


def written(context: Context, id: str, version: int | None, content: dict[str, Any] | None) -> Rule:
    """The version of a rule that is meant: a written one, the newest without a number, or one of a new content."""
    if content is None:
        return rule_at(context, id, version or newest(context, id))
    return msgspec.structs.replace(
        rule_of_json(
            id,
            {"version": version or 1, **content_of(id, content, "content")},
            "content",
            context.engine.catalogue.names,
        ),
        place="content",
    )


def newest(context: Context, id: str) -> int:
    """The number of the newest version of a rule: of the declared one where the definitions have it."""
    declared = repository.active_rules_of(context).declared.get(id)
    return len(repository.existing(context, id).states) if declared is None else declared.version


def of_definitions(context: Context, current: Candidate, text: str, file: str = "") -> Candidate:
    """What a file of definitions says, section by section in the place of what is in force."""
    file = file or CANDIDATE
    declared = _definitions(context.engine.catalogue) or Definitions()
    definitions = declared.with_candidate(file, text, ASIDE)
    for name in ASIDE:
        definitions.section(name)
    catalogue = context.engine.catalogue.variant(definitions)
    items = {sort: data for sort, (data, _) in current.active.sources.items()}
    policy = catalogue.policy(POLICY)
    shared = None if policy is None else policy.shared
    assert shared is not None, "rules are in every catalogue"
    active: ActiveRules = shared.make(items, None)
    title = f"{file}: {', '.join(sorted(sections_of(text)))}"
    if sections_of(text) <= RULE_SECTIONS:
        # Everything is folded alike, so that one simulated person can serve both variants.
        return replace(current, active=active, title=title, file=file)
    return Candidate(catalogue, active, _segments(definitions), title, file)


def sections_of(text: str) -> frozenset[str]:
    """The sections of a candidate that count."""
    return Definitions([(CANDIDATE, text)]).names - ASIDE


# --- the two variants -------------------------------------------------------------------------


def variant_spec(side: Candidate, policies: frozenset[str], *, history: bool, ends: bool) -> VariantSpec:
    """The variant of a candidate; ``ends``: `ending` is compared too."""
    also = [(read.projection, read.path) for segment in side.segments for read in segment.reads] if ends else []
    evaluator = RulesEvaluator(side.active, history=history, also=[*also, ("points", ())] if ends else ())
    explaining = RulesEvaluator(side.active, history=history, explaining=True)
    return VariantSpec(side.catalogue, evaluator, explaining, policies, {POLICY: side.active})


def ending(side: Candidate) -> Callable[[PersonView], dict[str, Any]]:
    """What is compared at the end: who belongs to which segment, and who has how many points."""
    segments = side.segments

    def look(person: PersonView) -> dict[str, Any]:
        memberships = Memberships(person, person.at)
        points = person.view("points") or {}
        return {
            "segments": {segment.name for segment in segments if memberships.belongs(segment)},
            "points": (points.get("earned", 0), points.get("balance", 0)),
        }

    return look


def fingerprint(parts: Mapping[str, Any], *sides: Candidate) -> str:
    """A hash of the question and of both candidates, by which a checkpoint is known to belong to them."""
    content = {**parts, "sides": [list(_fingerprinted(side)) for side in sides]}
    return hashlib.sha256(canonical_json(content)).hexdigest()


def _fingerprinted(side: Candidate) -> Iterator[Any]:
    yield side.catalogue.layout
    yield [rule.content for rule in side.active.rules.values()]
    yield [rule_set.content for rule_set in side.active.sets.values()]
    yield [[segment.name, segment.version] for segment in side.segments]
