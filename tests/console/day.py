"""A day in a real browser: an empty store without a file, and what is done with the mouse or with the keys alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.console.browser import TOKEN, Server, Watched
from tests.surfaces.test_http_server import Process

TABS_MAX = 250
"""Of one page, before what is looked for counts as out of reach."""


@contextmanager
def empty(store: Path, **settings: str) -> Iterator[Server]:
    """A server on a store that is new unless it is there, without a file of definitions; settings by their names."""
    more = {f"THREADLINE_{name}": text for name, text in settings.items()}
    environment = {"THREADLINE_TOKENS": f"admin={TOKEN}", "THREADLINE_ACCESS_LOG": "false", **more}
    process = Process(str(store), environment, python=sys.executable)
    try:
        yield Server(process.url, {})
    finally:
        process.stop()


class Day:
    """What is done, with the mouse or with the keys alone."""

    def __init__(self, watched: Watched, *, by_keyboard: bool) -> None:
        self.watched, self.page = watched, watched.page
        self.by_keyboard = by_keyboard

    def press(self, selector: str, number: int = 0) -> None:
        """A button or a link, as it is pressed on this day."""
        control = self.reached(selector, number)
        if self.by_keyboard:
            self.page.keyboard.press("Enter")
        else:
            control.click()

    def reached(self, selector: str, number: int = 0) -> Any:
        """A control of the page; by keyboard, Tab has led to it."""
        control = self.page.locator(selector).nth(number)
        control.wait_for()
        if self.by_keyboard:
            for _ in range(TABS_MAX):
                if control.evaluate("control => control === document.activeElement"):
                    return control
                self.page.keyboard.press("Tab")
            raise AssertionError(f"Tab does not lead to {selector}")
        return control

    def choose(self, selector: str, label: str) -> None:
        """One of several, by keyboard with its first letters."""
        control = self.reached(selector)
        if self.by_keyboard:
            self.page.keyboard.type(label)
        else:
            control.select_option(label=label)
        self.settled()

    def confirm(self) -> None:
        self.press("dialog[open] button[value=yes]")

    def looked_at(self) -> None:
        """Nothing serious is wrong with the page as it stands, and it is not too wide."""
        self.settled()
        faults = [*self.watched.serious(), *self.watched.too_wide()]
        assert not faults, f"{self.page.url}: {faults}"

    def settled(self) -> None:
        self.page.wait_for_timeout(350)  # what was typed is sent after a pause
        self.page.wait_for_selector("[aria-busy=true]", state="detached")

    def fill(self, **fields: str) -> None:
        for name, text in fields.items():
            control = self.reached(f"[id='{name}'], [name='{name}']")
            if self.by_keyboard:
                self.page.keyboard.press("ControlOrMeta+A")
                self.page.keyboard.insert_text(text)
            else:
                control.fill(text)
            self.page.keyboard.press("Tab")
            self.settled()
