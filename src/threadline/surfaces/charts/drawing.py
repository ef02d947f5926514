"""An SVG in the making: elements with classes and plain attributes, no style of their own and no script."""

from __future__ import annotations

import re
from typing import NamedTuple

from threadline.surfaces.charts.scale import in_two, shortened, width_of

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Box(NamedTuple):
    """Where the marks lie, within the axes."""

    left: float
    top: float
    right: float
    bottom: float


def escaped(text: str) -> str:
    """A text in XML, whatever is in it. Characters that XML has no form for become a replacement character."""
    return _NOT_XML.sub("\ufffd", text).translate(_ESCAPES)


def printable(text: str) -> str:
    """A text on one line, without characters that steer a terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def number(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Elements in the order in which they are painted."""

    def __init__(self, width: float) -> None:
        self.width = width
        self.elements: list[str] = []

    def text(
        self, x: float, y: float, text: str, classes: str = "", *, anchor: str = "start", width: float = 0
    ) -> None:
        """A line of text, cut to a width where one is given."""
        shown = shortened(text, width) if width else text
        whole = f"<title>{escaped(text)}</title>" if shown != text else ""
        named = f' class="{classes}"' if classes else ""
        placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.elements.append(f'<text x="{number(x)}" y="{number(y)}"{named}{placed}>{escaped(shown)}{whole}</text>')

    def label(self, x: float, y: float, text: str, width: float) -> None:
        """The name of a row that ends at ``x``: on two lines around ``y`` where it is too long for one."""
        lines = in_two(text, width)
        for at, line in enumerate(lines):
            self.text(x, y + 4 + 14 * at - 7 * (len(lines) - 1), line, anchor="end")
        if lines != [text]:
            self.elements[-1] = self.elements[-1].replace("</text>", f"<title>{escaped(text)}</title></text>")

    def tick(self, x: float, y: float, text: str, classes: str) -> None:
        """What stands below a mark of an axis, within the drawing also at its end."""
        self.text(min(x, self.width - 0.58 * width_of(text) - 1), y, text, classes, anchor="middle")

    def line(self, x1: float, y1: float, x2: float, y2: float, classes: str) -> None:
        """A straight line."""
        self.elements.append(
            f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" class="{classes}"/>'
        )

    def bar(
        self, x: float, y: float, width: float, height: float, classes: str, tip: str = "", radius: int = 2
    ) -> None:
        """A rectangle; ``tip`` is shown where somebody points at it."""
        self.elements.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" height="{number(max(height, 0))}"'
            f' rx="{radius}" class="{classes}">{_tip(tip)}</rect>'
        )

    def dot(self, x: float, y: float, radius: float, classes: str, tip: str = "") -> None:
        """A circle."""
        self.elements.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{classes}">{_tip(tip)}</circle>'
        )

    def path(self, d: str, classes: str, tip: str = "") -> None:
        """A path, or an area that it bounds."""
        self.elements.append(f'<path d="{d}" class="{classes}">{_tip(tip)}</path>')


def _tip(text: str) -> str:
    return f"<title>{escaped(text)}</title>" if text else ""
