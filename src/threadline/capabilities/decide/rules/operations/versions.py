"""The life of a rule by operations: written as a draft, tested, activated, retired."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import repository, what_if_gate
from threadline.capabilities.decide.rules.definition import RuleSet, set_of_json
from threadline.capabilities.decide.rules.document_import import content_of
from threadline.capabilities.decide.rules.lifecycle import State
from threadline.capabilities.decide.rules.operations import RULES_GROUP
from threadline.capabilities.decide.rules.operations.rules import KnownRule, RuleId, Version
from threadline.capabilities.decide.rules.repository import Head
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.operation import Context, Params, operation

Note = Annotated[str, Meta(description="Why, in the words of the caller; kept in the log.", max_length=1_000)]

EXAMPLE_RULE = {
    "name": "Risk scoring",
    "priority": 50,
    "conditions": {"field": "event.properties.score", "greater_than": 80},
    "actions": [{"store_decision": {"result": "reject", "reason": "score ${event.properties.score} > 80"}}],
}


class WriteParams(Params, kw_only=True):
    """What a rule is to say."""

    id: RuleId
    rule: Annotated[
        dict[str, Any], Meta(description="Its content, as in the definitions, without `version`. See docs/rules.md.")
    ]
    events: Annotated[
        list[str],
        Meta(
            description="Event types on which it runs: they become a rule set with the name of the rule. Refused where "
            "other sets name the rule; without it the rule runs where sets name it."
        ),
    ] = []
    expected: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The newest version that you know of, 0 for none; refused if another is the newest."),
    ] = None


class WriteResult(msgspec.Struct, kw_only=True):
    """The version that says it."""

    id: str
    version: int
    created: Annotated[bool, Meta(description="False: the newest version already has this content.")]
    state: State
    hash: str


@operation(
    "POST /v1/rules/{id}/versions",
    RULES_GROUP,
    done=("Wrote a version of the rule {id}",),
    scope="admin",
    example=WriteParams(id="risk-score", rule=EXAMPLE_RULE, events=["application_received"]),
)
def write(context: Context, params: WriteParams) -> WriteResult:
    """Write a rule, or a new version of it, as a draft. A version never changes."""
    rule_set = _own_set(context, params) if params.events else None
    content = content_of(params.id, params.rule, "rule")
    version, made, created = repository.write(context, params.id, content, params.expected)
    if rule_set is not None:
        # After the rule: a set that names no rule yet would be one more thing to take back where the rule is refused.
        repository.change_set(context, rule_set.name, rule_set)
    head, _ = repository.stored_head(context, params.id)
    return WriteResult(id=params.id, version=version, created=created, state=head.states[version - 1], hash=made.hash)


def _own_set(context: Context, params: WriteParams) -> RuleSet:
    """The set with the name of the rule, which runs it alone; with what else it says already."""
    active = repository.active_rules_of(context)
    own = active.sets.get(params.id)
    others = [other.name for other in active.sets_of(params.id) if other is not own]
    if own is not None and (own.rules != (params.id,) or own.name in active.declared_sets):
        others.append(own.name)
    if others:
        raise Conflict(
            f"events: rule {params.id!r} runs by the rule set {', '.join(map(repr, others))}",
            hint="Change the events of that set, or leave `events` out.",
        )
    before = {} if own is None else {name: value for name, value in own.content.items() if name != "name"}
    return set_of_json(params.id, {**before, "events": params.events, "rules": [params.id]})


class MoveParams(Params, kw_only=True):
    """Which version."""

    id: KnownRule
    version: Version
    note: Note = ""


class ActivateParams(Params, kw_only=True):
    """Which version is to be the active one."""

    id: KnownRule
    version: Version
    note: Note = ""
    untested: Annotated[bool, Meta(description="Activate a draft that nobody has tested.")] = False
    changed_max: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Refuse unless a saved what-if of exactly this version, against the one that is active, had no "
            "errors and changed no larger share of its answers than this."
        ),
    ] = None
    seen: Annotated[
        str,
        Meta(
            description="The id of the saved what-if that was looked at before activating. Refuse unless it is the "
            "newest of exactly this version, against the one that is active, of everybody and without errors.",
            max_length=64,
        ),
    ] = ""


class RetireParams(Params, kw_only=True):
    """Which version is to count no more."""

    id: KnownRule
    version: Annotated[Version | None, Meta(description="The active one if it is left out.")] = None
    note: Note = ""


class MoveResult(msgspec.Struct, kw_only=True):
    """The state of the rule after it."""

    id: str
    version: int
    state: State
    active: Annotated[int, Meta(description="The active version; 0 if there is none.")]


def _moved(
    context: Context, params: MoveParams | ActivateParams | RetireParams, version: int, to: State, **how: Any
) -> MoveResult:
    head = repository.move(context, params.id, version, to, params.note, **how)
    return MoveResult(id=params.id, version=version, state=head.states[version - 1], active=head.active)


def _bound(context: Context, asked: float | None = None) -> float | None:
    """The largest share of answers that may change; None: no what-if is required."""
    bounds = [share for share in (asked, context.engine.simulations.activation_changed_max) if share is not None]
    return min(bounds, default=None)


class GateParams(Params, kw_only=True):
    """Which version."""

    id: KnownRule
    version: Version


class GateResult(msgspec.Struct, kw_only=True):
    """What speaks for an activation, and what against it."""

    id: str
    version: int
    state: State
    active: Annotated[int, Meta(description="The version that is active now; 0 if there is none.")]
    open: Annotated[
        bool, Meta(description="Whether the newest what-if of exactly this version lets it be activated with `seen`.")
    ]
    problem: Annotated[str, Meta(description="What is missing where it does not.")] = ""
    hint: str = ""
    what_if: Annotated[str, Meta(description="The newest saved what-if of this version; empty if there is none.")] = ""
    asked: Annotated[int, Meta(description="Events of which it asked the rule.")] = 0
    changed: Annotated[int, Meta(description="Answers that would be others.")] = 0
    required: Annotated[bool, Meta(description="Whether a setting requires one of every activation.")] = False


@operation(
    "POST /v1/rules/{id}/tested",
    RULES_GROUP,
    done=("Marked version {version} of the rule {id} as tested",),
    scope="admin",
    example=MoveParams(id="risk-score", version=4, note="tried on the history of March"),
)
def tested(context: Context, params: MoveParams) -> MoveResult:
    """Mark a version as tested, so that it can be activated."""
    return _moved(context, params, params.version, "tested")


@operation("GET /v1/rules/{id}/versions/{version}/gate", RULES_GROUP, example=GateParams(id="risk-score", version=4))
def gate(context: Context, params: GateParams) -> GateResult:
    """Show whether the newest what-if of a version allows its activation."""
    head = repository.existing(context, params.id)
    hash = repository.written(context, params.id, params.version).hash
    bound = _bound(context)
    saved = what_if_gate.newest(context, params.id, params.version)
    result = GateResult(
        id=params.id,
        version=params.version,
        state=head.states[params.version - 1],
        active=head.active,
        open=True,
        required=bound is not None,
    )
    if saved is not None:
        result.what_if, result.asked, result.changed = saved.id, saved.about.asked, saved.about.changed
    try:
        what_if_gate.refuse_untried(context, params.id, params.version, hash, head.active, bound, seen=result.what_if)
    except Conflict as error:
        result.open, result.problem, result.hint = False, str(error), error.hint
    return result


@operation(
    "POST /v1/rules/{id}/activate",
    RULES_GROUP,
    done=("Activated version {version} of the rule {id}",),
    scope="admin",
    guarded=lambda params: "" if params.seen else "an operator activates by the what-if that was seen (`seen`)",
    example=ActivateParams(id="risk-score", version=4),
)
def activate(context: Context, params: ActivateParams) -> MoveResult:
    """Activate a version of a rule; the one active before is retired in the same commit."""
    bound = _bound(context, params.changed_max)

    def gate(head: Head) -> None:
        if bound is not None or params.seen:
            hash = repository.written(context, params.id, params.version).hash
            what_if_gate.refuse_untried(context, params.id, params.version, hash, head.active, bound, seen=params.seen)

    return _moved(context, params, params.version, "active", untested=params.untested, gate=gate)


@operation(
    "POST /v1/rules/{id}/retire",
    RULES_GROUP,
    done=("Retired version {version} of the rule {id}", "Retired the rule {id}"),
    scope="admin",
    example=RetireParams(id="risk-score", note="replaced by the scoring model"),
)
def retire(context: Context, params: RetireParams) -> MoveResult:
    """Retire a version of a rule, so that it no longer counts."""
    version = params.version or repository.stored_head(context, params.id).document.active
    if not version:
        raise NotFound(f"no version of rule {params.id!r} is active")
    return _moved(context, params, version, "retired")
