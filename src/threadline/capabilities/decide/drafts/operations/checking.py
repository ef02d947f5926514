"""Checking a definition while it is written: every mistake with its line and column, as `threadline check` finds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import DraftProblem, Text, read_draft, shown
from threadline.capabilities.decide.drafts.sections import ASIDE, SectionName
from threadline.capabilities.decide.drafts.warned import warnings
from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.declared import in_no_set
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.document import DRAFT
from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.kernel.operation import Context, Params, always, operation


class CheckParams(Params, kw_only=True):
    """What is checked."""

    text: Text
    section: Annotated[
        SectionName | None, Meta(description="The section to which a single definition belongs, such as `segments`.")
    ] = None
    name: Annotated[str, Meta(description="The name of a single definition.", max_length=200)] = ""


class CheckResult(msgspec.Struct, kw_only=True):
    """What is wrong with it beside everything in force. Nothing was changed."""

    valid: Annotated[bool, Meta(description="Whether it could be put in force as it is.")]
    problems: list[DraftProblem]
    warnings: Annotated[list[DraftProblem], Meta(description="What is no mistake and yet hardly meant.")]
    defines: Annotated[dict[str, list[str]], Meta(description="Section -> the names that the text declares.")]


@operation(
    "POST /v1/definitions/check",
    DEFINITIONS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    example=CheckParams(
        section="segments", name="big_spenders", text="when: {field: features.monetary_total, greater_than: 500}"
    ),
    needs=(("name", "section"),),
    audited=False,
)
def check(context: Context, params: CheckParams) -> CheckResult:
    """Check a definition, or a file of them, beside everything in force; nothing is changed."""
    read = read_draft(context, params.text, params.section or "", params.name)
    definitions = read.definitions
    problems = shown(params.text, read.problems)
    warned = [] if read.catalogue is None else list(_warned(context, read.catalogue.definitions))
    return CheckResult(
        valid=not problems,
        problems=problems,
        warnings=shown(params.text, definitions.in_order(warned)),
        defines=definitions.declared_in(DRAFT),
    )


def _warned(context: Context, definitions: object) -> Iterator[str]:
    """The warnings of the text itself."""
    assert isinstance(definitions, Definitions), "it was made of a draft"
    active = repository.active_rules_of(context)
    named = {in_no_set(rule) for rule_set in active.sets.values() for rule in rule_set.rules}
    for warning in warnings(context.engine.catalogue, definitions, None):
        # A set that was written by an operation stands in no file.
        if str(warning).startswith(f"{DRAFT}:") and warning.message not in named:
            yield str(warning)
    for name in ASIDE:
        for section in definitions.section(name):
            if section.document.name == DRAFT:
                place = section.document.place(section.key)
                yield f"{place}: section {name!r} is read at a start only; check it with `threadline check`"
