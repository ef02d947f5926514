"""Resources: the glossary, schemas and definitions, by address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from threadline.kernel.errors import NotFound
from threadline.surfaces.mcp.calling import Calls
from threadline.surfaces.mcp.tool import Caller

GLOSSARY = "threadline://glossary"
_JSON = "application/json"


class Resource(NamedTuple):
    """An address whose content an operation gives; names in braces are its parameters."""

    uri: str
    title: str
    description: str
    operation: str


RESOURCES = (
    Resource(
        "threadline://catalogue", "Catalogue", "What is in force: projections, policies, operations.", "catalogue"
    ),
    Resource("threadline://schemas/definitions", "Schema", "JSON Schema of definition files.", "definitions_schema"),
    *(
        Resource(f"threadline://definitions/{kind}", kind.replace("_", " ").capitalize(), description, operation)
        for kind, operation, description in (
            ("rules", "rules_list", "Rules and their versions."),
            ("rule_sets", "rule_sets_list", "Which rules run on which events."),
            ("segments", "segments_list", "Segments and what each is made of."),
            ("features", "features_list", "Features and what each is made of."),
            ("journeys", "journeys_list", "Journeys."),
            ("templates", "mail_templates", "Mail templates."),
            ("facts", "memory_definitions", "Which facts are derived, and from what."),
            ("leaderboards", "leaderboards_list", "Leaderboards."),
        )
    ),
)
TEMPLATES = (
    Resource("threadline://definitions/rules/{id}", "Rule", "A rule, its active version.", "rules_show"),
    Resource("threadline://definitions/journeys/{name}", "Journey", "A journey, drawn.", "journeys_show"),
    Resource("threadline://definitions/templates/{template}", "Mail template", "How it is written.", "mail_template"),
)


def listed(calls: Calls) -> list[dict[str, Any]]:
    """Those with a fixed address whose operation is in force."""
    glossary = {
        "uri": GLOSSARY,
        "name": "glossary",
        "title": "Glossary",
        "mimeType": "text/markdown",
        "description": "What words mean here, and the forms of ids, instants and conditions. Read it first.",
    }
    there = (resource for resource in RESOURCES if calls.reads(resource.operation))
    return [glossary, *({"uri": resource.uri, **_described(resource)} for resource in there)]


def templates(calls: Calls) -> list[dict[str, Any]]:
    """The same of those with a name in their address."""
    there = (resource for resource in TEMPLATES if calls.reads(resource.operation))
    return [{"uriTemplate": resource.uri, **_described(resource)} for resource in there]


def read(uri: str, calls: Calls, caller: Caller) -> dict[str, Any]:
    """The content of an address. Raises `NotFound`, and what its operation raises."""
    if uri == GLOSSARY:
        text = files("threadline.surfaces.mcp").joinpath("glossary.md").read_text(encoding="utf-8")
        return {"uri": uri, "mimeType": "text/markdown", "text": text}
    for resource in (*RESOURCES, *TEMPLATES):
        if (names := _match(resource.uri, uri)) is not None:
            answer = calls.read(resource.operation, names, caller)
            return {"uri": uri, "mimeType": _JSON, "text": msgspec.json.encode(answer).decode()}
    raise NotFound(f"there is no resource {uri[:200]!r}")


def _described(resource: Resource) -> dict[str, Any]:
    return {
        "name": resource.uri.removeprefix("threadline://"),
        "title": resource.title,
        "description": resource.description,
        "mimeType": _JSON,
    }


def _match(pattern: str, uri: str) -> Mapping[str, str] | None:
    matched = re.fullmatch(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(pattern)), uri)
    return None if matched is None else {name: unquote(value) for name, value in matched.groupdict().items()}
