"""The JSON Schema of the section ``identifiers``, for editors that complete and check while you type."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.people.definition import PRIORITY_MAX
from threadline.kernel.identity import FORMS
from threadline.kernel.limits import IDENTIFIER_KIND_LENGTH_MAX, THREADS_PER_PERSON_MAX
from threadline.kernel.section import Section


def _schema() -> dict[str, Any]:
    kind = {
        "type": "object",
        "properties": {
            "priority": {
                "type": "integer", "minimum": 0, "maximum": PRIORITY_MAX, "default": 50,
                "description": "The lowest decides whose thread an event with several identifiers is kept in.",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": THREADS_PER_PERSON_MAX, "default": 5,
                "description": "How many of this kind one person may have.",
            },
            "normalise": {"enum": list(FORMS), "default": "strip"},
            "identifying": {"type": "boolean", "default": True, "description": "Whether it finds and joins people."},
            "joins": {
                "type": "boolean", "default": True,
                "description": "False: it finds people only where nothing else in an event does, so it joins nobody.",
            },
            "shared": {"type": "boolean", "default": False, "description": "One human in every workspace."},
        },
        "additionalProperties": False,
    }  # fmt: skip
    texts = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
    named = {"type": "array", "items": {"type": "string", "pattern": "^[^:]+:.+$"}, "examples": [["email:info@a.com"]]}
    return {
        "type": "object",
        "description": "What identifies people: kinds by name, values that name nobody, identifiers that are shared.",
        "properties": {"junk": texts, "blocked": named},
        "propertyNames": {"pattern": f"^[^:]{{1,{IDENTIFIER_KIND_LENGTH_MAX}}}$"},
        "additionalProperties": kind,
    }


IDENTIFIERS_SECTION = Section("identifiers", _schema())
