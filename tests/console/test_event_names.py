"""An event has one readable name: in pictures, in the tables of analyses, and wherever its type stands."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import opened, record, signed_in, unsafe
from threadline.engine.engine import Engine
from threadline.kernel.chart import Chart, Flow, Point, Series
from threadline.surfaces.console.event_types import distinct, renamed
from threadline.surfaces.console.sentences import step_name

HOSTILE = "<svg onload=alert(1)>_{{ 7 * 7 }}"
BOUGHT = {"total": 120, "currency": "EUR", "plan": "club_member"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with opened() as made:
        record(
            made,
            ("ada", "record_played", {"plan": "club_member"}),
            ("ada", HOSTILE, {"plan": "club_member"}),
            ("ada", "purchase_completed", BOUGHT),
        )
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine)


def visible(markup: str) -> str:
    """What stands in an answer but for its SQL and what is shown on hovering."""
    shown = re.sub(r"<pre[^>]*>.*?</pre>|<desc>.*?</desc>|<title>.*?</title>", "", markup, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", shown))


@pytest.mark.parametrize(
    "query",
    [
        "funnel?steps=record_played&steps=purchase_completed",
        "paths?start_at=record_played",
        "paths?start_at=record_played&by=event.type",
        "trend?by=event.type",
        "sessions?by=event.type",
    ],
)
def test_types_of_events_are_shown_by_their_names_in_pictures_and_tables(client: TestClient, query: str) -> None:
    answer = client.get(f"/analytics/{query}&part=answer").text
    assert unsafe(answer) == []
    assert '<span title="record_played">Record played</span>' in answer
    assert "record_played" not in visible(answer)
    picture = answer.partition("<svg")[2].partition("</svg>")[0]
    assert "Record played" in picture


def test_a_break_down_by_a_property_keeps_its_values(client: TestClient) -> None:
    for query in ("paths?start_at=record_played&by=plan", "trend?by=plan"):
        answer = client.get(f"/analytics/{query}&part=answer").text
        assert "club_member" in visible(answer)
        assert "Club member" not in answer


def test_a_hostile_type_is_text_in_every_analysis(client: TestClient) -> None:
    for query in ("paths?start_at=record_played", "trend?by=event.type"):
        answer = client.get(f"/analytics/{query}&part=answer").text
        assert unsafe(answer) == []
        assert "<svg onload=alert(1)> {{ 7 * 7 }}" in visible(answer)


def test_a_field_for_an_event_offers_the_known_types_with_their_names(client: TestClient) -> None:
    page = client.get("/analytics/trend").text
    assert '<option value="purchase_completed">Purchase completed</option>' in page
    assert re.search(r'<input name="event"[^>]* list="event-types"', page)
    assert '<option value="purchase_completed">Purchase completed</option>' in client.get("/events").text


def test_types_that_were_only_seen_stand_among_the_schemas_with_how_many_there_are(client: TestClient) -> None:
    client.get("/events?text=x")  # whoever searches first makes the index
    page = client.get("/schemas").text
    assert unsafe(page) == []
    rows = {code: visible(row) for row in page.split("<tr>") for code in re.findall(r'<code class="muted">(.*?)<', row)}
    assert re.match(r"Record played only seen record_played 1 anyone", " ".join(rows["record_played"].split()))
    assert "0 Threadline, this process" in " ".join(rows["points_earned"].split())
    assert '<code class="muted">&lt;svg onload' in page
    assert '<option value="record_played">Record played</option>' in client.get("/analytics/trend").text


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("purchase_completed", "Purchase completed"),
        ("any event", "Any event"),
        ("*", "Any event"),
        ('purchase_completed {"total":{"gt":50}}', 'Purchase completed {"total":{"gt":50}}'),
        ("threadline.effect_done", "Effect done"),
        ("(other)", "(other)"),
    ],
)
def test_a_step_is_called_by_its_type(step: str, name: str) -> None:
    assert step_name(step) == name


def test_two_types_that_would_have_one_name_keep_their_own() -> None:
    names = distinct({"signed_up": "Signed up", "Signed up": "Signed up", "page": "Page"})
    assert names == {"page": "Page"}


def test_a_mark_of_a_picture_still_says_the_type_on_hovering() -> None:
    points = (Point("page", 2, note="half"), Point("signed_up", 1), Point(3.0, 1))
    drawn = renamed(Chart(kind="funnel", title="Funnel", series=(Series("page", points),)), {"page": "Page"})
    assert [(each.x, each.note) for each in drawn.series[0].points] == [
        ("Page", "half · page"),
        ("signed_up", ""),
        (3.0, ""),
    ]
    assert drawn.series[0].name == "Page"
    flows = renamed(Chart(kind="flow", title="Paths", flows=(Flow(0, "page", "(end)", 2),)), {"page": "Page"}).flows
    assert flows == (Flow(0, "Page", "(end)", 2),)
