"""RudderStack's clients for Python and node, unmodified."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.clients.calls import Who, all_calls, check_thread
from tests.clients.conftest import RunNode
from tests.clients.network import Network
from tests.clients.server import Server
from tests.clients.test_segment import speak

pytestmark = pytest.mark.client


def python_client(url: str, write_key: str, failed: list[object], **options: Any) -> Any:
    client = pytest.importorskip("rudderstack.analytics.client", reason="rudder-sdk-python is missing: `make setup`")
    logging.getLogger("rudderstack").setLevel(logging.CRITICAL)
    logging.getLogger("backoff").setLevel(logging.CRITICAL)
    return client.Client(
        write_key, host=url, on_error=lambda error, batch: failed.append(error), upload_interval=0.1, **options
    )


@pytest.mark.parametrize("packed", [False, True])
def test_python(packed: bool, server: Server, network: Network, who: Who) -> None:
    failed: list[object] = []
    client = python_client(network.url, server.write_key, failed, gzip=packed)
    speak(client, all_calls(who))
    client.flush()
    client.join()
    assert failed == []
    assert {request.headers.get("content-encoding") for request in network.taken} == {"gzip" if packed else None}
    check_thread(server, who, all_calls(who), "analytics-python")


def test_python_gives_up_on_a_wrong_key_at_once(server: Server, network: Network, who: Who) -> None:
    failed: list[Any] = []
    client = python_client(network.url, "wk_nobody_has_this", failed)
    speak(client, all_calls(who)[:1])
    client.flush()
    client.join()
    # It takes `code` and `message` out of the body; were one of them missing, it would try again for minutes.
    assert [(error.status, error.code) for error in failed] == [(401, "unauthorized")]
    assert len(network.taken) == 1


@pytest.mark.parametrize("packed", [False, True])
def test_node(packed: bool, server: Server, network: Network, who: Who, node: RunNode) -> None:
    given = {"host": network.url, "writeKey": server.write_key, "calls": all_calls(who)}
    assert node("rudder.mjs", **given, options={"gzip": packed}) == []
    assert {request.headers.get("content-encoding") for request in network.taken} == {"gzip" if packed else None}
    check_thread(server, who, all_calls(who), "analytics-node")
