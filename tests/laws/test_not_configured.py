"""What a process cannot do for want of a setting names that setting, on every surface alike, and is not tried again."""

from __future__ import annotations

import re

import msgspec
from starlette.testclient import TestClient

from tests.capabilities.asked import Asked
from tests.surfaces.conftest import client_of, keys_of
from threadline.engine.context import Context
from threadline.kernel.errors import NotConfigured, ThreadlineError
from threadline.settings.declared import Settings

SETTINGS = {field.name for field in msgspec.structs.fields(Settings)}


def asked_of_a_store_alone() -> dict[str, ThreadlineError]:
    """By operation, the error that its example meets in an engine that has nothing but a store."""
    # The examples name this segment.
    declared = "segments: {vip: {when: {field: features.monetary_total, greater_than: 500}}}"
    asked, met = Asked(definitions=declared), dict[str, ThreadlineError]()
    asked.tell("page", user_id="42")
    for operation in asked.operations.values():
        params = operation.params() if operation.example is None else operation.example
        try:
            answer = operation.run(Context(asked.engine, "default", asked.now, "shop"), params)
            if operation.media_type:
                list(answer)
        except ThreadlineError as error:
            met[operation.name] = error
    return met


def test_an_operation_that_needs_a_setting_names_it_and_none_says_that_it_cannot_answer_now() -> None:
    met = asked_of_a_store_alone()
    lacking = {name: error for name, error in met.items() if isinstance(error, NotConfigured)}
    assert {name.split("_")[0] for name in lacking} == {"analytics", "search", "exports"}
    for name, error in lacking.items():
        assert SETTINGS & set(re.findall(r"\w+", error.hint)), (name, error.hint)
    # Any other fault of the server would be one of this process, not of what was asked.
    assert {name: error for name, error in met.items() if error.status >= 500} == lacking


def test_search_without_an_index_is_answered_over_http_with_the_name_of_the_setting() -> None:
    asked = Asked()
    headers = keys_of(asked.engine).bearer("admin")
    with client_of(asked.engine) as client:
        _is_said(client, "/v1/search?text=shoes", headers, "search_index")
        _is_said(client, "/v1/analytics/trend?event=identify", headers, "analytics_dir")


def _is_said(client: TestClient, path: str, headers: dict[str, str], setting: str) -> None:
    answer = client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (501, "not_configured")
    assert setting in answer.json()["hint"]
    assert "retry-after" not in answer.headers
