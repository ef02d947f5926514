"""A console in process: an engine in memory with people in it, and somebody of each role who is signed in."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.roles import Role
from threadline.kernel.time import parse_time
from threadline.settings import Settings
from threadline.surfaces.http.addresses.sign_in import COOKIE
from threadline.surfaces.http.server.application import Application

NOW = parse_time("2026-03-01T12:00:00Z")
ORIGIN = "http://testserver"
_STRINGS = Path(__file__).parents[1] / "data/naughty_strings/strings.json"
HOSTILE = (*json.loads(_STRINGS.read_bytes()), "</textarea><svg onload=alert(1)>", "javascript:alert(1)", "{{ 7 * 7 }}")
"""Texts that have broken programs before."""


@contextmanager
def opened(definitions: Path | None = None) -> Iterator[Engine]:
    """An engine in memory, by the definitions of a file, at an instant that stands still."""
    made = open_engine("memory:", Settings(), lambda: NOW, definitions)
    try:
        yield made
    finally:
        made.close()


def signed_in(engine: Engine, role: Role = "admin", name: str = "") -> TestClient:
    """A browser, as it were, of somebody with this role. A fault of ours is raised."""
    name = name or role
    client = TestClient(Application(engine, Settings(access_log=False)), follow_redirects=False)
    if name not in {each.name for each in engine.accounts.entries("default")}:
        engine.accounts.create("default", name, f"password of {name}", role)
    _, secret = engine.accounts.sign_in(name, f"password of {name}")
    client.cookies.set(COOKIE, secret)
    return client


def csrf_of(client: TestClient, engine: Engine) -> str:
    """What the forms of whoever is signed in have in them."""
    session = engine.accounts.find(client.cookies[COOKIE])
    assert session is not None
    return session.csrf


def record(engine: Engine, *events: tuple[str, str, dict[str, Any]]) -> None:
    """Record events (user id, type, properties), one second apart, the last one now."""
    given = [
        {
            "type": type_,
            "key": f"{number}",
            "identifiers": {"user_id": user},
            "properties": properties,
            "occurred_at": f"2026-03-01T11:{number // 60 % 60:02}:{number % 60:02}Z",
        }
        for number, (user, type_, properties) in enumerate(events)
    ]
    token = engine.credentials.create("default", "token", f"stage-{len(given)}", ["write"])[1]
    client = TestClient(Application(engine, Settings(access_log=False)))
    answer = client.post("/v1/events", json={"events": given}, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text


def close_up(markup: str) -> str:
    """A page without the whitespace beside its tags: how its template is laid out shows in no test."""
    return re.sub(r"\s*(<[^>]*>)\s*", r"\1", markup)


class _Elements(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(markup: str) -> list[tuple[str, dict[str, str | None]]]:
    """Every element of a page with its attributes."""
    parser = _Elements()
    parser.feed(markup)
    return parser.found


def unsafe(markup: str) -> list[str]:
    """What a page must not have: scripts of its own, handlers, styles in attributes, addresses that are elsewhere."""
    faults = []
    for tag, attributes in elements(markup):
        if tag == "script" and not (attributes.get("src") or "").startswith("/assets/"):
            faults.append("script")
        for name, value in attributes.items():
            if name.startswith("on") or name == "style":
                faults.append(f"{tag} {name}")
            elif name in ("src", "href", "action") and not (value or "").startswith(("/", "#", "?")):
                faults.append(f"{tag} {name}={value}")
    return faults
