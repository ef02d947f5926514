"""OFREP, the remote evaluation protocol of OpenFeature: one flag, or all of them, for one context.

https://openfeature.dev/specification/appendix-c
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute
from threadline_flags.definition import Flag
from threadline_flags.evaluating import Evaluation, evaluate
from threadline_flags.showing import asked_for, expose

PATH = "/ofrep/v1/evaluate/flags"
PER_MINUTE = 600_000
"""Of one address: a server asks for all its visitors."""
JSON = "application/json"


class _Refused(Exception):
    """A request that the protocol has an error code for."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self.code = code


def routes(flags: Mapping[str, Flag]) -> list[PublicRoute]:
    """The two addresses of the protocol."""
    return [
        PublicRoute(
            "ofrep_evaluate_flag",
            "Evaluate a flag for somebody, by OFREP.",
            "POST",
            f"{PATH}/{{key}}",
            partial(_one, flags),
            per_minute=PER_MINUTE,
            scope="read",
        ),
        PublicRoute(
            "ofrep_evaluate_flags",
            "Evaluate all flags for somebody, by OFREP.",
            "POST",
            PATH,
            partial(_all, flags),
            per_minute=PER_MINUTE,
            scope="read",
        ),
    ]


def _one(flags: Mapping[str, Flag], engine: Ports, request: PublicRequest) -> PublicAnswer:
    name = request.path["key"]
    try:
        key, context = _context(request.body)
    except _Refused as error:
        return _answer({"key": name, "errorCode": error.code, "errorDetails": str(error)}, 400)
    if name not in flags:
        return _answer({"key": name, "errorCode": "FLAG_NOT_FOUND", "errorDetails": f"there is no flag {name!r}"}, 404)
    asked = asked_for(engine, request.workspace, key, context, request.now)
    given = evaluate(flags[name], asked.subject, key)
    expose(engine, asked, flags[name], given, request.now)
    return _answer(_shown(name, given))


def _all(flags: Mapping[str, Flag], engine: Ports, request: PublicRequest) -> PublicAnswer:
    try:
        key, context = _context(request.body)
    except _Refused as error:
        return _answer({"errorCode": error.code, "errorDetails": str(error)}, 400)
    asked = asked_for(engine, request.workspace, key, context, request.now)
    # It is no exposure: whoever asks for all of them decides later which to show.
    answer = _answer({"flags": [_shown(name, evaluate(flag, asked.subject, key)) for name, flag in flags.items()]})
    mark = f'"{short_hash(answer.body.decode())}"'
    if mark in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return PublicAnswer(b"", JSON, 304, {"etag": mark})
    return PublicAnswer(answer.body, JSON, 200, {"etag": mark})


def _context(body: bytes) -> tuple[str, Mapping[str, Any]]:
    """The targeting key and the whole context of a request."""
    try:
        asked = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Refused("PARSE_ERROR", f"the body is not JSON: {error}") from None
    context = asked.get("context", {}) if isinstance(asked, dict) else None
    if not isinstance(context, dict):
        raise _Refused("INVALID_CONTEXT", "the body is an object, and its `context` another one")
    key = context.get("targetingKey")
    if not isinstance(key, str) or not key:
        raise _Refused("TARGETING_KEY_MISSING", "`context` names in `targetingKey` for whom flags are asked")
    return key, context


def _shown(name: str, given: Evaluation) -> dict[str, Any]:
    return {"key": name, "reason": given.reason, "variant": given.variant, "value": given.value, "metadata": {}}


def _answer(content: Any, status: int = 200) -> PublicAnswer:
    return PublicAnswer(msgspec.json.encode(content), JSON, status)
