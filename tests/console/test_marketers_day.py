"""A marketer's day in a real browser, from an empty store and without a file: people are imported, a segment, mails and
a journey are made, the journey is changed while people are in it, a broadcast is sent; by mouse and by keyboard, and
all of it is read on a phone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capabilities.pictures import PICTURES
from tests.chromium import launched
from tests.console.browser import TOKEN, Server, Watched
from tests.console.day import Day, empty

CUSTOMERS = 24
ORDERS = "Order no;Customer;E-mail;Date;Total\n" + "".join(
    f"o{n};c{n};c{n}@example.com;2026-0{n % 6 + 1}-1{n % 9};{20 + n * 10}.00\n" for n in range(CUSTOMERS)
)
BIG = [n for n in range(CUSTOMERS) if 20 + n * 10 > 150]
"""Customers who have spent more than the segment asks for."""
SALE = "subject: Sale\ntext: Until Sunday\n"
READ = (
    "/",
    "/people",
    "/segments",
    "/segments/big_spenders",
    "/templates",
    "/templates/hello",
    "/journeys",
    "/journeys/first_days",
    "/gallery",
    "/gallery/win_back",
    "/broadcasts",
    "/broadcasts/autumn",
    "/alerts",
    "/mails",
    "/inbox",
    "/definitions",
)
"""What is read on the way home, on a phone."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with empty(tmp_path / "events.db") as made:
        yield made


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "way"), [("light", "mouse"), ("dark", "keyboard")])
def test_a_marketers_day_from_an_empty_store(server: Server, tmp_path: Path, scheme: str, way: str) -> None:
    with launched("--disable-gpu", "--disable-dev-shm-usage") as browser:
        with Watched(browser, server, scheme=scheme, width=1_440) as watched:
            day = MarketersDay(watched, by_keyboard=way == "keyboard")
            watched.sign_in()
            day.import_customers(tmp_path)
            day.write_segment()
            day.write_mails()
            day.draw_journey()
            day.change_journey()
            day.install_and_take_away()
            day.send_broadcast()
            day.write_alert()
            # A new picture shows one of another server, which is not loaded: who serves it would learn who looks.
            assert [fault for fault in watched.faults if "https://example.com/picture.png" not in fault] == []
        with Watched(browser, server, scheme=scheme, width=390) as phone:
            phone.sign_in()
            for path in READ:
                assert phone.look(path) == 200, path
                assert phone.too_wide() == [], path
                assert phone.serious() == [], path
            assert phone.faults == []


class MarketersDay(Day):
    """What a marketer does."""

    def put_in_force(self) -> None:
        """What is written becomes valid, is put in force, and everyone is recalculated."""
        self.page.wait_for_selector("#checked-summary:has-text('It is valid.')")
        self.looked_at()
        self.press("button:has-text('Put in force')")
        self.page.wait_for_url("**/jobs/definitions_apply.*")
        self.page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)

    def import_customers(self, folder: Path) -> None:
        page, file = self.page, folder / "customers.csv"
        file.write_text(ORDERS)
        self.watched.look("/imports")
        page.set_input_files("[name=file]", str(file))
        self.press("button:has-text('Upload')")
        page.wait_for_url(re.compile("/imports/[0-9a-f]+$"))
        self.fill(**{"type": "purchase_completed", "c.4.name": "total"})
        self.press("button:has-text('Check all rows')")
        page.wait_for_selector("#state .badge:has-text('checked')", timeout=60_000)
        self.looked_at()
        self.press(f"button:has-text('Import {CUSTOMERS} rows')")
        self.confirm()
        page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)

    def write_segment(self) -> None:
        self.watched.look("/segments/new")
        self.fill(name="big_spenders")
        self.fill(**{"_when.0.field": "features.monetary_total"})
        self.choose("[id='_when.0.is']", "is more than")
        self.fill(**{"_when.0.value": "150"})
        self.page.wait_for_selector("#preview dd")
        assert self.page.locator("#preview dd").first.inner_text().split()[0] == str(len(BIG))
        self.put_in_force()

    def write_mails(self) -> None:
        self.watched.look("/senders/new")
        self.fill(**{"name": "shop", "_f.from": "shop@example.com"})
        self.put_in_force()
        self.watched.look("/templates/new")
        self.fill(**{"name": "sale", "_f.subject": "sale"})
        self.press("button[name=_to][value=yaml]")
        self.settled()
        self.fill(text=SALE)
        self.put_in_force()
        self.write_hello()

    def write_hello(self) -> None:
        """A mail of blocks with a picture, in two languages, written where it is seen."""
        page = self.page
        self.watched.look("/templates/new")
        self.fill(**{"name": "hello", "_f.subject": "Good that you are here"})
        self.changed(".block:has-text('Heading')")
        self.fill(**{"_f.heading": "Welcome"})
        self.press("summary:has-text('Add a block above')")
        self.changed("button[value='new:blocks.0:picture']")
        page.set_input_files("[data-upload]", {"name": "lamp.png", "mimeType": "image/png", "buffer": PICTURES["png"]})
        page.wait_for_selector(".thumb")
        self.settled()
        self.fill(**{"_f.picture.alt": "Our lamp"})
        self.changed("button:has-text('Subject and settings')")
        self.press("summary:has-text('Another language')")
        self.fill(_new_language="de")
        self.changed("button:has-text('Add the language')")
        self.fill(**{"_f.subject": "Gut, dass Sie da sind"})
        self.changed(".block:has-text('Heading')")
        self.fill(**{"_f.heading": "Willkommen"})
        page.frame_locator("iframe[name=phone]").locator("text=Willkommen").first.wait_for()
        self.put_in_force()
        self.watched.look("/templates/hello")
        self.looked_at()
        self.watched.look("/mail-pictures")
        assert "Used by" in page.inner_text("main")
        self.looked_at()

    def draw_journey(self) -> None:
        """Whoever comes among the big spenders gets a mail after two days; one drawn step after the other."""
        page = self.page
        self.watched.look("/journeys")
        self.press("a:has-text('Draw a journey')")
        page.wait_for_url("**/journeys/new")
        self.fill(name="first_days")
        self.changed(".box.wait")
        self.changed("button:has-text('Down')")
        self.changed("button[aria-label='Add a step here']", -1)
        self.changed("button:has-text('Wait for an event')")
        page.wait_for_selector("h2:has-text('What it would have done')")
        page.wait_for_selector("h2:has-text('If it is put in force now')")
        self.put_in_force()
        self.sign_up(ada="de-AT", bob="fr")
        self.read_inbox("Gut, dass Sie da sind", "Good that you are here")
        self.watched.look("/journeys/first_days")
        assert "2 people" in page.inner_text("main")

    def change_journey(self) -> None:
        """Two people are in it, keep their version, and are counted by it; somebody new goes by the new one."""
        page = self.page
        self.press("a:has-text('Change it')")
        page.wait_for_url("**/journeys/new?name=first_days")
        self.changed(".box.start")
        self.changed("button[aria-label='Add a step here']", -1)
        self.changed("button:has-text('Send a mail')")
        page.wait_for_selector("text=2 people are in it. They go on in the version with which they entered")
        assert page.locator(".box.new").count() == 1
        self.put_in_force()
        self.sign_up(eva="en")
        self.watched.look("/journeys/first_days")
        shown = page.locator("[aria-label='People in it, by version'] tbody tr").all_inner_texts()
        assert [" ".join(row.split()) for row in shown] == ["2, in force wait 1 day 1", "1 wait 1 day 2"]
        assert "The numbers are missing" not in page.inner_text("main")
        self.looked_at()

    def changed(self, selector: str, number: int = 0) -> None:
        """A button of the drawing is pressed, and its answer has come."""
        with self.page.expect_response(lambda answer: "part=panel" in answer.url):
            self.press(selector, number)
        self.settled()

    def sign_up(self, **locales: str) -> None:
        """What the shop's own program sends meanwhile: who signs up, and in which language."""
        events = [
            {
                "type": type,
                "key": f"{type}-{name}",
                "identifiers": {"user_id": name, "email": f"{name}@example.com"},
                "properties": {"locale": locale},
            }
            for name, locale in locales.items()
            for type in ("identify", "signed_up")
        ]
        answer = self.page.request.post(
            f"{self.watched.server.url}/v1/events",
            data={"events": events},
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        assert answer.ok, answer.text()

    def read_inbox(self, *subjects: str) -> None:
        """Mails that were sent, each in the language of who got it."""
        deadline = time.monotonic() + 60
        self.watched.look("/inbox")
        while not all(subject in self.page.inner_text("main") for subject in subjects):
            assert time.monotonic() < deadline, subjects
            self.watched.look("/inbox")

    def install_and_take_away(self) -> None:
        """A journey of the gallery comes with its mails, and one step back takes all of it away."""
        page = self.page
        self.watched.look("/journeys")
        self.press("a:has-text('Gallery')")
        self.press("a[href='/gallery/win_back']")
        page.wait_for_selector("h2:has-text('What it would have done')")
        page.wait_for_selector("iframe")
        self.looked_at()
        self.press("button:has-text('Install')")
        page.wait_for_url("**/journeys/win_back")
        assert "paused" in page.inner_text("main")
        self.watched.look("/definitions")
        self.press("a[href^='/definitions/versions/']", 1)
        self.press("button:has-text('Go back')")
        if page.locator("dialog[open]").count():
            self.confirm()
        page.wait_for_selector(".toast, #state")
        self.watched.look("/journeys")
        assert page.locator("a[href='/journeys/win_back']").count() == 0
        assert page.locator("a[href='/journeys/first_days']").count() == 1

    def send_broadcast(self) -> None:
        page = self.page
        self.watched.look("/broadcasts/new")
        self.fill(id="autumn")
        self.choose("[name=template]", "sale")
        self.choose("[name='audience.segment']", "big_spenders")
        self.press("button:has-text('Test two variants')")
        self.settled()
        self.fill(**{"arms.0.subject": "Only this week"})
        self.looked_at()
        self.press("button:has-text('Save as a draft')")
        page.wait_for_url("**/broadcasts/autumn")
        self.press(f"button:has-text('Send it to {len(BIG)} people')")
        self.confirm()
        page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)
        deadline, sent = time.monotonic() + 60, ""
        while not sent.startswith(str(len(BIG))):
            assert time.monotonic() < deadline, sent
            self.watched.look("/broadcasts/autumn")
            sent = page.locator("#results tr:has(th:text-is('all variants')) td").first.inner_text()
        self.looked_at()

    def write_alert(self) -> None:
        page = self.page
        self.watched.look("/alerts")
        self.press("a:has-text('Write an alert')")
        page.wait_for_url("**/alerts/new")
        self.fill(id="autumn", title="Sale until Sunday")
        self.looked_at()
        self.press("button:has-text('Publish')")
        page.wait_for_url("**/alerts")
        page.wait_for_selector("text=Sale until Sunday")
        self.looked_at()
