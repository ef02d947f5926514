"""Schemathesis reads the OpenAPI document and tries to find an answer that it does not allow.

It takes five seconds to import, so only the tests that ask it do so: not each process that collects them.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python import asgi
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance, unsupported_method
from starlette.types import Receive, Scope, Send

from tests.surfaces.conftest import NOW, Clock
from tests.surfaces.web_tokens import SECRET, token
from threadline.app import open_engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import SECOND
from threadline.settings import Settings
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.http.server.application import Application

_engine = open_engine("memory:", Settings(public_url="http://testserver"), Clock())
_, _token = _engine.credentials.create("default", "token", "fuzz", ["admin"])
_engine.recorder.record(
    [Event(type="click", identifiers=(Identifier("user_id", "42"),), occurred_at=NOW, key="order-1001", source="shop")]
)
# Visitors are not limited here: a limit that is felt is no answer to one case, but to those before it.
_application = Application(_engine, Settings(access_log=False, jwt_secret=SECRET, anonymous_actions_per_minute=0))
_user_token = token({"sub": "42", "exp": NOW // SECOND + 3_600})


async def _for_ever(scope: Scope, receive: Receive, send: Send) -> None:
    """The application without the end of its life: Schemathesis starts and stops one for every call."""
    if scope["type"] == "http":
        await _application(scope, receive, send)
        return
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


_CONFIG = {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 404, 409]}}}

# What the document allows and the server still refuses with 400 or 413: rules that are beyond JSON Schema, or that are
# no part of it on purpose. Each by the parameter that the answer names, with why.
BEYOND_SCHEMA = {
    "address": "what a mail address may be is beyond a pattern, and a person may have none",
    "assignment": "parameters of a query cannot exclude each other in OpenAPI",
    "arms": "names of which no two are the same, and none is `holdout`: JSON Schema compares whole elements only",
    "/v1/search/correlate id": "parameters of a query cannot exclude each other in OpenAPI",
    "/v1/search/correlate rule": "likewise",
    "/v1/people/{id}/unsent rule": "likewise",
    "/v1/search text": "one word at least: what is a letter or a digit is for Unicode to say",
    "as_of": "an instant that lies ahead",
    "at": "an instant that lies ahead, a version that was not in force, or a local time that the calendar has",
    "/v1/mail/pictures content": "a length that Base64 can have is beyond a pattern, and so is what a picture is",
    "confidence": "what a person says of themselves is certain: it depends on `source`",
    "by": "a path of names",
    "broadcast": "parameters of a query cannot exclude each other in OpenAPI",
    "cursor": "opaque: only what an earlier page has given is one",
    "destination": "the names of destinations are those of the definitions",
    "group": "parameters of a query cannot exclude each other in OpenAPI",
    "expires_at": "an instant that lies behind",
    "event": "an event that enough people had on several days, for a model to be fitted",
    "half_life": "an upper bound, and only in one mode",
    "identifier": "parameters of a query cannot exclude each other in OpenAPI",
    "journey": "parameters of a query cannot exclude each other in OpenAPI",
    "key": "must not begin or end with a blank",
    "labels": "instants that lie ahead",
    "link": "a web address or a path: JSON Schema has no form for either",
    "name": "printable characters, as Unicode defines them",
    "names": "this parameter or another one, of a query",
    "raw": "a length that Base64 can have is beyond a pattern",
    "record": "only beside some of the other parameters",
    "scopes": "none for a write key, at least one for a token",
    "section": "the names of sections are those of the catalogue, with those of plug-ins",
    "segment": "parameters of a query cannot exclude each other in OpenAPI",
    "segments": "the names of segments are those of the definitions",
    "sender": "the names of senders are those of the definitions, or an address",
    "source": "a source that exists",
    "start": "before `stop`, and not too long before",
    "stop": "an instant that lies ahead",
    "subscribe": "the names of topics are those of the definitions",
    "tag": "parameters of a query cannot exclude each other in OpenAPI",
    "template": "parameters of a query cannot exclude each other in OpenAPI",
    "timezone": "the names of time zones are those of the IANA list",
    "topic": "neither blank nor with control characters, as Unicode defines them",
    "unsubscribe": "the names of topics are those of the definitions",
    "step": "only beside `journey`: parameters of a query cannot need each other in OpenAPI",
    "steps": "events with conditions, as JSON in a text: conditions have a schema of their own",
    "version": "a version or a content, of a rule that is named",
    "where": "a condition as JSON in a text, as `when`",
    "weights": "a share for each arm that somebody is in: it depends on what was recorded",
    "when": "a condition as JSON in a text: it has a schema of its own, in /v1/definitions/schema",
    "winner": "at least two `arms`, one instant for all, and `event` with one metric only: rules of several fields",
    "within": "an upper bound",
    "zone": "the names of time zones are those of the system's list",
}
BEYOND_SCHEMA_CODES = {
    "invalid_definition": "rules, rule sets and definitions have schemas of their own: /v1/definitions/schema",
    "invalid_identifier": "an event that is tried is judged as an event that is recorded, by rules of its own",
    "invalid_key": "likewise",
    "limit_exceeded": "bytes of JSON, and numbers of 64 bits within it, which JSON Schema does not count",
    "no_identifier": "likewise",
    "number_out_of_range": "likewise",
    "unreadable_feedback": "a public route describes no body: what SNS posts has its own form and a signature",
}
EVENT_TYPED = frozenset(
    field.name
    for operation in _engine.catalogue.operations
    for field in fields_of(operation.params)
    if field.is_event_type
)
"""Parameters that are types of events: a type must be declared, or have been sent."""


schema = schemathesis.openapi.from_asgi("/openapi.json", _for_ever, config=SchemathesisConfig.from_dict(_CONFIG))


OUTCOME_OF_ITS_OWN = {"/v1/events"} | {
    path
    for path, methods in schema.raw_schema["paths"].items()
    if "batch" in str(methods.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {}))
}
"""Each message is judged by itself: one that is wrong is an outcome of a request that is answered 200."""


IS_TORTURE = os.environ.get("THREADLINE_TEST_PROFILE") == "torture"
CASES = 12 if IS_TORTURE else 6
"""Beside the sixty of an operation that follow from its schema."""
load_all_checks()


def keeps_to_the_document(method: str, path: str) -> None:
    """Fails on the first answer of this operation that the document does not allow."""
    # `schema.parametrize` would make the cases of all operations at once.
    feedback = FeedbackSources(constants_value_source=make_constants_value_source(schema))
    build_operation_test(
        config=schema.config,
        operation=schema[path][method],
        test_func=_keeps_to_the_document,
        given_kwargs={},
        feedback=feedback,
    )()


@cache
def _client() -> asgi.ASGIClient:
    """One for all calls; each call would make its own, and look for proxies in the environment."""
    made = asgi.get_client(_for_ever)
    made.trust_env = False
    return made.__enter__()


@settings(max_examples=CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def _keeps_to_the_document(case: schemathesis.Case) -> None:
    # A case that leaves the credential out on purpose must stay without one.
    bearer = _user_token if case.path.startswith("/ux/user/") else _token
    response = case.call(
        session=_client(), headers={} if _spoils_headers(case) else {"Authorization": f"Bearer {bearer}"}
    )
    _client().cookies.clear()
    excluded = []
    if response.status_code in (400, 413) and _is_beyond_schema(case.path, response.json()):
        excluded.append(positive_data_acceptance)
    if response.status_code == 501:  # what is set or installed is no part of the document
        assert response.json()["code"] in {"not_configured", "not_installed"}, response.text
        excluded += [positive_data_acceptance, not_a_server_error]
    if case.path in OUTCOME_OF_ITS_OWN:
        excluded.append(negative_data_rejection)
    if _is_another_address(case.method.lower(), case.path):
        excluded.append(unsupported_method)
    case.validate_response(response, excluded_checks=excluded)


def _is_another_address(method: str, path: str) -> bool:
    """Whether a method that this path lacks is one of an address with parameters, of which it may be a value."""
    paths = schema.raw_schema["paths"]
    others = (other for other, methods in paths.items() if method in methods and method not in paths[path])
    return any(re.fullmatch(re.sub(r"{\w+}", "[^/]+", other), path) for other in others)


def _is_beyond_schema(path: str, problem: dict[str, Any]) -> bool:
    param = problem.get("param")
    return (
        param in {*BEYOND_SCHEMA, *EVENT_TYPED}
        or f"{path} {param}" in BEYOND_SCHEMA
        or problem["code"] in BEYOND_SCHEMA_CODES
        or "no event has the property" in problem["detail"]  # a property must be declared, or have been sent
    )


def _spoils_headers(case: schemathesis.Case) -> bool:
    headers = case.meta.components.get(ParameterLocation.HEADER) if case.meta else None
    return headers is not None and headers.mode == GenerationMode.NEGATIVE
