"""The console in a real browser: a server on a store with people in it, and pages that note whatever goes wrong."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from tests.surfaces.test_http_server import Process
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.cli.demo.history import definitions
from threadline.surfaces.console.screens import screens

TOKEN = "console-proof-1"
AXE = Path(__file__).parents[1] / "clients/node_modules/axe-core/axe.min.js"
SERIOUS = ("serious", "critical")
WIDTHS = (380, 1_600)
SCHEMES = ("light", "dark")


class Server(NamedTuple):
    """A server whose console is looked at."""

    url: str
    paths: dict[str, str]
    """Screen -> an address of it with something to see, for those that are about one thing."""


@contextmanager
def served(fill: Callable[[Engine], None], paths: dict[str, str] | None = None) -> Iterator[Server]:
    """A server on a store that was filled before, with the definitions of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "threadline.yaml"
        file.write_text(definitions())
        store = str(Path(folder) / "events.db")
        engine = open_engine(None, Settings(store=store, definitions=str(file)))
        fill(engine)
        engine.close()
        environment = {"THREADLINE_TOKENS": f"admin={TOKEN}", "THREADLINE_DEFINITIONS": str(file)}
        server = Process(store, {**environment, "THREADLINE_ACCESS_LOG": "false"})
        try:
            yield Server(server.url, paths or {})
        finally:
            server.stop()


class Watched:
    """A page of the console, with all that it did wrong."""

    def __init__(
        self, browser: Any, server: Server, *, scheme: str = "light", width: int = 1_600, **options: Any
    ) -> None:
        self.server = server
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        self.context.set_default_timeout(60_000)  # a busy machine takes its time
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._requested)
        self.page.on("response", self._answered)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()

    def sign_in(self) -> None:
        """With the token of the server."""
        self.page.goto(f"{self.server.url}/sign-in")
        self.page.fill("[name=password]", TOKEN)
        self.page.click("button.primary")
        self.page.wait_for_url(f"{self.server.url}/")

    def look(self, path: str) -> int:
        """Go to a screen, and wait until its parts are there; answers the status."""
        answer = self.page.goto(self.server.url + path)
        self.settle()
        return int(answer.status) if answer is not None else 0

    def settle(self) -> None:
        """Scroll through it, so that all parts load, and wait for them. A part that polls is not waited for."""
        self.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        # By a selector: a function would be evaluated in the page, whose policy refuses that.
        self.page.wait_for_timeout(30)
        self.page.wait_for_selector("[aria-busy=true]", state="detached")
        self.page.evaluate("window.scrollTo(0, 0)")

    def serious(self) -> list[str]:
        """What axe-core finds that is serious or worse."""
        return serious(self.page)

    def too_wide(self) -> list[str]:
        """Elements that make the page wider than the window."""
        if self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            return []
        script = """() => [...document.querySelectorAll('main *')].filter((each) => {
            const box = each.getBoundingClientRect()
            return box.right > innerWidth + 1 && !each.closest('.table, pre, svg, .scroll')
        }).slice(0, 3).map((each) => each.outerHTML.slice(0, 160))"""
        return self.page.evaluate(script) or ["the page is wider than the window"]

    def astray(self) -> list[str]:
        """Fields that do not stand below their labels, and tabs that are shown and out of sight."""
        script = """() => [
            ...[...document.querySelectorAll('main label.field')].filter((label) => {
                const field = label.querySelector('input, select, textarea')
                const name = document.createRange()
                name.selectNodeContents(label.firstChild)
                const box = field?.getBoundingClientRect()
                return box?.height && box.top < name.getBoundingClientRect().bottom - 1
            }),
            ...[...document.querySelectorAll('main .tabs > [aria-current]')].filter((tab) => {
                const box = tab.getBoundingClientRect()
                return box.left < 0 || box.right > innerWidth
            }),
        ].slice(0, 3).map((each) => each.outerHTML.slice(0, 160))"""
        return self.page.evaluate(script)  # type: ignore[no-any-return]

    def linked(self, path: str) -> set[str]:
        """The paths of this server that a screen and its parts link to, as they are sent: nothing is drawn."""
        page = self.server.url + path
        markup = self.page.request.get(page).text()
        for part in re.findall(r' data-load="([^"]*)"', markup):
            markup += self.page.request.get(urljoin(page, html.unescape(part))).text()
        found = [urlsplit(urljoin(page, html.unescape(each))) for each in re.findall(r'<a [^>]*href="([^"]*)"', markup)]
        return {each.path for each in found if self.server.url.endswith(each.netloc)}

    def _said(self, message: Any) -> None:
        # A screen of something that is not there answers 404, of which browsers tell as well.
        if message.type == "error" and "404" not in message.text:
            self.faults.append(f"console: {message.text[:300]} at {self.page.url}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"a script ran: {dialog.message[:100]}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((f"{self.server.url}/", "data:")):
            self.faults.append(f"foreign request: {request.url[:200]}")

    def _answered(self, response: Any) -> None:
        if response.status >= 500:
            self.faults.append(f"{response.status}: {response.url[:200]}")


def serious(page: Any) -> list[str]:
    """What axe-core finds on a page that is serious or worse: rule, and the elements."""
    # By the debugger and not as an element of the page, which the page's policy would rightly refuse.
    # What the bar at the top covers is reached by scrolling, and is not too small for that.
    page.evaluate("scrollTo(0, 0)")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text() + "; undefined")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = page.evaluate(
        "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations'], iframes: false})", tags
    )
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:200]!r}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"][:3]
    ]


def detail_of(address: str) -> str:
    """The screen with a parameter that an address is of; empty for none."""
    for screen in screens():
        if "{" in screen.path and re.fullmatch(re.sub(r"\\?\{\w+\\?\}", "[^/]+", re.escape(screen.path)), address):
            # What has a screen of its own without a parameter is that one, such as /broadcasts/new.
            return "" if any(each.path == address for each in screens()) else screen.name
    return ""
