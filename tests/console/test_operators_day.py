"""An operator's day in a real browser, from an empty store and without a file of theirs: in light and wide, in dark and
on a phone."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import launched
from tests.console.browser import SCHEMES, TOKEN, Server, Watched
from tests.console.stage import HOSTILE
from tests.senders.receiver import Answer, Receiver
from tests.surfaces.test_http_server import Process
from threadline.engine.one_time_codes import STEP, code_at
from threadline.kernel.time import system_clock

DEFINITIONS = """
destinations:
  crm: {{url: "{url}"}}
rules:
  orders:
    version: 1
    conditions: {{field: event.type, equals: order}}
    actions: [{{call_webhook: {{destination: crm, payload: {{note: "${{event.properties.note}}"}}}}}}]
rule_sets:
  all: {{events: [order], rules: [orders]}}
"""
PASSWORD = "four words that rhyme"
NAUGHTY = next(text for text in HOSTILE if "<script>" in text)
FAILURE: Answer = (503, {}, b"<script>alert(1)</script> out of order")


@pytest.fixture
def day(tmp_path: Path) -> Iterator[tuple[Server, list[bool]]]:
    """A server on an empty store, whose one webhook fails at first."""
    broken = [True]
    with Receiver(lambda call: FAILURE if broken else (204, {}, b"")) as receiver:
        file = tmp_path / "threadline.yaml"
        file.write_text(DEFINITIONS.format(url=receiver.url()))
        environment = {
            "THREADLINE_TOKENS": f"admin={TOKEN}",
            "THREADLINE_DEFINITIONS": str(file),
            "THREADLINE_WEBHOOK_HTTP": "true",
            "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "127.0.0.0/8",
            "THREADLINE_SECOND_FACTOR": "admin",
            "THREADLINE_ACCESS_LOG": "false",
        }
        process = Process(str(tmp_path / "events.db"), environment)
        try:
            yield Server(process.url, {}), broken
        finally:
            process.stop()


@pytest.mark.parametrize(("scheme", "width"), zip(SCHEMES, (1_440, 390), strict=True))
def test_an_operators_day_from_an_empty_store(
    day: tuple[Server, list[bool]], tmp_path: Path, scheme: str, width: int
) -> None:
    server, broken = day
    with launched() as browser, Watched(browser, server, scheme=scheme, width=width) as watched:
        watched.sign_in()
        _make_accounts(watched)
        watched.page.context.clear_cookies()
        secret = _sign_in_with_new_app(watched)
        key = _make_key(watched)
        _import(watched, key)
        watched.look("/health")
        assert "Events arrive" in watched.page.inner_text("main")
        _send_again(watched, broken)
        _look_at_audit_log(watched, [key, PASSWORD, base64.b32encode(secret).decode()])
        assert watched.faults == []


def _fill(page: Any, within: str, **fields: str) -> None:
    form = page.locator(f'form[action="/do/{within}"]').last
    for name, value in fields.items():
        field = form.locator(f'[name="{name}"]')
        if field.evaluate("it => it.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    form.locator("button").last.click()


def _make_accounts(watched: Watched) -> None:
    page = watched.page
    watched.look("/accounts")
    for name, role in (("oda", "admin"), ("sue", "support")):
        _fill(page, "accounts_create", name=name, role=role, password=PASSWORD)
        page.wait_for_selector(f"td:has-text('{name}')")
    # A name that no account can have is refused in words, and nothing of it is markup.
    _fill(page, "accounts_create", name=NAUGHTY, role="viewer", password=PASSWORD)
    page.wait_for_selector(".problem-text:not(:empty)")
    watched.faults = [fault for fault in watched.faults if "422" not in fault and "400" not in fault]
    watched.look("/accounts")
    _fill(page, "accounts_password_link", name="sue")
    page.wait_for_selector("#link:not(:empty)")
    assert "/set-password?link=" in page.inner_text("#link")


def _sign_in_with_new_app(watched: Watched) -> bytes:
    """The account of an admin must have a second factor, and sets it up on the way."""
    page = watched.page
    page.goto(watched.server.url + "/sign-in")
    page.fill("[name=name]", "oda")
    page.fill("[name=password]", PASSWORD)
    page.click("button.primary")
    page.wait_for_selector(".qr")
    page.click("summary")
    secret = base64.b32decode(page.inner_text("pre.secret"))
    page.fill("[name=code]", code_at(secret, system_clock() // STEP))
    page.click("button.primary")
    page.click("text=They are in a safe place")
    page.wait_for_url(watched.server.url + "/")
    return secret


def _make_key(watched: Watched) -> str:
    watched.look("/keys")
    _fill(watched.page, "keys_create", name=NAUGHTY[:60], kind="write_key", expires_at="2099-01-01T00:00")
    watched.page.wait_for_selector("#secret:not(:empty)")
    key: str = watched.page.inner_text("#secret")
    assert key.startswith("wk_")
    watched.look("/keys")
    assert NAUGHTY[:20] in watched.page.inner_text("main")
    return key


def _import(watched: Watched, key: str) -> None:
    """Events come in with the key, as a browser of a shop sends them."""
    batch = [
        {"type": "track", "userId": "ada", "event": "order", "messageId": "1", "properties": {"note": NAUGHTY}},
        {"type": "track", "userId": "bob", "event": "seen", "messageId": "2"},
    ]
    answer = watched.page.request.post(
        watched.server.url + "/v1/batch", data={"batch": batch}, headers={"authorization": f"Bearer {key}"}
    )
    assert answer.ok, answer.text()


def _send_again(watched: Watched, broken: list[bool]) -> None:
    """The delivery that failed is looked at, and sent again once the other side is well."""
    page, deadline = watched.page, time.monotonic() + 60
    last = "main a[href^='/webhooks/deliveries/']"
    watched.look("/webhooks?state=failed")
    while not page.locator(last).count():
        assert time.monotonic() < deadline
        watched.look("/webhooks?state=failed")
    page.locator(last).first.click()
    page.wait_for_selector("text=What was sent")
    shown = page.inner_text("main")
    assert "Status 503" in shown
    assert "<script>alert(1)</script> out of order" in shown
    broken.clear()
    page.click("text=Send again")
    page.click("dialog button[value=yes]")
    # It may have been tried by itself a moment before, and then this one is refused in words.
    page.wait_for_selector(".toast, .problem-text:not(:empty)")
    watched.faults = [fault for fault in watched.faults if "409" not in fault]
    watched.look("/webhooks")
    while "delivered" not in page.inner_text("main"):
        assert time.monotonic() < deadline
        watched.look("/webhooks")


def _look_at_audit_log(watched: Watched, secrets: list[str]) -> None:
    watched.look("/audit")
    shown = watched.page.inner_text("main")
    for sentence in ("Created the account sue", "Turned their second factor on", "Signed in"):
        assert sentence in shown
    assert "sent the delivery" in shown.lower()
    markup = watched.page.content()
    assert [secret for secret in secrets if secret in markup] == []
