"""Clients of others that send Segment's messages, unmodified: Customer.io's, Jitsu's and Dittofeed's for node."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tests.clients.calls import TRAITS, Who, all_calls, check_thread
from tests.clients.conftest import RunNode
from tests.clients.server import Server

pytestmark = pytest.mark.client


def check_said(server: Server, who: Who, types: set[str]) -> None:
    """What the scripts of this folder say is there once, of one person."""
    events = server.events(f"user_id:{who.user}")
    assert sorted(event["type"] for event in events) == sorted(types)
    [click] = [event for event in events if event["type"] == "click"]
    assert click["properties"] == {"n": 1, "note": "Zoë"}
    assert server.person(f"user_id:{who.user}")["traits"] == {**TRAITS, "email": who.email}
    assert server.rejected(who.user) == []


def test_customerio_node(server: Server, who: Who, node: RunNode) -> None:
    assert node("customerio.mjs", host=server.url, writeKey=server.write_key, calls=all_calls(who)) == []
    check_thread(server, who, all_calls(who), "@customerio/cdp-analytics-node")


@pytest.mark.parametrize("s2s", [False, True], ids=["as in a page", "from a server"])
def test_jitsu(s2s: bool, server: Server, who: Who, node: RunNode) -> None:
    given = {"user": who.user, "traits": {**TRAITS, "email": who.email}, "s2s": s2s}
    assert node("jitsu.mjs", host=server.url, writeKey=f"{server.write_key}:-", **given) == []
    check_said(server, who, {"identify", "page", "click", "group"})


def test_dittofeed_node(server: Server, who: Who, node: RunNode) -> None:
    key = f"Basic {b64encode(f'{server.write_key}:'.encode()).decode()}"
    given = {"user": who.user, "traits": {**TRAITS, "email": who.email}}
    assert node("dittofeed.mjs", host=server.url, writeKey=key, **given) == []
    check_said(server, who, {"identify", "page", "click"})
