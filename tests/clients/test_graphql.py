"""GraphQL over HTTP, audited by the reference implementation of its specification."""

from __future__ import annotations

import pytest

from tests.clients.conftest import RunNode
from tests.clients.server import Server

pytestmark = pytest.mark.client


def test_the_audit_of_graphql_http_finds_nothing(server: Server, node: RunNode) -> None:
    found = node("graphql.mjs", url=f"{server.url}/graphql", token=server.token)
    assert len(found) > 50
    assert {each["id"]: (each["name"], each["reason"]) for each in found if each["status"] != "ok"} == {}
