"""Lists of events show when something happened, and say what came late, was imported or was marked on its way in."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.console.stage import opened, signed_in
from threadline.settings import Settings
from threadline.surfaces.console.formats import badges
from threadline.surfaces.http.server.application import Application

SEEN = {"occurred_at": "2026-03-01T11:00:00Z", "received_at": "2026-03-01T11:00:01Z", "marks": [], "why": "live"}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, []),
        ({"received_at": "2026-03-01T11:01:00Z"}, []),
        ({"received_at": "2026-03-01T11:01:01Z"}, ["came late"]),
        ({"received_at": "2026-03-01T11:01:01Z", "source_type": "internal"}, []),
        ({"received_at": "2026-03-02T11:00:00Z", "historical": True}, ["imported"]),
        ({"historical": True, "marks": ["claimed_history"], "why": "history"}, ["imported"]),
        ({"marks": ["clock_corrected"]}, ["clock corrected"]),
        ({"why": "definitions"}, ["definitions"]),
        ({"why": "time"}, []),
    ],
)
def test_an_event_is_set_apart_by_what_it_is(given: dict[str, Any], shown: list[str]) -> None:
    assert [text for text, _, _ in badges({**SEEN, **given})] == shown


def test_home_and_the_list_of_events_show_one_clock() -> None:
    """Of an event of long ago that comes now both say how long ago it happened, and that it was imported."""
    with opened() as engine:
        secret = engine.credentials.create("default", "token", "import", ["admin"])[1]
        event = {
            "type": "record_played",
            "key": "old",
            "identifiers": {"user_id": "ada"},
            "historical": True,
            "occurred_at": "1997-03-01T12:00:00Z",
        }
        writer = TestClient(Application(engine, Settings(access_log=False)))
        answer = writer.post("/v1/events", json={"events": [event]}, headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 200, answer.text
        client = signed_in(engine)
        for path in ("/", "/events", "/people/user_id:ada"):
            page = client.get(path).text
            assert "29 y ago" in page, path
            assert ">imported</span>" in page, path
