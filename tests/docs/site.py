"""The site of the docs as a reader has it: rendered, served, and searched in a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from tests import chromium
from tests.docs.markdown import ROOT

NAVIGATION: list[Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
SHOWN = 5
"""How many pages of the search's answer count: a reader looks no further."""
LOOK_MILLISECONDS = 100
LOOKS_MAX = 50


def build(folder: Path) -> Path:
    """The site, rendered in this folder; whatever the renderer warns of is an error."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class SearchBox:
    """The search of a page of the site."""

    def __init__(self, page: Any) -> None:
        self._page = page
        page.keyboard.press("/")
        self._box = page.get_by_role("combobox")
        self._box.wait_for()

    def pages(self, words: str) -> list[str]:
        """The first pages that it shows for these words, each once and as its file is named in ``docs``."""
        self._box.fill("")
        self._page.get_by_role("option").first.wait_for(state="detached")
        self._box.fill(words)
        before, links = None, self._links()
        for _ in range(LOOKS_MAX):
            # The list of the query before is gone at once, and that of this one comes when its worker has it.
            if links and links == before:
                break
            self._page.wait_for_timeout(LOOK_MILLISECONDS)
            before, links = links, self._links()
        return list(dict.fromkeys(link.strip("/").replace(".html", ".md") for link in links))[:SHOWN]

    def _links(self) -> list[str]:
        return self._page.get_by_role("option").evaluate_all("links => links.map(link => new URL(link.href).pathname)")


@contextmanager
def search_of(site: Path) -> Iterator[SearchBox]:
    """The search of the site that was rendered in this folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with chromium.launched() as browser:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html", wait_until="networkidle")
            yield SearchBox(page)
    finally:
        server.shutdown()
        server.server_close()
