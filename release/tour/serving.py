"""A server on the shop of the tour, and a page of somebody who has signed in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.tour.shop import DEFINITIONS, fill
from threadline.kernel.time import system_clock
from threadline.surfaces.cli.demo.server import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@contextmanager
def serving(store: Path | None = None) -> Iterator[Server]:
    """A server on a copy of a shop; it is filled where it is not there yet."""
    # A process that the server has started may still write when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        filled = store or folder / "filled.db"
        if not filled.exists():
            fill(filled, system_clock())
        # Some pictures change the shop on the way.
        copy = folder / "shop.db"
        shutil.copy(filled, copy)
        shutil.copy(DEFINITIONS, folder)
        with Server(copy, folder / "server.log", 0) as server:
            yield server


def signed_in(browser: Browser, server: Server, dark: bool) -> Page:
    """A page at home, once the search has read the whole log: what is newest at home is what it has read so far."""
    scheme: Any = "dark" if dark else "light"
    page = browser.new_context(color_scheme=scheme, reduced_motion="reduce").new_page()
    page.goto(f"{server.url}/sign-in")
    page.fill("[name=password]", server.token)
    page.click("button.primary")
    page.wait_for_url(f"{server.url}/")
    headers = {"Authorization": f"Bearer {server.token}"}
    while not page.request.get(f"{server.url}/v1/search/status", headers=headers).json()["complete"]:
        page.wait_for_timeout(500)
    return page
