"""Schemathesis reads the OpenAPI document and tries to find an answer that it does not allow."""

from __future__ import annotations

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from tests.surfaces.conftest import NOW, Clock
from tests.surfaces.web_tokens import SECRET, token
from threadline.app import open_engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import SECOND
from threadline.settings import Settings
from threadline.surfaces.http.application import Application

EXAMPLES = 25 if os.environ.get("THREADLINE_TEST_PROFILE") == "ci" else 8

_engine = open_engine("memory:", Settings(), Clock())
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


# Some rules are beyond JSON Schema: that a text is an instant or a cursor of ours, that a write key has no scopes,
# that two parameters exclude each other. Breaking one is answered with 400, which the document declares.
_CONFIG = {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", 400, 404, 409]}}}

schema = schemathesis.openapi.from_asgi("/openapi.json", _for_ever, config=SchemathesisConfig.from_dict(_CONFIG))


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_answer_breaks_the_document(case: schemathesis.Case) -> None:
    # A case that leaves the credential out on purpose must stay without one.
    bearer = _user_token if case.path.startswith("/ux/user/") else _token
    case.call_and_validate(headers={} if _spoils_headers(case) else {"Authorization": f"Bearer {bearer}"})


def _spoils_headers(case: schemathesis.Case) -> bool:
    headers = case.meta.components.get(ParameterLocation.HEADER) if case.meta else None
    return headers is not None and headers.mode == GenerationMode.NEGATIVE


def test_the_document_can_be_read() -> None:
    assert len(list(schema.get_all_operations())) > 40
    assert TestClient(_application).get("/openapi.json").status_code == 200
