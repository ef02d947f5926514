"""An operator's day in a real browser, from an empty store and without a file: in light and wide, in dark and on a
phone; and what is put back from a back-up shows the same."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.chromium import launched
from tests.console.browser import Server, Watched
from tests.console.day import Day
from tests.console.stage import HOSTILE
from tests.senders.receiver import Answer, Receiver
from tests.surfaces.test_http_server import Process
from threadline.engine.one_time_codes import STEP, code_at
from threadline.kernel.time import system_clock

PASSWORD = "four words that rhyme"
NAUGHTY = next(text for text in HOSTILE if "<script>" in text)
FAILURE: Answer = (503, {}, b"<script>alert(1)</script> out of order")
ORDERS = "Order no;Customer;Datum;Betrag\n" + "".join(
    f"o{n};c{n % 7};{n % 28 + 1:02}.12.2024;1.{n + 100},50\n" for n in range(40)
)
BAD_ROW = f'o99;c1;"{HOSTILE[-3]}";1\n'
"""Its time is none."""
FILE = "orders <svg onload=alert(1)> '&.csv"
RULE = {
    "conditions": {"field": "event.type", "equals": "order"},
    "actions": [{"call_webhook": {"destination": "crm", "payload": {"note": "${event.properties.note}"}}}],
}
ENVIRONMENT = {
    "THREADLINE_WEBHOOK_HTTP": "true",
    "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "127.0.0.0/8",
    "THREADLINE_SECOND_FACTOR": "admin",
    "THREADLINE_ACCESS_LOG": "false",
}
COMPARED = ("/people", "/people/user_id:c1", "/segments", "/definitions", "/webhooks", "/accounts", "/rules")
"""What shows the same in the restored store."""
TEXT = """() => {
    const main = document.querySelector('main').cloneNode(true)
    for (const time of main.querySelectorAll('time')) time.textContent = time.dateTime
    for (const part of main.querySelectorAll('pre, details')) part.remove()
    return main.textContent.replace(/\\s+/g, ' ')
}"""
"""What a page says, with instants instead of how long ago they are. Its examples of calls name the server's address."""


class Shop(NamedTuple):
    """A server on an empty store, the token that it has printed, and the receiver of its webhooks."""

    server: Server
    token: str
    store: Path
    receiver: Receiver
    broken: list[bool]
    """Not empty: the receiver fails."""


@contextmanager
def serving(store: Path) -> Iterator[Process]:
    process = Process(str(store), ENVIRONMENT, python=sys.executable)
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    broken = [True]
    with Receiver(lambda call: FAILURE if broken else (204, {}, b"")) as receiver:
        store = tmp_path / "events.db"
        with serving(store) as process:
            yield Shop(Server(process.url, {}), process.secret("tl_"), store, receiver, broken)


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width", "way"), [("light", 1_440, "keyboard"), ("dark", 390, "mouse")])
def test_an_operators_day_from_an_empty_store(shop: Shop, tmp_path: Path, scheme: str, width: int, way: str) -> None:
    with launched("--disable-gpu", "--disable-dev-shm-usage") as browser:
        with Watched(browser, shop.server, scheme=scheme, width=width, accept_downloads=True) as watched:
            day = OperatorsDay(watched, shop, by_keyboard=way == "keyboard")
            day.sign_in_with(shop.token)
            day.make_accounts()
            secret = day.sign_in_with_new_app()
            key, token = day.make_keys()
            day.import_orders()
            day.declare_webhook(token)
            day.take_in(key)
            day.read_health()
            day.send_again()
            day.look_at_jobs()
            day.go_back()
            day.look_at_audit_log([key, token, PASSWORD, base64.b32encode(secret).decode()])
            before = day.pages()
            assert watched.faults == []
        copy, restored = tmp_path / "copy.db", tmp_path / "elsewhere" / "events.db"
        restored.parent.mkdir()
        command("backup", str(copy), "--file", str(shop.store))
        command("restore", str(copy), "--file", str(restored))
        with (
            serving(restored) as process,
            Watched(browser, Server(process.url, {}), scheme=scheme, width=width) as watched,
        ):
            day = OperatorsDay(watched, shop, by_keyboard=False)
            day.sign_in_with(shop.token)
            assert day.pages() == before
            assert watched.faults == []


def command(*words: str) -> None:
    """What the operator types."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THREADLINE_")}
    done = subprocess.run(
        [sys.executable, "-m", "threadline", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class OperatorsDay(Day):
    """What an operator does."""

    def __init__(self, watched: Watched, shop: Shop, *, by_keyboard: bool) -> None:
        super().__init__(watched, by_keyboard=by_keyboard)
        self.shop, self.url = shop, watched.server.url

    def sign_in_with(self, token: str) -> None:
        self.page.goto(f"{self.url}/sign-in")
        self.fill(password=token)
        self.press("button.primary")
        self.page.wait_for_url(f"{self.url}/")

    def send(self, operation: str, **fields: str) -> None:
        """Fill in the form of an operation, and send it."""
        form = f"form[action='/do/{operation}']:not(:has(input[type=hidden][name=id]))"
        for name, text in fields.items():
            control = self.page.locator(f"{form} [name='{name}']").last
            if control.evaluate("it => it.tagName") == "SELECT":
                control.select_option(text)
            elif control.evaluate("it => it.type") == "checkbox":
                self.page.locator(f"{form} [name='{name}'][value='{text}']").check()
            else:
                control.fill(text)
        self.press(f"{form} button", -1)

    def refused(self, *statuses: str) -> None:
        """What was refused in words is no fault of the page, though browsers report it."""
        self.page.wait_for_selector(".problem-text:not(:empty)")
        self.watched.faults = [fault for fault in self.watched.faults if not any(each in fault for each in statuses)]

    def make_accounts(self) -> None:
        self.watched.look("/accounts")
        self.looked_at()
        for name, role in (("oda", "admin"), ("sue", "support")):
            self.send("accounts_create", name=name, role=role, password=PASSWORD)
            self.page.wait_for_selector(f"td:has-text('{name}')")
        self.send("accounts_create", name=NAUGHTY, role="viewer", password=PASSWORD)
        self.refused("422", "400")
        self.watched.look("/accounts")
        self.send("accounts_password_link", name="sue")
        self.page.wait_for_selector("#link:not(:empty)")
        assert "/set-password?link=" in self.page.inner_text("#link")
        self.looked_at()
        self.page.context.clear_cookies()

    def sign_in_with_new_app(self) -> bytes:
        """The account of an admin must have a second factor, and sets it up on the way."""
        page = self.page
        page.goto(f"{self.url}/sign-in")
        self.fill(name="oda", password=PASSWORD)
        self.press("button.primary")
        page.wait_for_selector(".qr")
        self.looked_at()
        self.press("summary")
        secret = base64.b32decode(page.inner_text("pre.secret"))
        self.fill(code=code_at(secret, system_clock() // STEP))
        self.press("button.primary")
        page.wait_for_selector("text=They are in a safe place")
        self.looked_at()
        self.press("text=They are in a safe place")
        page.wait_for_url(f"{self.url}/")
        self.looked_at()
        return secret

    def make_keys(self) -> tuple[str, str]:
        """One for the shop, named by a hostile text, and a token, each with an end."""
        secrets = []
        for given in (
            {"name": NAUGHTY[:60], "kind": "write_key", "expires_at": "2099-01-01T00:00"},
            {"name": "deploys", "kind": "token", "scopes:list": "admin", "expires_at": "2099-01-01T00:00"},
        ):
            self.watched.look("/keys")
            self.send("keys_create", **given)
            self.page.wait_for_selector("#secret:not(:empty)")
            self.looked_at()
            secrets.append(self.page.inner_text("#secret"))
        self.watched.look("/keys")
        shown = self.page.inner_text("main")
        assert NAUGHTY[:20] in shown
        assert "2099" in self.page.content()
        assert not any(secret in self.page.content() for secret in secrets)
        return secrets[0], secrets[1]

    def import_orders(self) -> None:
        """A file with decimal commas and one row that is wrong."""
        page = self.page
        self.watched.look("/imports")
        content = (ORDERS + BAD_ROW).encode()
        page.set_input_files("[name=file]", {"name": FILE, "mimeType": "text/csv", "buffer": content})
        self.press("button:has-text('Upload')")
        page.wait_for_url(re.compile("/imports/[0-9a-f]+$"))
        assert page.inner_text("h1") == FILE
        assert page.input_value("[name='c.3.read']") == "decimal_comma"
        self.fill(**{"type": "purchase_completed", "c.3.name": "total"})
        self.press("button:has-text('Check all rows')")
        page.wait_for_selector("#state .badge:has-text('checked')", timeout=60_000)
        assert "Row 41" in page.inner_text("#state")
        self.looked_at()
        with page.expect_download() as download:
            self.press("text=Download the rejected rows")
        assert HOSTILE[-3] in Path(download.value.path()).read_text().replace('""', '"')
        self.press("button:has-text('Import 40 rows')")
        self.confirm()
        page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)
        self.looked_at()
        self.watched.look("/people/user_id:c1")
        assert "1,101.5" in page.inner_text("main")

    def declare_webhook(self, token: str) -> None:
        """Where it goes is declared by the form, and the rule that calls it by the token that was just made."""
        self.watched.look("/declared/destinations")
        self.fill(**{"name": "crm", "_f.url": self.shop.receiver.url()})
        self.put_in_force()
        for path, body in (
            ("/v1/rules/orders/versions", {"rule": RULE}),
            ("/v1/rule-sets/all", {"events": ["order"], "rules": ["orders"]}),
            ("/v1/rules/orders/activate", {"version": 1, "untested": True}),
        ):
            self.post(path, token, body)

    def put_in_force(self) -> None:
        self.page.wait_for_selector("#checked-summary:has-text('It is valid.')")
        self.looked_at()
        self.press("button:has-text('Put in force')")
        self.page.wait_for_url("**/jobs/definitions_apply.*")
        self.page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)

    def post(self, path: str, secret: str, body: dict[str, Any]) -> None:
        """What a program sends."""
        answer = self.page.request.post(f"{self.url}{path}", data=body, headers={"authorization": f"Bearer {secret}"})
        assert answer.ok, answer.text()

    def take_in(self, key: str) -> None:
        """Events come in with the key, as a browser of a shop sends them."""
        order = {"type": "track", "userId": "ada", "event": "order", "messageId": "1", "properties": {"note": NAUGHTY}}
        self.post("/v1/batch", key, {"batch": [order]})

    def read_health(self) -> None:
        self.watched.look("/health")
        assert "Events arrive" in self.page.inner_text("main")
        self.looked_at()

    def send_again(self) -> None:
        """The delivery that failed is looked at, and sent again once the other side is well."""
        page, deadline = self.page, time.monotonic() + 60
        last = "main a[href^='/webhooks/deliveries/']"
        self.watched.look("/webhooks?state=failed")
        while not page.locator(last).count():
            assert time.monotonic() < deadline
            self.watched.look("/webhooks?state=failed")
        self.looked_at()
        self.press(last)
        page.wait_for_selector("text=What was sent")
        shown = page.inner_text("main")
        assert "Status 503" in shown
        assert FAILURE[2].decode() in shown
        assert NAUGHTY.strip()[:20] in shown
        self.looked_at()
        self.shop.broken.clear()
        self.press("button:has-text('Send again')")
        self.confirm()
        # It may have been tried by itself a moment before, and then this one is refused in words.
        page.wait_for_selector(".toast, .problem-text:not(:empty)")
        self.watched.faults = [fault for fault in self.watched.faults if "409" not in fault]
        self.watched.look("/webhooks")
        while "delivered" not in page.inner_text("main"):
            assert time.monotonic() < deadline
            self.watched.look("/webhooks")

    def look_at_jobs(self) -> None:
        self.watched.look("/jobs")
        self.looked_at()
        self.press("main a[href^='/jobs/definitions_apply']")
        self.page.wait_for_selector("#state .badge:has-text('done')")
        self.looked_at()

    def go_back(self) -> None:
        """What was changed by hand since is as it was."""
        page = self.page
        self.watched.look("/declared/timezone")
        self.fill(**{"_f.value": "Europe/Berlin"})
        self.put_in_force()
        self.watched.look("/definitions")
        assert "timezone timezone" not in page.inner_text("main")
        self.looked_at()
        self.press("a[href^='/definitions/versions/']", 1)
        page.wait_for_selector("button:has-text('Go back')")
        self.looked_at()
        self.press("button:has-text('Go back')")
        self.confirm()
        page.wait_for_url("**/jobs/definitions_apply.*")
        page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)
        self.watched.look("/definitions")
        shown = page.inner_text("main")
        assert "back to version 1" in shown
        assert page.locator("[aria-label='In force now'] tbody tr").count() == 1

    def look_at_audit_log(self, secrets: list[str]) -> None:
        self.watched.look("/audit")
        shown = self.page.inner_text("main")
        for sentence in ("Created the account sue", "Turned their second factor on", "Signed in"):
            assert sentence in shown
        assert "sent the delivery" in shown.lower()
        self.looked_at()
        markup = self.page.content()
        assert [secret for secret in secrets if secret in markup] == []

    def pages(self) -> dict[str, str]:
        """What the screens say that are compared."""
        shown = {}
        for path in COMPARED:
            assert self.watched.look(path) == 200, path
            shown[path] = self.page.evaluate(TEXT)
        return shown
