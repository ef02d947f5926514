"""``python -m release.tour``: fills a shop, opens its console in Chromium, and writes the pictures of docs/tour.md."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, sync_playwright

from release.parts import ROOT
from release.tour.shop import DEFINITIONS, fill
from threadline.kernel.time import system_clock
from threadline.surfaces.cli.demo.server import Server

FOLDER = ROOT / "docs/tour"
SIZE = {"width": 1200, "height": 1000}
MEMBER = "/people/user_id:m003"
WAIT_MILLISECONDS = 30_000


class Picture(NamedTuple):
    """One screen."""

    name: str
    path: str
    click: str = ""
    """What is clicked first, as a selector; the picture is of where that leads."""
    scroll_to: str = ""
    slide: float = 0
    """How far the page's slider is drawn, of its length."""
    dark: bool = False


PICTURES = (
    Picture("home", "/"),
    Picture("person", MEMBER),
    Picture("features", f"{MEMBER}?tab=features", slide=0.4),
    Picture("mail", f"{MEMBER}?tab=reach", click="text=As it was sent", scroll_to="#mail"),
    Picture("journey", "/journeys/welcome"),
    Picture("broadcast", "/broadcasts/autumn-letter"),
    Picture("what-if", "/what-if", click="text=Large from 80 dollars on?"),
    Picture("segment", "/segments/new?name=newcomers"),
    Picture("funnel", "/analytics/funnel?steps=signed_up&steps=record_played&steps=purchase_completed"),
    Picture("health", "/health", dark=True),
)


def main() -> None:
    """Write all of them anew."""
    parser = argparse.ArgumentParser(prog="python -m release.tour", description=__doc__)
    parser.add_argument("--store", type=Path, help="a shop that was filled before; it is filled if it is not there")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = given.store or folder / "shop.db"
        shutil.copy(DEFINITIONS, store.with_name(DEFINITIONS.name))
        if not store.exists():
            fill(store, system_clock())
        with Server(store, folder / "server.log", 0) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for dark in (False, True):
                scheme: Any = "dark" if dark else "light"
                page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
                _sign_in(page, server)
                for each in PICTURES:
                    if each.dark == dark:
                        _take(page, server.url, each)
            browser.close()


def _sign_in(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/sign-in")
    page.fill("[name=password]", server.token)
    page.click("button.primary")
    page.wait_for_url(f"{server.url}/")
    # What is newest at home is what the search has read so far.
    headers = {"Authorization": f"Bearer {server.token}"}
    while not page.request.get(f"{server.url}/v1/search/status", headers=headers).json()["complete"]:
        page.wait_for_timeout(500)


def _take(page: Page, url: str, picture: Picture) -> None:
    page.goto(url + picture.path)
    _settle(page)
    if picture.click:
        page.click(picture.click)
        page.wait_for_load_state()
        _settle(page)
    if picture.slide:
        page.locator("input[type=range]").evaluate(_SLIDE, picture.slide)
        _settle(page)
    if picture.scroll_to:
        page.locator(picture.scroll_to).scroll_into_view_if_needed()
    page.screenshot(path=str(FOLDER / f"{picture.name}.png"))


_SLIDE = """(slider, share) => {
  slider.value = Number(slider.min) + share * (slider.max - slider.min);
  for (const type of ["input", "change"]) slider.dispatchEvent(new Event(type, {bubbles: true}));
}"""


def _settle(page: Page) -> None:
    """Wait until the parts of the page that can be seen are there."""
    page.wait_for_timeout(300)
    page.wait_for_selector("[aria-busy=true]", state="detached", timeout=WAIT_MILLISECONDS)


if __name__ == "__main__":
    main()
