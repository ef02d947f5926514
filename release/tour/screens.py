"""``python -m release.tour.screens``: pictures of every screen that links reach, to be looked at."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Error, sync_playwright

from release.tour.pictures import FUNNEL, WAIT_MILLISECONDS, settle
from release.tour.serving import serving, signed_in
from threadline.surfaces.console.screens import screens

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from threadline.surfaces.cli.demo.server import Server

WIDTHS = (390, 1_440)
SCHEMES = ("light", "dark")
HEIGHT_MAX = 3_000
"""A longer screen is cut: what a page repeats below is seen above."""
HEIGHT = 900
FILES = ("docs", "openapi", "dev", "metrics")
"""What is linked and is no screen."""
FURNISHING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/broadcasts/winter-letter", {"template": "letter", "arms": [{"name": "a"}, {"name": "b", "subject": "Six"}]}),
    ("/v1/alerts/sale", {"title": "Sale until Sunday", "link": "/sale", "segments": ["newcomers"]}),
    ("/v1/suppression", {"address": "no@example.com", "note": "asked by phone"}),
    ("/v1/keys", {"name": "website", "kind": "write_key"}),
    ("/v1/accounts", {"name": "mia@example.com", "role": "marketer", "password": "six words are long enough"}),
    ("/v1/people/user_id:m005/tags", {"add": ["press", "vip"]}),
    ("/v1/people/user_id:m006/erase", {}),
    (
        "/v1/events",
        {"events": [{"type": "purchase_completed", "identifiers": {"user_id": "m007"}, "occurred_at": "soon"}]},
    ),
)
"""What is asked of the server first, so that its lists are not empty: an address, and the body."""
PARTS = frozenset({"part", "format"})
"""Parameters of what is a piece of a screen, or a file."""
ASKED = (
    FUNNEL,
    "/analytics/retention?first=signed_up&returning=record_played",
    "/analytics/cohorts?value=total",
    "/analytics/sessions",
    "/analytics/paths",
    "/analytics/attribution?value=total",
    "/analytics/rfm",
    "/analytics/distribution?feature=monetary_total",
    "/analytics/experiment?broadcast=autumn-letter",
    "/analytics/journey?journey=welcome",
    "/analytics/lifetime",
    "/analytics/today",
    "/people/user_id:m003?tab=features",
    "/people/user_id:m003?tab=reach&why_not=all",
    "/journeys/welcome",
    "/people?q=nobody-at-all",
    "/nothing-here",
)
"""What no link asks: analyses with their answers, and where nothing is."""
DIFFERS_BY_VALUE = frozenset({"tab", "per", "kind", "tree", "what"})
"""Parameters by whose value a screen is another one to look at."""


def main() -> None:
    """Write a picture for each screen, width and scheme, and what went wrong on the way."""
    parser = argparse.ArgumentParser(prog="python -m release.tour.screens", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("paths", nargs="*", help="such as /people; none: every screen that links reach")
    parser.add_argument("--store", type=Path, help="a shop that was filled before; it is filled if it is not there")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wrong = list[str]()

    def note(error: Error) -> None:
        wrong.append(str(error))

    with serving(given.store) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        paths: list[str] = given.paths
        for scheme in SCHEMES:
            page = signed_in(browser, server, scheme == "dark")
            if scheme == SCHEMES[0]:
                furnish(page, server)
            page.on("pageerror", note)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": HEIGHT})
                # The links are followed once; what they reach is looked at in every width and scheme.
                reached = list[str]()
                for path in paths or _following(page, server.url):
                    reached.append(path)
                    _take(page, server.url + path, given.folder / f"{_name(path)}-{width}-{scheme}.png")
                    wrong += [f"{path} {width} {scheme}: {fault}" for fault in _faults(page)]
                paths = reached
        browser.close()
    for name, lines in (("paths.txt", paths), ("faults.txt", wrong)):
        (given.folder / name).write_text("".join(f"{line}\n" for line in lines))


def furnish(page: Page, server: Server) -> None:
    """Let each list that the shop leaves empty have something to look at."""
    token = {"Authorization": f"Bearer {server.token}"}
    for path, body in FURNISHING:
        answer = page.request.post(server.url + path, headers=token, data=body)
        assert answer.ok, f"{path}: {answer.text()[:500]}"


def _following(page: Page, url: str) -> Iterator[str]:
    """One address of each screen, and of each way in which it is asked; after each the page is to be at it."""
    known: set[tuple[str, ...]] = set()
    waiting = ["/", *ASKED]
    while waiting:
        address = waiting.pop(0)
        kind = _kind(address)
        if kind is not None and kind not in known:
            known.add(kind)
            yield address
            linked = map(urlsplit, page.eval_on_selector_all("a[href]", _ADDRESSES))
            there = (split for split in linked if split.netloc and url.endswith(split.netloc))
            waiting += [split._replace(scheme="", netloc="", fragment="").geturl() for split in there]


_ADDRESSES = "links => links.map(link => new URL(link.getAttribute('href'), document.baseURI).href)"
"""Of links in pictures as well, which have no address in plain text."""


def _kind(address: str) -> tuple[str, ...] | None:
    """What tells one screen from another: its pattern, and what it is asked; None for what is no screen."""
    split = urlsplit(address)
    query = parse_qsl(split.query)
    if split.path.strip("/").partition("/")[0] in FILES or not PARTS.isdisjoint(dict(query)):
        return None
    asked = sorted({f"{name}={value}" if name in DIFFERS_BY_VALUE else name for name, value in query})
    exact = next((screen.path for screen in screens() if screen.path == split.path), None)
    for screen in screens():
        pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(screen.path))
        if exact is None and re.fullmatch(pattern, split.path):
            # Each analysis is a screen of its own, though one pattern has them all.
            exact = split.path if screen.path == "/analytics/{name}" else screen.path
    # What is asked for by name is always looked at, also where nothing is.
    return (exact or split.path, *asked) if exact or address in ASKED else None


def _name(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", path.strip("/"))[:90] or "home"


def _take(page: Page, url: str, file: Path) -> None:
    page.goto(url, timeout=WAIT_MILLISECONDS)
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    settle(page)
    page.evaluate("scrollTo(0, 0)")
    size: Any = page.viewport_size
    height = min(HEIGHT_MAX, page.evaluate("document.documentElement.scrollHeight"))
    page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": size["width"], "height": height})


def _faults(page: Page) -> list[str]:
    is_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    wrong = page.locator("main .alert, main [role=alert]").all_inner_texts()
    return [*(["wider than the window"] if is_wide else []), *filter(None, map(str.strip, wrong))]


if __name__ == "__main__":
    main()
