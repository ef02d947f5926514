"""A definition as it is written, for whoever is to change it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.decide.drafts.sections import Name, SectionName, keys_of
from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.kernel.errors import NotFound
from threadline.kernel.operation import Context, Params, operation


class ShowParams(Params, kw_only=True):
    """Which definition."""

    section: SectionName
    name: Name


class DefinitionText(msgspec.Struct, kw_only=True):
    """A definition in force."""

    section: str
    name: str
    text: Annotated[str, Meta(description="What stands under its name in a file of definitions, with comments.")]
    file: Annotated[str, Meta(description="File and line that declare it; empty: it is made by hand.")] = ""


@operation(
    "GET /v1/definitions/{section}/{name}",
    DEFINITIONS_GROUP,
    example=ShowParams(section="segments", name="good_customers"),
)
def show(context: Context, params: ShowParams) -> DefinitionText:
    """Show a definition in force as it is written."""
    written = in_force(context.engine.catalogue).written(keys_of(context.engine.catalogue, params.section, params.name))
    if written is None:
        hint = "what ships with Threadline, and rules that were written by an operation, stand in no file"
        raise NotFound(f"no file declares {params.section} {params.name[:64]!r}", hint=hint)
    return DefinitionText(section=params.section, name=params.name, text=written.text, file=written.file)
