"""Lists begin with what one comes for: numbers, the last mails, the size of a segment over time, drafts that wait."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.console.stage import NOW, close_up, signed_in
from threadline.app import open_dispatcher, open_engine
from threadline.engine.engine import Engine
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
settings: {public_url: "http://shop.example"}
segments:
  at_risk: {when: {field: traits.plan, equals: pro}}
leaderboards:
  spenders: {score: features.monetary_total}
journeys:
  hello: {trigger: {event: signed_up}, steps: [{send: welcome}, {wait: 30d}]}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates: {welcome: {subject: Hello, text: Hello}}
"""
PEOPLE = 8


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file: Path = tmp_path_factory.mktemp("shop") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    now = NOW - 70 * DAY
    made = open_engine("memory:", Settings(), lambda: now, file)
    try:
        made.public_address.use_local("http://shop.example")
        shop, dispatcher = Threadline(made), open_dispatcher(made, Settings())
        for at, event in sorted(
            (pair for number in range(PEOPLE) for pair in _events(number)), key=lambda pair: pair[0]
        ):
            now = at
            shop.record([event])
        now = NOW
        shop.track("u1", "signed_up", {}, key="now")
        while dispatcher.run_once():
            pass
        yield made
    finally:
        made.close()


def _events(number: int) -> Iterator[tuple[int, dict[str, object]]]:
    """Somebody becomes one of the segment on a day, leaves it some days later, comes again, and spends something."""
    own = {"user_id": f"u{number}", "email": f"u{number}@example.com"}
    for step, (day, plan) in enumerate(((60 - number, "pro"), (50 - number * 3, "free"), (20 - number * 2, "pro"))):
        identify = {"type": "identify", "key": f"{number}-{step}", "identifiers": own}
        yield NOW - day * DAY - HOUR, {**identify, "properties": {"plan": plan, "name": f"Name {number}"}}
    bought = {"total": 10 + number, "currency": "EUR"}
    yield NOW - HOUR, {"type": "purchase_completed", "key": f"b{number}", "identifiers": own, "properties": bought}


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine)


def test_the_size_of_a_segment_is_drawn_for_each_day_as_it_was(engine: Engine, client: TestClient) -> None:
    page = html.unescape(close_up(client.get("/segments/at_risk?part=size").text))
    assert " ".join(page.partition("</p>")[0].split()).endswith(f">{PEOPLE} people")
    drawn = dict(re.findall(r"<title>(\d{4}-\d\d-\d\d)[^<]*?: ([0-9,]+)", page))
    shop = Threadline(engine)

    def is_member(number: int, at: int) -> bool:
        segments = shop.segments.of(f"u{number}", as_of=format_time(at)).segments
        return any(each.member for each in segments if each.segment == "at_risk")

    for ago in range(1, 70, 6):
        end = (NOW // DAY - ago + 1) * DAY
        members = sum(is_member(number, end) for number in range(PEOPLE))
        assert int(drawn[format_time(end - DAY)[:10]]) == members, (ago, sorted(drawn.items()))


def test_a_journey_says_how_many_are_in_it(client: TestClient) -> None:
    assert "1 person in it" in client.get("/journeys").text


def test_a_leaderboard_names_the_first_three(client: TestClient) -> None:
    page = close_up(client.get("/leaderboards?part=first&name=spenders").text)
    assert re.findall(r"<span>([^<]*)</span>", page) == ["Name 7", "Name 6", "Name 5"]
    assert client.get("/leaderboards?part=first&name=none").status_code == 200


def test_sent_mail_begins_with_the_last_mails_and_what_they_were_sent_for(client: TestClient) -> None:
    page = close_up(client.get("/mails").text)
    assert 'href="/journeys/hello">hello</a>' in page
    assert ">u1@<wbr>example.com</a>" in page


def test_what_somebody_began_waits_on_home_for_whoever_may_end_it(engine: Engine, client: TestClient) -> None:
    token = engine.credentials.create("default", "token", "home", ["admin"])[1]
    headers = {"Authorization": f"Bearer {token}"}
    rule = {"rule": {"name": "Large", "conditions": {"field": "event.properties.total", "greater_than": 5}}}
    assert client.post("/v1/rules/large/versions", json=rule, headers=headers).status_code == 200
    draft = {"template": "welcome", "audience": {"segment": "at_risk"}}
    assert client.post("/v1/broadcasts/spring", json=draft, headers=headers).status_code == 200
    page = client.get("/").text
    assert "The broadcast spring is a draft" in page
    assert "The rule Large has a version 1 that is not active" in page
    assert "is a draft" not in signed_in(engine, "viewer").get("/").text
