"""Sets of rules as callers write and read them: which rules are asked of which events."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.definition import EXISTING, RuleSet, set_of_json
from threadline.capabilities.decide.rules.operations import RULE_SETS_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, NoParams, Params, operation

SetName = Annotated[str, Meta(description="A rule set's name.", min_length=1, max_length=64)]


@key_fields("name", "events", "rules", "policy")
@not_personal
class SetView(msgspec.Struct, kw_only=True):
    """A set of rules in force."""

    name: str
    description: str
    events: Annotated[list[str], Meta(description="The event types on which its rules run.")]
    rules: Annotated[list[str], Meta(description="The rules it names, in the order in which they run.")]
    absent: Annotated[list[str], Meta(description="Those it names of which no version is active.")]
    policy: Literal["all", "first"]
    record: Literal["matched", "all"]
    existing: Annotated[bool, Meta(description=EXISTING)]
    historical: Annotated[bool, Meta(description="The same, under its older name.")]
    declared: Annotated[bool, Meta(description="Whether the definitions declare it; then no operation changes it.")]


class SetsResult(msgspec.Struct, kw_only=True):
    """All sets by name."""

    rule_sets: list[SetView]


@operation("GET /v1/rule-sets", RULE_SETS_GROUP)
def list_(context: Context, params: NoParams) -> SetsResult:
    """List the rule sets: which rules run on which events, in which order."""
    active = repository.active_rules_of(context)
    shown = []
    for rule_set in active.sets.values():
        rules = [rule.id for rule in active.ordered(rule_set.name).rules]
        absent = [id for id in rule_set.rules if id not in active.rules]
        declared = rule_set.name in active.declared_sets
        shown.append(
            SetView(
                **{**rule_set.content, "rules": rules},
                existing=rule_set.takes_existing,
                absent=absent,
                declared=declared,
            )
        )
    return SetsResult(rule_sets=shown)


class SetWriteParams(Params, kw_only=True):
    """What a set is to be."""

    name: SetName
    events: Annotated[list[str], Meta(description="Event types.")]
    rules: Annotated[
        list[str],
        Meta(description="Ids of rules; one without an active version runs once it has one."),
    ]
    policy: Annotated[Literal["all", "first"], Meta(description="first: stop at the first rule that matches.")] = "all"
    record: Annotated[
        Literal["matched", "all"], Meta(description="all: a decision also for each rule that does not match.")
    ] = "matched"
    existing: Annotated[bool, Meta(description=EXISTING)] = False
    historical: Annotated[bool, Meta(description="An older name of `existing`.")] = False
    description: Annotated[str, Meta(max_length=2_000)] = ""


@not_personal
class SetWriteResult(msgspec.Struct, kw_only=True):
    """The outcome."""

    name: str
    changed: Annotated[bool, Meta(description="False: it was so already.")]


@operation(
    "POST /v1/rule-sets/{name}",
    RULE_SETS_GROUP,
    done=("Wrote the rule set {name}",),
    scope="admin",
    example=SetWriteParams(name="applications", events=["payment_received"], rules=["risk-score"], policy="first"),
)
def write(context: Context, params: SetWriteParams) -> SetWriteResult:
    """Write a rule set. It is in force at once, and its log has every change."""
    content = {name: value for name, value in msgspec.to_builtins(params).items() if name != "name"}
    rule_set: RuleSet = set_of_json(params.name, content)
    return SetWriteResult(name=params.name, changed=repository.change_set(context, params.name, rule_set))


class SetRemoveParams(Params, kw_only=True):
    """Which set."""

    name: Annotated[SetName, names_a("rule set")]


@operation(
    "DELETE /v1/rule-sets/{name}",
    RULE_SETS_GROUP,
    done=("Removed the rule set {name}",),
    scope="admin",
    example=SetRemoveParams(name="applications"),
)
def remove(context: Context, params: SetRemoveParams) -> SetWriteResult:
    """Remove a rule set: its rules no longer run, unless another set names them."""
    if params.name not in repository.active_rules_of(context).sets:
        raise NotFound(f"there is no rule set {params.name!r}")
    return SetWriteResult(name=params.name, changed=repository.change_set(context, params.name, None))
