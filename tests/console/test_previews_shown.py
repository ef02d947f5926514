"""Editors of streaks, points and leaderboards: what a draft would give stands beside it while it is written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, close_up, csrf_of, opened, record, signed_in, unsafe
from threadline.engine.engine import Engine

EVENTS = (
    *(("ada", "clicked", {"traits": {}}) for _ in range(3)),
    ("ada", "identify", {"first_name": "Ada"}),
    ("bob", "clicked", {}),
    ("eve", "purchase_completed", {"total": 5, "currency": "EUR"}),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with opened() as made:
        record(made, *EVENTS)
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine, "marketer")


def preview(client: TestClient, engine: Engine, path: str, text: str, name: str, part: str = "preview") -> str:
    data = {"_csrf": csrf_of(client, engine), "_by": "yaml", "_text": "text", "text": text, "name": name}
    answer = client.post(f"{path}?part={part}" if part else path, data=data)
    assert answer.status_code == 200, answer.text
    assert unsafe(answer.text) == []
    return close_up(answer.text)


@pytest.mark.parametrize("part", ["preview", ""])
def test_a_streak_shows_who_would_have_it_and_how_long(engine: Engine, client: TestClient, part: str) -> None:
    shown = preview(client, engine, "/streaks/new", "events: clicked\n", "clicking", part)
    assert "<dt>Running now</dt><dd><strong>2</strong></dd>" in shown
    assert "everybody" in shown
    assert '<td class="number">1</td><td class="number">1</td>' in shown
    assert ">Ada</a>" in shown
    assert "Other than in force" not in shown
    assert "Other than in force" in preview(client, engine, "/streaks/new", "events: clicked\n", "daily", part)


@pytest.mark.parametrize("part", ["preview", ""])
def test_points_show_what_each_rule_would_give(engine: Engine, client: TestClient, part: str) -> None:
    text = "tables:\n  - version: autumn\n    earn: {clicked: 7, purchase_completed: 2}\n"
    shown = preview(client, engine, "/points/new", text, "points", part)
    row = '<th scope="row">{}</th><td class="number">{}</td><td class="number">{}</td><td class="number muted">0</td>'
    assert row.format("Clicked", 2, 28) in shown
    assert row.format("Purchase completed", 1, 2) in shown
    assert "<dt>People</dt><dd><strong>3</strong></dd>" in shown
    assert ">Ada</a>" in shown
    assert shown.index(">Ada</a>") < shown.index(">bob</a>")


@pytest.mark.parametrize("part", ["preview", ""])
def test_a_leaderboard_shows_its_first_places(engine: Engine, client: TestClient, part: str) -> None:
    shown = preview(client, engine, "/leaderboards/new", "score: activity.events\n", "busiest", part)
    assert "<dt>On the board</dt><dd><strong>3</strong></dd>" in shown
    assert shown.index(">Ada</a>") < shown.index(">bob</a>")
    assert 'href="/people/' in shown


@pytest.mark.parametrize("path", ["/streaks/new", "/points/new", "/leaderboards/new"])
def test_a_draft_that_is_wrong_shows_no_preview_and_one_that_nobody_fits_says_so(
    engine: Engine, client: TestClient, path: str
) -> None:
    name = "points" if path == "/points/new" else "some"
    assert 'id="preview"' not in preview(client, engine, path, "wen: 1\n", name, "checked")
    nobody = {
        "/streaks/new": "events: never_said\n",
        "/points/new": "tables: [{version: autumn, earn: {never_said: 2}}]\n",
        "/leaderboards/new": "score: points.earned\n",
    }[path]
    assert "Nobody" in preview(client, engine, path, nobody, name)


@pytest.mark.parametrize("path", ["/streaks/new", "/points/new", "/leaderboards/new"])
def test_hostile_texts_are_no_previews(engine: Engine, client: TestClient, path: str) -> None:
    for text in HOSTILE[::97]:
        preview(client, engine, path, text, "points" if path == "/points/new" else "some")
