"""Rules as callers read them: lists, single versions, the one in force at an instant, and what became of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.rules.in_force import in_force, rule_at
from threadline.capabilities.decide.rules.operations import RULES_GROUP
from threadline.capabilities.decide.rules.repository import Head, Transition
from threadline.capabilities.foundation.events.forms import Instant, Time, instant, time_param
from threadline.capabilities.foundation.events.parameters import Next, Page, number_of
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.time import format_time

RuleId = Annotated[str, Meta(description="A rule's id.", min_length=1, max_length=64)]
KnownRule = Annotated[RuleId, names_a("rule")]
Version = Annotated[int, Meta(description="The number of a version.", ge=1, le=99_999_999)]
Limit = Annotated[int, Meta(ge=1, le=500)]
By = Annotated[str, Meta(description="Who did it: the name of the credential, or `definitions`.")]

# --- lists ------------------------------------------------------------------------------------


class RulesParams(Page, kw_only=True):
    """Which page of the rules."""

    state: Annotated[
        Literal["", "draft", "tested", "active", "retired"],
        Meta(description="Only rules of which some version is in this state."),
    ] = ""


@key_fields("name", "state", "active", "newest", "id")
@not_personal
class RuleLine(msgspec.Struct, kw_only=True):
    """A rule in a list."""

    id: str
    name: str
    active: Annotated[int, Meta(description="The active version; 0 if there is none.")]
    newest: Annotated[int, Meta(description="The newest version.")]
    state: Annotated[str, Meta(description="The state of the newest version.")]
    declared: Annotated[bool, Meta(description="Whether the definitions declare it; then no operation changes it.")]
    rule_sets: Annotated[list[str], Meta(description="The sets that name it; without one it never runs.")]
    problem: Annotated[str, Meta(description="Why the active version cannot be used here; empty if it can.")] = ""


class RulesPage(msgspec.Struct, kw_only=True):
    """Rules by id."""

    rules: list[RuleLine]
    next: Next = ""


@operation("GET /v1/rules", RULES_GROUP, example=RulesParams(state="active"))
def list_(context: Context, params: RulesParams) -> RulesPage:
    """List rules: which version is active, which is the newest, and which sets name them."""
    active = repository.active_rules_of(context)
    listed: list[RuleLine] = []
    after, more, size = params.cursor, True, min(params.limit + 1, PAGE_ITEMS_MAX)
    while more and len(listed) <= params.limit:
        page = repository.heads(context, after, size)
        more = len(page) == size
        written = dict(page)
        stop = page[-1][0] if more else "~"
        declared = (id for id in active.declared if after < id <= stop)
        for id in sorted({*written, *declared}):
            line = _line(active, id, written.get(id), params.state)
            listed += [line] if line is not None else []
        after = stop
    shown = listed[: params.limit]
    return RulesPage(rules=shown, next=shown[-1].id if len(listed) > params.limit else "")


def _line(active: ActiveRules, id: str, head: Head | None, state: str) -> RuleLine | None:
    sets = [rule_set.name for rule_set in active.sets_of(id)]
    declared = active.declared.get(id)
    if declared is not None:
        if state not in ("", "active"):
            return None
        return RuleLine(
            id=id,
            name=declared.name,
            active=declared.version,
            newest=declared.version,
            state="active",
            declared=True,
            rule_sets=sets,
        )
    assert head is not None, "a rule is declared or was written"
    if state and state not in head.states:
        return None
    return RuleLine(
        id=id,
        name=head.name,
        active=head.active,
        newest=len(head.states),
        state=head.states[-1],
        declared=False,
        rule_sets=sets,
        problem=active.problems.get(f"rule/{id}", ""),
    )


# --- one rule ---------------------------------------------------------------------------------


class RuleParams(Params, kw_only=True):
    """Which version of a rule: by its number, by an instant, or the active one, else the newest."""

    id: KnownRule
    version: Version | None = None
    at: Annotated[Time | None, Meta(description="The version that was in force at this instant.")] = None


@not_personal
class RuleView(msgspec.Struct, kw_only=True):
    """One version of a rule, whole."""

    id: str
    version: int
    state: str
    declared: bool
    content: Annotated[dict[str, Any], Meta(description="All that its author wrote. It never changes.")]
    hash: Annotated[str, Meta(description="SHA-256 of the content as canonical JSON.")]
    created_at: Annotated[Instant | None, Meta(description="Null for what the definitions declare: see the log.")] = (
        None
    )
    created_by: By = ""
    since: Annotated[Instant | None, Meta(description="Since when it was in force at `at`.")] = None
    effective: Annotated[
        bool | None,
        Meta(description="Whether it counted at `at` by its own word, `effective_from` and `effective_until`."),
    ] = None


@operation("GET /v1/rules/{id}", RULES_GROUP, example=RuleParams(id="risk-score", at="2026-03-01T12:00:00Z"))
def show(context: Context, params: RuleParams) -> RuleView:
    """Show a version of a rule: the active one, one by its number, or the one in force at an instant."""
    declared = repository.active_rules_of(context).declared.get(params.id)
    head = repository.existing(context, params.id)
    at = time_param(params.at)
    if at is not None:
        force = in_force(context, params.id, at)
        if force is None:
            raise NotFound(f"no version of rule {params.id!r} was in force at {format_time(at)}")
        view = _view(context, params.id, force.version, head, declared, was_declared=force.declared)
        view.since = instant(force.since)
        view.effective = repository.compiled(view.content).is_effective(at)
        return view
    active = declared.version if declared is not None else head.active
    version = params.version or active or len(head.states)
    declares = declared is not None and declared.version == version
    was_declared = declares or not 1 <= version <= len(head.states)
    return _view(context, params.id, version, head, declared, was_declared=was_declared)


def _view(
    context: Context, id: str, version: int, head: Head, declared: Rule | None, *, was_declared: bool
) -> RuleView:
    if was_declared:
        rule = rule_at(context, id, version)
        state = "active" if declared is not None and declared.version == version else "retired"
        return RuleView(
            id=id,
            version=version,
            state=state,
            declared=True,
            content=rule.content,
            hash=rule.hash,
            created_by="definitions",
        )
    made = repository.written(context, id, version)
    return RuleView(
        id=id,
        version=version,
        state=head.states[version - 1],
        declared=False,
        content=made.content,
        hash=made.hash,
        created_at=instant(made.at),
        created_by=made.by,
    )


class VersionsParams(Page, kw_only=True):
    """Of which rule, and which page."""

    id: KnownRule


@key_fields("version", "state", "created_at", "created_by")
class VersionLine(msgspec.Struct, kw_only=True):
    """A version in a list."""

    version: int
    state: str
    hash: str
    created_at: Instant
    created_by: By


class VersionsPage(msgspec.Struct, kw_only=True):
    """Versions, oldest first."""

    id: str
    versions: list[VersionLine]
    next: Next = ""


@operation("GET /v1/rules/{id}/versions", RULES_GROUP, example=VersionsParams(id="risk-score"))
def versions(context: Context, params: VersionsParams) -> VersionsPage:
    """List the versions of a rule that were written, and the state of each."""
    head, after = _known(context, params.id), number_of(params.cursor)
    last = min(len(head.states), after + params.limit)
    lines = []
    for version in range(after + 1, last + 1):
        made = repository.written(context, params.id, version)
        lines.append(
            VersionLine(
                version=version,
                state=head.states[version - 1],
                hash=made.hash,
                created_at=instant(made.at),
                created_by=made.by,
            )
        )
    return VersionsPage(id=params.id, versions=lines, next=str(last) if last < len(head.states) else "")


def _known(context: Context, id: str) -> Head:
    head, _ = repository.stored_head(context, id)
    if not head.states:
        raise NotFound(f"no version of a rule {id!r} was written by an operation")
    return head


class LogParams(Page, kw_only=True):
    """Of which rule, and which page."""

    id: KnownRule


@not_personal
class LogLine(msgspec.Struct, kw_only=True):
    """The state of a version, since when, and by whom."""

    at: Instant
    by: By
    version: int
    to: Annotated[str, Meta(description="draft, tested, active or retired; declared or withdrawn by the definitions.")]
    note: str


class LogPage(msgspec.Struct, kw_only=True):
    """Turns, oldest first. Nothing is ever taken out of a log."""

    id: str
    log: list[LogLine]
    declared: Annotated[list[LogLine], Meta(description="Every change of the definitions to this rule.")]
    next: Next = ""


@operation("GET /v1/rules/{id}/log", RULES_GROUP, example=LogParams(id="risk-score"))
def log(context: Context, params: LogParams) -> LogPage:
    """Show the state of each version of a rule, since when, and by whom."""
    repository.existing(context, params.id)
    after = number_of(params.cursor)
    page = repository.log(context, params.id, after, params.limit)
    more = len(page) == params.limit
    return LogPage(
        id=params.id,
        log=[_log_line(entry) for entry in page],
        declared=_declared_lines(context, params.id),
        next=str(after + len(page)) if more else "",
    )


def _log_line(entry: Transition) -> LogLine:
    return LogLine(at=instant(entry.at), by=entry.by, version=entry.version, to=entry.to, note=entry.note)


def _declared_lines(context: Context, id: str) -> list[LogLine]:
    lines: list[LogLine] = []
    for at, version in context.engine.definition_history.transitions("rules", id):
        shown, to = (version, "declared") if version else (lines[-1].version if lines else 0, "withdrawn")
        lines.append(LogLine(at=instant(at), by="definitions", version=shown, to=to, note=""))
    return lines
