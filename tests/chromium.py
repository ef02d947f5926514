"""A real browser without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def launched(*arguments: str) -> Iterator[Any]:
    """Chromium, started with these arguments as well. Skips, and says why, where there is none."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is missing: `make setup`")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("chromium is missing; `make setup` installs it where it may")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *arguments])
        yield browser
        browser.close()
