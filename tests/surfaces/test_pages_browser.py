"""The server's pages in a real browser: they fit a phone, and what they say can be read in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.chromium import launched

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
CANVAS = {"light": (255, 255, 255), "dark": (18, 18, 18)}
"""What Chromium paints behind a page that leaves its colours to the reader's scheme."""
CONTRAST_MIN = 4.5
"""WCAG 2.2, 1.4.3, for text of ordinary size."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_no_page_is_wider_than_a_phone(browser: Any, client: TestClient, path: str) -> None:
    tab = browser.new_page(viewport=PHONE)
    tab.set_content(client.get(path).text)
    assert tab.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_coloured_text_stands_out(browser: Any, client: TestClient, scheme: str) -> None:
    tab = browser.new_page(color_scheme=scheme)
    tab.set_content(client.get("/docs").text)
    for chosen in ("a", ".method"):
        colour = tab.eval_on_selector(chosen, "element => getComputedStyle(element).color")
        red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
        assert contrast((red, green, blue), CANVAS[scheme]) >= CONTRAST_MIN, (chosen, colour)
    tab.close()


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """The contrast of two colours, 1 to 21 (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: tuple[int, int, int]) -> float:
    """The relative luminance of a colour in sRGB, 0 to 1."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
