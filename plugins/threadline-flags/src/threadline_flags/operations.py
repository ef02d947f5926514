"""Flags as callers see them: what is declared, what somebody gets, and what another declaration would change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, sample
from threadline.kernel.disclosure import FREE, NOT_PERSONAL, not_personal
from threadline.kernel.errors import InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.operation import JSON_TEXT, Context, Group, NoParams, Operation, always, shaped_operation
from threadline_flags.definition import FLAGS, Flag
from threadline_flags.evaluating import evaluate
from threadline_flags.showing import subject_for

FLAGS_GROUP = Group("flags", "Feature flags: who is shown what.")
PAGE = 200
"""People between two looks at the clock."""


@not_personal
class FlagView(msgspec.Struct, kw_only=True):
    """A flag as it is declared."""

    name: str
    description: str
    enabled: bool
    variants: Annotated[dict[str, Any], Meta(description="Variant -> its value."), NOT_PERSONAL]
    otherwise: Annotated[str, Meta(description="The variant of whom no rule speaks of.")]
    rules: Annotated[list[dict[str, Any]], Meta(description="As they are asked, in order."), NOT_PERSONAL]


class FlagList(msgspec.Struct, kw_only=True):
    """All flags, by name."""

    flags: list[FlagView]


class FlagsOfParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who it is about."""

    id: PersonRef


@not_personal
class FlagGiven(msgspec.Struct, kw_only=True):
    """What a flag gives somebody now."""

    flag: str
    variant: str
    value: Annotated[Any, NOT_PERSONAL]
    reason: Annotated[str, Meta(description="STATIC, TARGETING_MATCH, SPLIT, DEFAULT or DISABLED.")]


class FlagsOfResult(msgspec.Struct, kw_only=True):
    """Every flag for one person. It is no exposure."""

    person: str
    flags: list[FlagGiven]


class WhatIfParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which flag, and how it would be declared."""

    name: Annotated[
        str, Meta(description="The flag; one that is not declared yet may be tried as well.", max_length=100)
    ]
    flag: Annotated[str, Meta(description="The flag as it would be declared, as JSON.", max_length=100_000), JSON_TEXT]
    seconds: Annotated[int, Meta(description="How long to look at people at most.", ge=1, le=30)] = 2


@not_personal
class Change(msgspec.Struct, kw_only=True):
    """People who would get another variant."""

    before: Annotated[str, Meta(description="Empty: the flag is not declared.")]
    after: str
    people: Estimate


class WhatIfResult(msgspec.Struct, kw_only=True):
    """How people would be spread over the variants. Nothing is recorded."""

    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at.")]
    before: Annotated[dict[str, Estimate], Meta(description="Variant -> people, as it is declared."), FREE]
    after: Annotated[dict[str, Estimate], Meta(description="Variant -> people, as it would be."), FREE]
    changes: list[Change]


def operations(flags: Mapping[str, Flag]) -> list[Operation]:
    """The operations on these flags."""
    return [list_(flags), of(flags), what_if(flags)]


@shaped_operation("GET /v1/flags", FLAGS_GROUP, example=NoParams(), tool="list_definitions flags")
def list_(flags: Mapping[str, Flag], context: Context, params: NoParams) -> FlagList:
    """List the feature flags with their variants and rules."""
    return FlagList(
        flags=[
            FlagView(
                name=name,
                description=flag.description,
                enabled=flag.enabled,
                variants=flag.variants,
                otherwise=flag.otherwise,
                rules=[
                    ({} if rule.conditions is None else {"when": rule.conditions.plain})
                    | ({"split": rule.split} if rule.split else {"variant": rule.variant})
                    for rule in flag.rules
                ],
            )
            for name, flag in flags.items()
        ]
    )


@shaped_operation(
    "GET /v1/people/{id}/flags", FLAGS_GROUP, example=FlagsOfParams(id="ada"), tool="tell_about_person flags"
)
def of(flags: Mapping[str, Flag], context: Context, params: FlagsOfParams) -> FlagsOfResult:
    """Show which variant of each flag a person gets now."""
    person = context.engine.reader.person(context.workspace, params.id)
    key = _targeting_key(person)
    subject = subject_for(context.engine, person, key, context.now)
    given = {name: evaluate(flag, subject, key) for name, flag in flags.items()}
    return FlagsOfResult(
        person=person.id, flags=[FlagGiven(flag=name, **each._asdict()) for name, each in given.items()]
    )


@shaped_operation(
    "POST /v1/flags/{name}/what-if",
    FLAGS_GROUP,
    is_long=always,
    tool="try_rule flag",
    example=WhatIfParams(name="new_checkout", flag='{"variants": {"on": true, "off": false}, "otherwise": "off"}'),
)
def what_if(flags: Mapping[str, Flag], context: Context, params: WhatIfParams) -> WhatIfResult:
    """Count who would get another variant by another flag."""
    try:
        proposed = FLAGS.read_json(params.name, msgspec.json.decode(params.flag), "flag")
        context.engine.catalogue.refuse_unread(proposed.reads)
    except msgspec.DecodeError as error:
        raise InvalidValue(f"flag: {error}", param="flag") from None
    except InvalidDefinition as error:
        raise InvalidValue(f"flag: {error}", param="flag") from None
    declared, counts = flags.get(params.name), Counter[tuple[str, str]]()
    deadline, after, read = Deadline(context, params.seconds), "", 0
    while True:
        page, after = context.engine.reader.people(context.workspace, after, PAGE)
        for person in page:
            key = _targeting_key(person)
            subject = subject_for(context.engine, person, key, context.now)
            before = "" if declared is None else evaluate(declared, subject, key).variant
            counts[before, evaluate(proposed, subject, key).variant] += 1
        read += len(page)
        if not after or deadline.is_over:
            break
    looked_at = sample(read, after)
    sides = [Counter[str](), Counter[str]()]
    for pair, people in counts.items():
        for side, variant in zip(sides, pair, strict=True):
            side[variant] += people
    return WhatIfResult(
        people_read=read,
        exact=not after,
        before={} if declared is None else {name: looked_at.estimate(n) for name, n in sorted(sides[0].items())},
        after={name: looked_at.estimate(n) for name, n in sorted(sides[1].items())},
        changes=[
            Change(before=before, after=to, people=looked_at.estimate(people))
            for (before, to), people in sorted(counts.items())
            if before != to
        ],
    )


def _targeting_key(person: Any) -> str:
    """The key that programs have for somebody: a user id, else the first identifier, as the protocol takes it."""
    known = sorted(person.identifiers.values(), key=lambda one: (one.kind != "user_id", one.kind, one.value))
    if not known:
        raise NotFound("nobody is known under an identifier")
    return known[0].value if known[0].kind == "user_id" else f"{known[0].kind}:{known[0].value}"
