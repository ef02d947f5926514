"""How the OpenAPI document describes the addresses of Segment and CloudEvents."""

from __future__ import annotations

from typing import Any

from threadline.surfaces.http.addresses.browser_settings import RUDDERSTACK, SEGMENT
from threadline.surfaces.http.events.ingest import (
    CLOUDEVENTS_PATH,
    SEGMENT_BATCHES,
    SEGMENT_LETTERS,
    segment_paths,
)

_ANSWER = {
    "success": True,
    "accepted": 1,
    "duplicates": 0,
    "conflicts": 0,
    "rejected": [{"index": 1, "messageId": "m-2", "code": "no_event_name", "message": "a track call needs `event`"}],
}
_OUTCOME = {"$ref": "#/components/schemas/Outcome"}
RECORDED = "Recorded"
RECORDED_RESPONSE = {
    "description": "The outcome of each message.",
    "content": {"application/json": {"schema": _OUTCOME, "example": _ANSWER}},
}
"""The answer of every address to which events are sent, written once."""
_SENDERS: list[dict[str, list[str]]] = [{"writeKey": []}, {"token": []}]
_WITHOUT = ("404", "409")

# Types are not told on purpose: a message that is wrong in itself is an outcome in the answer, not a refused request.
_FIELDS: dict[str, Any] = {
    "messageId": {"description": "The idempotency key: the same one again is a duplicate and changes nothing."},
    "userId": {"description": "Who did it; this or anonymousId is needed."},
    "anonymousId": {"description": "A device or session, where nobody has signed in."},
    "timestamp": {"description": "When it happened, RFC 3339; the time of receipt if it is not given."},
    "context": {"description": "Where it happened: page, campaign, timezone, library …"},
    "writeKey": {"description": "The write key, where the client cannot send headers."},
}
_OWN: dict[str, dict[str, Any]] = {
    "identify": {"traits": {"description": "What is true of the person; null removes a trait."}},
    "track": {"event": {"description": "What was done."}, "properties": {"description": "What is true of the event."}},
    "page": {"name": {"description": "The page."}, "properties": {"description": "url, path, referrer, title …"}},
    "screen": {"name": {"description": "The screen."}, "properties": {"description": "What is true of it."}},
    "group": {"groupId": {"description": "The group."}, "traits": {"description": "What is true of the group."}},
    "alias": {"previousId": {"description": "What the person was called before."}},
}
_EXAMPLES: dict[str, dict[str, Any]] = {
    "identify": {"userId": "42", "traits": {"email": "ana@example.com", "plan": "pro"}},
    "track": {"userId": "42", "event": "Order Completed", "properties": {"total": 29.33, "currency": "EUR"}},
    "page": {"anonymousId": "a-1", "name": "Pricing", "properties": {"path": "/pricing"}},
    "screen": {"anonymousId": "a-1", "name": "Home"},
    "group": {"userId": "42", "groupId": "acme", "traits": {"name": "Acme"}},
    "alias": {"userId": "42", "previousId": "a-1"},
}


def _call(kind: str, path: str) -> dict[str, Any]:
    body = {"type": "object", "properties": {**_OWN[kind], **_FIELDS}}
    example = {**_EXAMPLES[kind], "messageId": f"{kind}-0001", "timestamp": "2026-03-01T12:00:00Z"}
    return _post(f"segment_{_slug(path)}", f"Record one {kind} call of Segment's API.", "segment", body, example)


def _batch(path: str) -> dict[str, Any]:
    body = {
        "type": "object",
        "required": ["batch"],
        "properties": {
            "batch": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Messages, each with its `type`; at most 2,500 are recorded.",
            },
            "context": {"description": "Laid under the context of every message."},
            "sentAt": {"description": "The client's clock when it sent this; corrects the times of the messages."},
            "writeKey": _FIELDS["writeKey"],
        },
    }
    example = {
        "batch": [{"type": kind, "messageId": f"{kind}-0001", **_EXAMPLES[kind]} for kind in ("identify", "track")]
    }
    return _post(f"segment_{_slug(path)}", "Record a batch of calls of Segment's API.", "segment", body, example)


def _post(name: str, summary: str, tag: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "tags": [tag],
            "description": "Answers 200 when all that can be recorded is durable, with an outcome for each message. "
            "The body may be gzipped and may come as any content type.",
            "security": _SENDERS,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schema, "example": example}},
            },
            "responses": {"200": {"$ref": f"#/components/responses/{RECORDED}"}},
            "x-without": _WITHOUT,
        }
    }


def _cloudevents() -> dict[str, Any]:
    event_schema: dict[str, Any] = {
        "type": "object",
        "description": "A CloudEvent: specversion, id, source, type, subject, time, data.",
    }
    example = {
        "specversion": "1.0",
        "id": "evt-1",
        "source": "/shop",
        "type": "purchase_completed",
        "subject": "user_id:42",
        "time": "2026-03-01T12:00:00Z",
        "data": {"total": 29.33, "currency": "EUR"},
    }
    path_item = _post(
        "cloudevents", "Record CloudEvents: structured, batched or binary.", "cloudevents", event_schema, example
    )
    # In the binary mode the event is in the headers, and need not have a body.
    path_item["post"]["requestBody"]["required"] = False
    path_item["post"]["requestBody"]["content"] = {
        "application/cloudevents+json": {"schema": event_schema, "example": example},
        "application/cloudevents-batch+json": {"schema": {"type": "array"}, "example": [example]},
    }
    path_item["options"] = {
        "operationId": "cloudevents_permission",
        "summary": "Ask for permission to deliver, as senders of webhooks do first.",
        "description": "Needs no credential: it is the handshake of CloudEvents' webhooks.",
        "tags": ["cloudevents"],
        "security": [],
        "parameters": [
            {
                "name": "WebHook-Request-Origin",
                "in": "header",
                "required": False,
                "schema": {"type": "string"},
                "example": "shop.example",
            },
        ],
        "responses": {
            "200": {"description": "Permission, in the headers WebHook-Allowed-Origin and WebHook-Allowed-Rate."}
        },
        "x-without": ("401", "403", "404", "409", "413", "415", "429", "503"),
    }
    return path_item


def _slug(path: str) -> str:
    return path.strip("/").replace("/", "_")


def _paths() -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for kind in SEGMENT_LETTERS:
        paths.update((path, _call(kind, path)) for path in segment_paths(kind))
    paths.update((path, _batch(path)) for path in SEGMENT_BATCHES)
    paths[CLOUDEVENTS_PATH] = _cloudevents()
    return paths


def _settings(name: str, client: str, security: list[dict[str, list[str]]], parameter: str, location: str) -> Any:
    return {
        "get": {
            "operationId": name,
            "summary": f"Settings that {client} downloads before it sends.",
            "description": "The write key is that of the events which the client will send.",
            "tags": ["segment"],
            "security": security,
            "parameters": [
                {
                    "name": parameter,
                    "in": location,
                    "required": location == "path",
                    "description": "A write key.",
                    "schema": {"type": "string"},
                    "example": "wk_0123456789abcdef",
                }
            ],
            "responses": {
                "200": {
                    "description": "Settings without any destination but this server.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                }
            },
            "x-without": ("409", "413", "415", "429", *(("401", "403") if location == "path" else ("404",))),
        }
    }


INGEST_PATHS = (
    _paths()
    | {
        RUDDERSTACK: _settings("rudderstack_settings", "RudderStack's browser client", _SENDERS, "writeKey", "query"),
    }
    | {
        path: _settings(
            f"segment_{_slug(path.replace('{key}/', ''))}", f"a browser's client of {service}", [], "key", "path"
        )
        for path, service in SEGMENT.items()
    }
)
"""Path -> method -> description."""
