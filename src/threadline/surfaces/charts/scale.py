"""Axes: round ticks, and how wide a text is about."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from threadline.kernel.chart import Unit

_STEPS_OF_TIME = (
    1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600,
    2_592_000, 7_776_000, 31_536_000,
)  # fmt: skip


class Scale(NamedTuple):
    """Values from ``low`` to ``high`` along a length, with ticks at round values."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def along(self, start: float, stop: float) -> Callable[[float], float]:
        """Where a value lies between two coordinates."""
        return lambda value: start + (value - self.low) / (self.high - self.low) * (stop - start)


def finite(values: Iterable[float | None]) -> list[float]:
    """Those that can be drawn."""
    return [value for value in values if value is not None and math.isfinite(value)]


def scale(values: Iterable[float | None], unit: Unit, *, zero: bool = True, count: int = 5) -> Scale:
    """The scale of these values; ``zero``: 0 is in it. About ``count`` ticks, the first and last of which bound it."""
    known = finite(values)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= abs(high) * 1e-9:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    step = _step((high - low) / count, unit)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(number * step, 12) for number in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks)


def _step(least: float, unit: Unit) -> float:
    if unit == "seconds":
        for size in _STEPS_OF_TIME:
            if size >= least:
                return size
    magnitude: float = 10.0 ** math.floor(math.log10(least))
    step = next(size * magnitude for size in (1, 2, 5, 10) if size * magnitude >= least * (1 - 1e-9))
    return max(step, 1.0) if unit == "count" else step


def width_of(text: str, size: float = 12) -> float:
    """About how wide a text is in a sans-serif font of this size."""
    wide = sum(1.0 if unicodedata.east_asian_width(character) in "WF" else 0.57 for character in text)
    return wide * size


def shortened(text: str, width: float, size: float = 12) -> str:
    """A text that is cut where it does not fit."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def in_two(text: str, width: float, size: float = 12) -> list[str]:
    """A text on one line, or where that does not do on two, which part between its words; what is over is cut."""
    if width_of(text, size) <= width:
        return [text]
    words, first = text.split(), ""
    while words and width_of(f"{first} {words[0]}".strip(), size) <= width:
        first = f"{first} {words.pop(0)}".strip()
    return [first, shortened(" ".join(words), width, size)] if first and words else [shortened(text, width, size)]


def thinned(labels: Sequence[str], length: float, size: float = 12) -> list[int]:
    """Positions of those labels that fit side by side along a length."""
    if not labels:
        return []
    room = max(width_of(label, size) for label in labels) + 10
    every = max(1, math.ceil(room / (length / len(labels))))
    # Every second, fifth or tenth is easier to count than every seventh.
    every = next((step for step in (1, 2, 5, 7, 10, 20, 30, 50, 100) if step >= every), every)
    return list(range(0, len(labels), every))
