"""Facts as variables for a text."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.profile.memory.operations import MEMORY_GROUP
from threadline.capabilities.profile.memory.operations.facts import memory_of
from threadline.capabilities.profile.memory.variables import resolve
from threadline.kernel.disclosure import FREE, NOT_PERSONAL
from threadline.kernel.errors import InvalidValue
from threadline.kernel.lists import comma_separated
from threadline.kernel.operation import Context, Params, operation


class VariablesParams(Params, kw_only=True):
    """Whose facts, and the variables of a template."""

    id: PersonRef
    names: Annotated[str, Meta(description="Variables as type.key.path, separated by commas.", max_length=10_000)] = ""
    variables: Annotated[
        list[str],
        Meta(description="Variables, each taken literally, with any commas in it.", max_length=1_000),
    ] = []


class VariablesResult(msgspec.Struct, kw_only=True):
    """Values for a template."""

    person: str
    values: Annotated[dict[str, Any], Meta(description="Variable -> value; null for one without a value."), FREE]
    missing: Annotated[list[str], Meta(description="The variables without a value."), NOT_PERSONAL]


@operation(
    "GET /v1/people/{id}/variables",
    MEMORY_GROUP,
    example=VariablesParams(id="user_id:42", names="purchase.last_transaction.product_name"),
)
def variables(context: Context, params: VariablesParams) -> VariablesResult:
    """Resolve template variables, such as purchase.last_transaction.product_name."""
    names = list(dict.fromkeys([*comma_separated(params.names), *params.variables]))
    if not names:
        raise InvalidValue(
            "name the variables: in `names`, separated by commas, or one by one in `variables`", param="names"
        )
    person = context.engine.reader.person(context.workspace, params.id)
    facts = memory_of(context, person)
    values = {name: resolve(facts, name) for name in names}
    return VariablesResult(person=person.id, values=values, missing=[name for name in names if values[name] is None])
