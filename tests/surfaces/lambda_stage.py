"""Requests as API Gateway and function URLs hand them to a function, and a runtime on an engine that is there."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from threadline.app import composition
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.lambda_.runtime import Runtime

API = "abc123.execute-api.eu-central-1.amazonaws.com"
FUNCTION = "abc123.lambda-url.eu-central-1.on.aws"


def runtime_on(engine: Engine, **settings: Any) -> Runtime:
    made = composition()._replace(open_engine=lambda *_: engine)
    return Runtime(made, Settings(access_log=False, **settings))


def payload(
    method: str,
    raw_path: str,
    query: str = "",
    headers: Mapping[str, str] = {},
    body: bytes = b"",
    domain: str = API,
    stage: str = "$default",
) -> dict[str, Any]:
    """The payload 2.0 of a request whose path is encoded. An HTTP API decodes the path, a function URL does not."""
    path = raw_path if domain == FUNCTION else unquote(raw_path)
    path = path if stage == "$default" else f"/{stage}{path}"
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7", "userAgent": "tests"}
    event = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"host": domain, **headers},
        "requestContext": {"domainName": domain, "stage": stage, "http": http, "requestId": "1"},
        "isBase64Encoded": bool(body),
    }
    return {**event, "body": base64.b64encode(body).decode()} if body else event


def content(answer: Mapping[str, Any]) -> bytes:
    body = answer["body"]
    return base64.b64decode(body) if answer["isBase64Encoded"] else body.encode()
