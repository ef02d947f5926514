"""The gallery in the console: looked at, installed by a form, with what is taken and what is missing said before."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.console.stage import close_up, csrf_of, opened, record, signed_in, unsafe
from threadline.capabilities.decide.gallery.entries import entries
from threadline.engine.engine import Engine
from threadline.kernel.roles import Role

NAMES = [entry.name for entry in entries()]
SENDER = "mail:\n  senders: {shop: {from: shop@example.com}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "threadline.yaml"
    made.write_text(SENDER)
    return made


def page(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert unsafe(answer.text) == []
    return html.unescape(close_up(answer.text))


def test_the_empty_page_of_journeys_leads_to_the_gallery_and_the_gallery_to_every_entry() -> None:
    with opened() as engine:
        client = signed_in(engine)
        assert 'href="/gallery"' in page(client, "/journeys")
        shown = page(client, "/gallery")
    assert [name for name in NAMES if f'href="/gallery/{name}"' not in shown] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_drawn_with_its_mails_and_what_it_would_have_done(name: str) -> None:
    with opened() as engine:
        client = signed_in(engine, "viewer")
        shown = page(client, f"/gallery/{name}")
        mails = page(client, f"/gallery/{name}?part=mails")
        assert "<svg" in shown
        assert 'action="/do/gallery_install"' not in shown
        assert mails.count("<iframe") in (1, 2)
        for frame in mails.split('src="')[1:]:
            assert client.get(frame.partition('"')[0]).headers["content-security-policy"].startswith("sandbox")
        assert "What it would have done" in page(client, f"/gallery/{name}?part=tried")


def test_an_event_that_was_sent_is_marked_as_seen(file: Path) -> None:
    with opened(file) as engine:
        record(engine, ("ada", "signed_up", {}))
        shown = page(signed_in(engine), "/gallery/welcome")
    assert shown.count("nobody has sent it yet") == 1
    assert shown.count(">seen<") == 1


def test_the_form_asks_for_a_sender_where_there_is_none_and_not_where_there_is_one(file: Path) -> None:
    with opened() as engine:
        assert 'name="sender" type="email"' in page(signed_in(engine), "/gallery/welcome").replace("\n", " ")
    with opened(file) as engine:
        assert 'name="sender"' not in page(signed_in(engine), "/gallery/welcome")


def test_a_name_that_is_taken_is_said_before_with_a_suffix_that_is_free(file: Path) -> None:
    file.write_text(f"{SENDER}segments:\n  fifth_order: {{when: {{field: tags, exists: true}}}}\n")
    with opened(file) as engine:
        client = signed_in(engine)
        shown = page(client, "/gallery/milestone")
        mails = page(client, "/gallery/milestone?part=mails&suffix=_2")
    assert f"segment fifth_order, in {file}:4" in shown
    assert 'value="_2"' in shown
    assert "milestone_thanks_2" in mails


@pytest.mark.parametrize(("role", "status"), [("marketer", 403), ("viewer", 403)])
def test_who_may_not_install_is_told_who_does(role: Role, status: int, file: Path) -> None:
    with opened(file) as engine:
        client = signed_in(engine, role)
        assert "An operator or an admin installs it." in page(client, "/gallery/welcome")
        assert _install(client, engine).status_code == status


def _install(client: TestClient, engine: Engine) -> Any:
    fields = {"_csrf": csrf_of(client, engine), "_back": "/gallery/welcome", "name": "welcome", "paused": "true"}
    return client.post("/do/gallery_install", data=fields, headers={"origin": "http://testserver"})
