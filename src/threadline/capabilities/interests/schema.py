"""The JSON Schema of the section in which interests are declared."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.interests.definition import CAP_MAX, SHIPPED
from threadline.capabilities.interests.lengths import SCOPE_LENGTH_MAX, TOPIC_LENGTH_MAX
from threadline.capabilities.interests.loading import COUNTINGS, MODES
from threadline.kernel.section import Section

_DURATION: dict[str, Any] = {"type": "string", "pattern": "^([0-9]{1,9}(us|ms|s|m|h|d|w|y))+$"}
_FIELD: dict[str, Any] = {"type": "string", "minLength": 1}
_TOPIC: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": TOPIC_LENGTH_MAX}
_RULES: dict[str, Any] = {
    "mode": {"enum": list(MODES), "default": "periods", "description": "How actions of the past are weighed."},
    "period": {**_DURATION, "default": "30d", "description": "The length of a period, whole days."},
    "half_life": {**_DURATION, "default": "30d", "description": "After how long an action counts half (mode decay)."},
    "counting": {"enum": list(COUNTINGS), "default": "every", "description": "Which actions count."},
    "most": {"type": "integer", "minimum": 1, "maximum": CAP_MAX, "description": "For capped: how many per window."},
    "window": {**_DURATION, "default": "1d", "description": "For capped and unique: 10m to 28d."},
}
_SOURCE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "topic": {**_TOPIC, "description": "The topic of every such event."},
        "topic_from": {**_FIELD, "description": "The property that holds the topic."},
        "scopes": {
            "type": "object",
            "description": "Scope -> the property that holds its value, or a list of values.",
            "propertyNames": {"minLength": 1, "maxLength": SCOPE_LENGTH_MAX},
            "additionalProperties": _FIELD,
        },
        "application_from": {**_FIELD, "description": "The property that holds the application's id."},
    },
    "oneOf": [{"required": ["topic"]}, {"required": ["topic_from"]}],
    "additionalProperties": False,
}

INTERESTS_SECTION = Section(
    "interests",
    {
        "type": "object",
        "description": "How topics are counted and scored, and which events tell an interest.",
        "properties": {
            **_RULES,
            "topics": {
                "type": "object",
                "description": "Topic -> what differs from the above.",
                "propertyNames": _TOPIC,
                "additionalProperties": {"type": "object", "properties": _RULES, "additionalProperties": False},
            },
            "events": {
                "type": "object",
                "description": "Event type -> its topic and scopes; false leaves out one that ships.",
                "properties": {type: {"oneOf": [{"const": False}, _SOURCE]} for type in SHIPPED},
                "additionalProperties": _SOURCE,
            },
        },
        "additionalProperties": False,
    },
)
