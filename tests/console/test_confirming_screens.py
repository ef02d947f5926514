"""Definitions that would send more than the declared number because of what was so before ask first."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chromium import launched
from tests.clients.server import Server
from tests.console.flows import TOKEN, Visit
from tests.console.stage import NOW, csrf_of, opened, record, signed_in
from threadline.app import open_dispatcher, open_engine
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.engine.engine import Engine
from threadline.kernel.limits import UNASKED_EFFECTS_MAX
from threadline.settings import Settings

PEOPLE = UNASKED_EFFECTS_MAX + 10
MAIL = "mail: {senders: {shop: {from: shop@shop.example}}, templates: {offer: {subject: Offer, text: Hello}}}\n"
SEGMENTS = "segments: {pros: {when: {field: traits.plan, equals: pro}}}\n"
JOURNEYS = "journeys: {hello: {trigger: {segment: pros}, existing: EXISTING, steps: [{send: offer}]}}\n"


@pytest.fixture
def applied(tmp_path: Path, request: Any) -> Iterator[Engine]:
    """A store whose people belong to a segment that has just come into force, with the job that brings them up to it
    at its end."""
    store, file = str(tmp_path / "shop.db"), tmp_path / "threadline.yaml"
    file.write_text(MAIL)
    before = open_engine(store, Settings(), lambda: NOW, file)
    record(before, *((f"p{n}", "identify", {"plan": "pro", "email": f"p{n}@example.com"}) for n in range(PEOPLE)))
    before.close()
    file.write_text(MAIL + SEGMENTS + JOURNEYS.replace("EXISTING", request.param))
    made = open_engine(store, Settings(), lambda: NOW, file)
    begun(made)
    yield made
    made.close()


def begun(engine: Engine, **given: str) -> str:
    """The page of the job that a form begins, worked on to its end."""
    client = signed_in(engine)
    form = {"_csrf": csrf_of(client, engine), "_back": "/", "_then": "/jobs/{id}", **given}
    sent = client.post("/do/definitions_apply_in_background", data=form)
    assert sent.status_code == 303
    dispatcher = open_dispatcher(engine, Settings())
    while dispatcher.run_once():
        pass
    return html.unescape(client.get(sent.headers["location"]).text)


@pytest.mark.parametrize("applied", ["true"], indirect=True)
def test_job_that_would_send_much_says_how_much_and_goes_on_once_its_page_says_yes(applied: Engine) -> None:
    (failed,) = applied.jobs.page("default")[0]
    page = html.unescape(signed_in(applied).get(f"/jobs/{failed.id}").text)
    assert f"would send {PEOPLE} mails" in page
    assert f"{PEOPLE} entries into segments, {PEOPLE} mails, 0 webhooks" in page
    assert 'name="yes" value="true" required' in page
    assert f"/jobs/{failed.id}" in html.unescape(signed_in(applied).get("/").text), "the home screen leads there"
    assert 'name="yes"' not in begun(applied, yes="true")
    assert applied.maintenance.stale() == ()


@pytest.mark.browser
def test_editor_leads_to_the_numbers_and_their_box_comes_without_a_reload(tmp_path: Path) -> None:
    nobody, journey = "when: {field: traits.plan, equals: nobody}", value_of(JOURNEYS.replace("EXISTING", "true"))
    (tmp_path / "threadline.yaml").write_text(MAIL)
    server = Server(tmp_path / "threadline.db", tokens=f"admin={TOKEN}")
    server.start()
    try:
        with launched("--disable-gpu", "--disable-dev-shm-usage") as browser:
            events = [
                {
                    "type": "identify",
                    "key": str(n),
                    "identifiers": {"user_id": f"p{n}", "email": f"p{n}@shop.example"},
                    "properties": {"plan": "pro"},
                }
                for n in range(PEOPLE)
            ]
            given = {"Authorization": f"Bearer {TOKEN}"}
            for section, name, text in (
                ("segments", "pros", nobody),
                ("journeys", "hello", yaml_of(journey["journeys"]["hello"])),
            ):
                made = {"section": section, "name": name, "text": text}
                declared = httpx.post(f"{server.url}/v1/definitions/declare", json=made, headers=given)
                assert declared.status_code == 200, declared.text
            assert httpx.post(f"{server.url}/v1/events", json={"events": events}, headers=given).status_code == 200
            visit = Visit(browser, server.url)
            page = visit.page
            visit.open("/segments/new?name=pros")
            page.click("text=As YAML")
            page.fill("textarea#text", "when: {field: traits.plan, equals: pro}")
            page.click("form.editor button:has-text('Put in force')")
            page.wait_for_url("**/jobs/definitions_apply.*")
            page.evaluate("window.was_not_reloaded = true")
            page.wait_for_selector("#state [name=yes]")
            assert f"{PEOPLE} entries into segments, {PEOPLE} mails, 0 webhooks" in page.inner_text("#state")
            assert page.evaluate("window.was_not_reloaded"), "the box comes with the part that renews"
            page.check("#state [name=yes]")
            page.click("#state button:has-text('Recalculate everyone')")
            page.wait_for_selector("#state .badge:has-text('done')")
            assert page.locator("[name=yes]").count() == 0
            visit.open("/segments/pros")
            assert "@shop.example" in page.inner_text("main")
            assert visit.faults == []
    finally:
        server.stop()


@pytest.mark.parametrize("applied", ["false"], indirect=True)
def test_job_that_sends_nothing_asks_nothing(applied: Engine) -> None:
    (done,) = applied.jobs.page("default")[0]
    assert done.state == "done"
    assert 'name="yes"' not in signed_in(applied).get(f"/jobs/{done.id}").text


def test_the_preview_of_a_join_says_what_it_would_send_and_the_question_does_too(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    segments = "segments: {big: {when: {field: features.monetary_total, greater_than: 8}}}\n"
    file.write_text(MAIL + segments + JOURNEYS.replace("pros", "big").replace("EXISTING", "true"))
    with opened(file) as engine:
        order = {"total": 5, "currency": "EUR"}
        address = {"email": "ada@example.com"}
        bought = [(who, "purchase_completed", order) for who in ("ada", "bob")]
        record(engine, ("ada", "identify", address), *bought)
        page = html.unescape(signed_in(engine).get("/people/ada?tab=identity&other=bob").text)
    causes = "1 entry into a segment, 1 entry into a journey, 1 mail, 0 webhooks"
    assert f"<dd>{causes}</dd>" in page
    assert f"It causes {causes}." in page
