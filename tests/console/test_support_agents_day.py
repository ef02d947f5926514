"""A support agent's day in a real browser, without a file: somebody writes or calls, is found, and is answered, helped,
corrected, unsubscribed, sent a copy of everything and forgotten; with the mouse, with the keys, and on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.chromium import launched
from tests.console.browser import TOKEN, Server, Watched
from tests.console.day import Day, empty
from tests.console.stage import HOSTILE

PASSWORD = "four words that rhyme"
DEFINED = (
    ("consent.topics", "news", "title: News\ndefault: opted_in\n"),
    ("mail.senders", "shop", "from: shop@example.com\n"),
    ("mail.templates", "hello", "subject: Good that you are here\ntext: Hello\ntopic: news\n"),
    ("segments", "new", "when: {field: days_since.activity.first_seen_at, less_than: 30}\n"),
    ("journeys", "welcome", "trigger: {event: signed_up, where: {channel: web}}\nsteps: [{send: hello}]\n"),
)
"""What a marketer has made by hand before: section, name, text."""
NAUGHTY = next(text for text in HOSTILE if "<script>" in text)
PEOPLE: dict[str, tuple[str, dict[str, Any]]] = {
    "ada": ("web", {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"}),
    "twin": ("phone", {"first_name": "Ada", "email": "ada.private@example.com"}),
    "bob": ("phone", {"first_name": "Bob", "email": "bob@example.com"}),
    "gone": ("web", {"first_name": NAUGHTY, "email": "gone@example.com"}),
}
"""User id -> where they have signed up, and their traits."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with empty(tmp_path / "events.db") as made:
        yield made


@pytest.mark.browser
@pytest.mark.parametrize(
    ("scheme", "width", "way"), [("light", 1_440, "mouse"), ("dark", 1_440, "keyboard"), ("dark", 390, "mouse")]
)
def test_a_support_agents_day_without_a_file(server: Server, scheme: str, width: int, way: str) -> None:
    with (
        launched("--disable-gpu", "--disable-dev-shm-usage") as browser,
        Watched(browser, server, scheme=scheme, width=width, accept_downloads=True) as watched,
    ):
        day = SupportAgentsDay(watched, by_keyboard=way == "keyboard")
        day.open_shop()
        day.sign_in()
        day.find()
        day.say_what_happened()
        day.say_why()
        day.say_why_not()
        day.correct()
        day.merge_and_undo()
        day.unsubscribe_and_subscribe()
        day.export()
        day.erase()
        assert watched.faults == []


class SupportAgentsDay(Day):
    """What somebody of support does."""

    def open_shop(self) -> None:
        """What others did before: mails, a journey, an account; and the people who came."""
        self.ask("/v1/accounts", {"name": "sue", "role": "support", "password": PASSWORD})
        for section, name, text in DEFINED:
            self.ask("/v1/definitions/declare", {"section": section, "name": name, "text": text})
        for user, (channel, traits) in PEOPLE.items():
            whom = {"user_id": user}
            events = [
                {"type": "identify", "key": f"i-{user}", "identifiers": whom, "properties": traits},
                {"type": "signed_up", "key": f"s-{user}", "identifiers": whom, "properties": {"channel": channel}},
            ]
            self.ask("/v1/events", {"events": events})
        self.ask("/v1/people/user_id:ada/memory", {"type": "preference", "key": "size", "value": 41})

    def ask(self, path: str, body: dict[str, Any]) -> None:
        """Ask the server for something as an admin."""
        answer = self.page.request.post(
            f"{self.watched.server.url}{path}", data=body, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        assert answer.ok, answer.text()

    def sign_in(self) -> None:
        self.page.goto(f"{self.watched.server.url}/sign-in")
        self.fill(name="sue", password=PASSWORD)
        self.press("button.primary")
        self.page.wait_for_url(f"{self.watched.server.url}/")
        self.looked_at()

    def find(self) -> None:
        """By half a name, and by an address in capitals."""
        for text in ("lovel", "ADA@EXAMPLE.COM"):
            self.watched.look("/people")
            self.fill(q=text)
            self.page.wait_for_selector("[role=status]:has-text('1 person')")
            self.looked_at()
            self.press("#list th a.strong")
            self.page.wait_for_url("**/people/*")
            assert self.page.inner_text("h1") == "Ada Lovelace"

    def say_what_happened(self) -> None:
        page = self.page
        page.wait_for_selector("#timeline li:has-text('Signed up')")
        while "Good that you are here" not in page.inner_text("main") and "mail" not in page.inner_text("#timeline"):
            page.wait_for_timeout(100)  # the mail leaves in the background
            page.reload()
        self.looked_at()

    def say_why(self) -> None:
        """A mail that came names its journey, and is shown as it was."""
        self.press(".questions >> text=Mail they got")
        self.page.wait_for_selector("[aria-label=Mail] tbody tr")
        row = self.page.inner_text("[aria-label=Mail] tbody tr")
        assert "journey welcome" in row
        self.press("text=As it was sent")
        self.page.wait_for_selector("#mail h2:has-text('Good that you are here')")
        self.looked_at()

    def say_why_not(self) -> None:
        self.watched.look("/people/user_id:bob")
        self.press(".questions >> text=Mail they did not get")
        self.page.wait_for_selector("#why-not")
        self.choose("#why-not select", "welcome")
        self.press("#why-not button")
        self.page.wait_for_selector("#why-not :text('channel')")
        assert "Not met: channel of the event is web." in self.page.inner_text("#why-not")
        self.looked_at()

    def correct(self) -> None:
        self.watched.look("/people/user_id:ada")
        self.press(".questions >> text=Correct a fact")
        self.press("a:has-text('Correct')", -1)
        self.page.wait_for_selector("h2:has-text('Correct a fact')")
        self.fill(**{"value:json": "43"})
        self.looked_at()
        self.press("#state button.primary")
        self.page.wait_for_selector("strong:has-text('43')")

    def merge_and_undo(self) -> None:
        """Two who are one, after a look at what would become of them; and then they are not."""
        page = self.page
        self.watched.look("/people/user_id:ada")
        self.press(".questions >> text=Merge with somebody")
        self.fill(other="user_id:twin")
        self.press("button:has-text('Preview')")
        page.wait_for_selector("dt:has-text('Would have')")
        self.looked_at()
        if page.locator("[name=force]").count():
            self.press_box("[name=force]")
        self.fill(reason=NAUGHTY)
        self.press("button:has-text('Merge')")
        self.confirm()
        page.wait_for_selector("button:has-text('Undo')")
        self.press("button:has-text('Undo')")
        self.confirm()
        page.wait_for_selector("button:has-text('Undo')", state="detached")
        self.looked_at()

    def press_box(self, selector: str) -> None:
        """A box is ticked."""
        control = self.reached(selector)
        if self.by_keyboard:
            self.page.keyboard.press("Space")
        else:
            control.check()

    def unsubscribe_and_subscribe(self) -> None:
        """Each is proven by whom, when and for which address."""
        page, proof = self.page, "#proof"
        self.watched.look("/people/user_id:ada")
        self.press(".questions >> text=Subscriptions and proof")
        self.press("button:text-is('Unsubscribe')")
        page.wait_for_selector(f"{proof} :text('Unsubscribed from news')")
        self.press("button:text-is('Subscribe')")
        page.wait_for_selector(f"{proof} :text('Subscribed to news')")
        shown = page.inner_text(proof)
        assert shown.index("Subscribed to news") < shown.index("Unsubscribed from news")
        assert "by an account or a token here, ada@example.com" in shown
        self.looked_at()

    def export(self) -> None:
        """A download with everything, and nothing of anybody else."""
        with self.page.expect_download() as download:
            self.press("text=Download the archive")
        with ZipFile(download.value.path()) as archive:
            assert archive.testzip() is None
            content = {name: archive.read(name).decode() for name in archive.namelist()}
        assert "ada@example.com" in content["profile.jsonl"]
        assert "Lovelace" in content["index.html"]
        assert len(content["events.jsonl"].splitlines()) == json.loads(content["manifest.json"])["position"]["events"]
        assert not any("bob@example.com" in text for text in content.values())

    def erase(self) -> None:
        page = self.page
        self.watched.look("/people")
        self.fill(q="gone@")
        page.wait_for_selector("[role=status]:has-text('1 person')")
        self.press("#list th a.strong")
        page.wait_for_url("**/people/*")
        assert page.inner_text("h1") == NAUGHTY.strip()
        events = page.inner_text("main .sub, header .sub, .sub").split()[0]
        self.press(".questions >> text=Erase")
        self.press("text=Count it")
        page.wait_for_selector("#erase dt")
        counted = dict(zip(*(page.locator(f"#erase {tag}").all_inner_texts() for tag in ("dt", "dd")), strict=True))
        assert counted["Events"] == events
        assert not any("_" in name for name in counted)
        self.looked_at()
        self.fill(reason=NAUGHTY)
        self.press("button:has-text('Erase')")
        self.confirm()
        page.wait_for_url(re.compile(r"/erasures\?id="))
        page.wait_for_selector("h2:has-text('Certificate')")
        self.looked_at()
        self.watched.look("/people")
        self.fill(q="gone@")
        page.wait_for_selector("text=Nobody fits")
