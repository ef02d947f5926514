"""How the OpenAPI document describes the addresses for actions in applications."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.reach.alerts.definition import SEVERITIES
from threadline.capabilities.reach.alerts.operations.person import AlertDismissResult, AlertsResult
from threadline.capabilities.reach.alerts.projection import ID_PATTERN
from threadline.surfaces.http.addresses.appaction import (
    ANONYMOUS_PATH,
    RANKING_PATH,
    USER_PATH,
    AppActionReceipt,
    WeighedValue,
)
from threadline.surfaces.http.addresses.appaction_body import AppAction, AppActionScope, TopicQuestion
from threadline.surfaces.http.addresses.user_alerts import ALERTS_PATH, DISMISS_PATH

APPACTION_TYPES: tuple[type, ...] = (
    AppAction,
    AppActionReceipt,
    TopicQuestion,
    WeighedValue,
    AlertsResult,
    AlertDismissResult,
)
"""What the descriptions refer to."""


def allow_null(schemas: dict[str, Any]) -> None:
    """Say of the bodies that a field which may be absent may also be null, as many clients write it."""
    for body in (AppAction, AppActionScope, TopicQuestion):
        schema = schemas[body.__name__]
        for name, field in schema["properties"].items():
            if name not in schema.get("required", ()) and {"type": "null"} not in field.get("anyOf", ()):
                # No default beside null: of a list or an object it would be one that generators of clients refuse.
                field.pop("default", None)
                about = {key: field.pop(key) for key in ("description",) if key in field}
                schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **about}


_ANONYMOUS = {
    "allOf": [
        {"$ref": "#/components/schemas/AppAction"},
        {"required": ["applicationId"], "properties": {"applicationId": {"type": "string", "minLength": 1}}},
    ]
}
_USER: list[dict[str, list[str]]] = [{"userToken": []}]
_ACTION = {
    "topic": "Article",
    "scopes": [{"topic": "category", "value": "shoes"}, {"topic": "article", "value": "trail-guide"}],
    "applicationId": "web",
    "actionId": "action-0001",
}


def _post(
    name: str,
    summary: str,
    more: str,
    security: list[dict[str, list[str]]],
    body: Any,
    example: Any,
    answer: Any,
    without: tuple[str, ...],
) -> dict[str, Any]:
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "tags": ["ux"],
            "description": more,
            "security": security,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": body, "example": example}},
            },
            "responses": {"200": {"description": "It is so.", "content": {"application/json": {"schema": answer}}}},
            "x-without": without,
        }
    }


def _ref(type: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{type.__name__}"}


APPACTION_PATHS: dict[str, dict[str, Any]] = {
    USER_PATH: _post(
        "user_action",
        "Record an action of the user whom the web token names.",
        "Names of fields count without regard to case; unknown ones are passed over.",
        _USER,
        _ref(AppAction),
        _ACTION,
        _ref(AppActionReceipt),
        ("403", "404", "409"),
    ),
    ANONYMOUS_PATH: _post(
        "anonymous_action",
        "Record an action of a visitor, by device or network address.",
        "Needs `applicationId`. New actions of one address are limited; a retry costs nothing.",
        [],
        _ANONYMOUS,
        _ACTION,
        _ref(AppActionReceipt),
        ("401", "404", "409"),
    ),
    RANKING_PATH: _post(
        "topic_value_frequency",
        "List the values of a topic that the user cares about most, first.",
        "With `includeWeights` an object for each value in place of the value alone.",
        _USER,
        _ref(TopicQuestion),
        {"topic": "Article", "scopeTopic": "category"},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, _ref(WeighedValue)]}},
        ("403", "404", "409", "429"),
    ),
    ALERTS_PATH: {
        "get": {
            "operationId": "user_alerts",
            "summary": "Show the alerts of the user whom the web token names.",
            "description": "Needs a user's web token.",
            "tags": ["ux"],
            "security": _USER,
            "parameters": [
                {
                    "name": "severity",
                    "in": "query",
                    "required": False,
                    "schema": {"enum": ["", *SEVERITIES]},
                    "description": "Only alerts of this severity.",
                    "example": "warning",
                },
                {
                    "name": "dismissed",
                    "in": "query",
                    "required": False,
                    "schema": {"type": "boolean"},
                    "description": "Show also those that the user has dismissed.",
                },
            ],
            "responses": {
                "200": {"description": "It is so.", "content": {"application/json": {"schema": _ref(AlertsResult)}}},
                "304": {"description": "What `If-None-Match` names is still the answer."},
            },
            "x-without": ("403", "404", "409", "413", "415", "429"),
        }
    },
    DISMISS_PATH: {
        "post": {
            "operationId": "user_alert_dismiss",
            "summary": "Dismiss an alert for the user whom the web token names.",
            "description": "Needs a user's web token; the alert is not shown to them again.",
            "tags": ["ux"],
            "security": _USER,
            "parameters": [
                {
                    "name": "alert",
                    "in": "path",
                    "required": True,
                    "example": "maintenance",
                    "schema": {"type": "string", "pattern": f"^{ID_PATTERN}$"},
                }
            ],
            "responses": {
                "200": {
                    "description": "It is so.",
                    "content": {"application/json": {"schema": _ref(AlertDismissResult)}},
                }
            },
            "x-without": ("403", "413", "415", "429"),
        }
    },
}
"""Path -> method -> description."""
