"""Screens of a broadcast: its variants in words, why people were skipped, and no share where nothing is reported."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, opened, record, signed_in, unsafe
from threadline.app import open_dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.settings import Settings

DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates: {sale: {subject: Sale, text: Hello}}
"""
PEOPLE = 12
CONDITION = {"field": "traits.plan", "equals": HOSTILE[-3]}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file: Path = tmp_path_factory.mktemp("shop") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as made:
        traits = [{"plan": "pro", **({"email": f"p{n}@example.com"} if n % 3 else {})} for n in range(PEOPLE)]
        record(made, *((f"p{n}", "identify", traits[n]) for n in range(PEOPLE)))
        client = signed_in(made)
        created = {
            "template": "sale",
            "audience": {"segment": "pros"},
            "holdout": 0.25,
            "arms": [{"name": "plain", "weight": 3}, {"name": "bold", "subject": "Only today"}],
        }
        _post(client, "/v1/broadcasts/spring", made, **created)
        _post(client, "/v1/broadcasts/spring/start", made)
        _post(client, "/v1/broadcasts/odd", made, template="sale", audience={"when": CONDITION})
        made.public_address.use_local("http://shop.example")
        dispatcher = open_dispatcher(made, Settings())
        while dispatcher.run_once():
            pass
        yield made


def _post(client: TestClient, path: str, engine: Engine, **body: object) -> None:
    token = engine.credentials.create("default", "token", path, ["admin"])[1]
    answer = client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


def _results(engine: Engine) -> str:
    return _text(signed_in(engine).get("/broadcasts/spring?part=results").text)


def test_the_page_names_variants_and_control_group_and_shows_no_json(engine: Engine) -> None:
    page = signed_in(engine).get("/broadcasts/spring").text
    assert unsafe(page) == []
    shown = _text(page)
    assert "plain 56.2% that of the template" in shown
    assert "bold 18.8% Only today" in shown
    assert "control group 25.0% gets nothing" in shown
    assert "Segment pros" in shown
    created = shown.partition("As it was created")[2].partition("See the mail")[0]
    assert not re.search('[{}"]|holdout|arm', created)


def test_a_condition_of_the_audience_is_drawn_and_hostile_texts_stay_texts(engine: Engine) -> None:
    page = signed_in(engine).get("/broadcasts/odd").text
    assert unsafe(page) == []
    assert HOSTILE[-3] in html.unescape(page)


def test_results_count_who_was_skipped_by_reason_and_leave_out_shares_that_nobody_has_reported(engine: Engine) -> None:
    results = _results(engine)
    skipped = results.partition("As it was when their mail was to leave.")[2]
    held_out = results.count("control group")
    assert 0 < held_out < PEOPLE
    count = int(skipped.partition("no address ")[2].split()[0])
    sent = results.count("addressed sent")
    assert 0 < count == PEOPLE - held_out - sent
    assert f"all variants {sent} – – – – – –" in results
    assert "the provider has reported nothing yet" in results


def test_once_the_provider_reports_something_every_share_is_a_number(engine: Engine) -> None:
    sent = _results(engine).count("addressed sent")
    engine.recorder.record(
        [
            Event(
                type="mail_opened",
                identifiers=(Identifier("user_id", "p1"),),
                occurred_at=engine.now(),
                key="opened",
                source_type="internal",
                properties={"broadcast": "spring", "template": "sale", "arm": "plain", "message": "m1"},
            )
        ]
    )
    results = _results(engine)
    assert f"all variants {sent} 0 0.0% 1 " in results
    assert "reported nothing" not in results


def test_the_list_says_how_many_mails_of_a_broadcast_were_sent_opened_and_clicked(engine: Engine) -> None:
    client = signed_in(engine)
    page = client.get("/broadcasts").text
    assert re.findall(r'data-load="([^"]*)"', html.unescape(page)) == ["/broadcasts/spring?part=listed"]
    listed = _text(client.get("/broadcasts/spring?part=listed").text)
    assert re.fullmatch(r"[1-9][0-9]* sent [01] opened 0 clicked", listed), listed
