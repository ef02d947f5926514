"""The JSON Schema of a file of definitions, put together from all sections, and the operation that gives it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from threadline.kernel.disclosure import NOT_PERSONAL
from threadline.kernel.operation import Context, Group, NoParams, operation
from threadline.kernel.section import Section

DEFINITIONS_GROUP = Group("definitions", "Definition files: their form, and putting changes in force.")


def schema(sections: Iterable[Section]) -> dict[str, Any]:
    """JSON Schema 2020-12 of a file of definitions that has no other sections than these."""
    properties: dict[str, Any] = {}
    defs: dict[str, Any] = {}
    for section in sections:
        properties[section.name] = dict(section.schema)
        defs.update(section.defs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Threadline definitions",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": defs,
    }


@operation("GET /v1/definitions/schema", DEFINITIONS_GROUP)
def schema_(context: Context, params: NoParams) -> Annotated[dict[str, Any], NOT_PERSONAL]:
    """Give the JSON Schema of definition files, for editors that check while you type."""
    return schema(context.engine.catalogue.sections)
