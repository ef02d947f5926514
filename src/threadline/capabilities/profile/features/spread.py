"""How the values of a feature are spread: people in bins of one width, or by the most frequent texts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import free
from threadline.kernel.key_fields import key_fields

BINS_MAX = 24
TEXTS_MAX = 20
"""Values shown of a feature that is a text; the others are put together."""
OTHERS = "others"


@key_fields("low", "high", "people", "people_now")
class Bin(msgspec.Struct, kw_only=True):
    """People whose value lies in a range, or is a text."""

    low: Annotated[float | None, Meta(description="From this value on; null for a text.")] = None
    high: Annotated[float | None, Meta(description="Up to this value, in the last bin with it.")] = None
    value: Annotated[
        str, Meta(description="The text; empty for a number."), free(values=(OTHERS, "(other)"), asked_by="feature")
    ] = ""
    people: int
    people_now: Annotated[int | None, Meta(description="By the feature in force; null: there is none.")] = None


def bins_of(values: Sequence[Any], before: Sequence[Any] | None = None) -> list[Bin]:
    """Ranges of one width for numbers, or the most frequent texts; beside them the values ``before``, if there are."""
    numbers = _numbers(values)
    if numbers:
        edges = _edges([*numbers, *_numbers(before or ())])
        counts, were = _in_ranges(numbers, edges), None if before is None else _in_ranges(_numbers(before), edges)
        return [
            Bin(low=low, high=high, people=counts[n], people_now=None if were is None else were[n])
            for n, (low, high) in enumerate(pairwise(edges))
        ]
    texts, named_before = _texts(values), None if before is None else _texts(before)
    named = [text for text, _ in sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:TEXTS_MAX]]
    bins = [
        Bin(
            value=text,
            people=texts[text],
            people_now=None if named_before is None else named_before.get(text, 0),
        )
        for text in named
    ]
    if len(texts) > len(named):
        bins.append(Bin(value=OTHERS, people=sum(texts.values()) - sum(part.people for part in bins)))
    return bins


def summary(values: Sequence[Any]) -> dict[str, float]:
    """The least, the median, the mean and the most of those that are numbers; nothing of none."""
    numbers = sorted(_numbers(values))
    if not numbers:
        return {}
    half, odd = divmod(len(numbers), 2)
    median = numbers[half] if odd else (numbers[half - 1] + numbers[half]) / 2
    return {"least": numbers[0], "median": median, "mean": sum(numbers) / len(numbers), "most": numbers[-1]}


def histogram(name: str, bins: Sequence[Bin], people: int, *, exact: bool) -> Chart:
    """The people of each bin, and beside them those by the feature in force, if the bins have both."""
    is_number = bool(bins) and bins[0].low is not None
    sides = [("as it is written", [part.people for part in bins])]
    if bins and bins[0].people_now is not None:
        sides.append(("in force", [part.people_now or 0 for part in bins]))
    series = tuple(
        Series(
            side if len(sides) > 1 else "",
            tuple(
                Point(part.value if part.low is None else part.low, count, high=part.high)
                for part, count in zip(bins, counts, strict=True)
            ),
        )
        for side, counts in sides
    )
    part = "everybody" if exact else "those whose ids come first"
    return Chart(
        kind="histogram" if is_number else "bars",
        title=name,
        x=Axis(title=name),
        y=Axis(title="People", unit="count"),
        series=series if bins else (),
        summary=f"The values of {counted(people, 'person')}, {part}.",
    )


def _numbers(values: Sequence[Any]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _texts(values: Sequence[Any]) -> Mapping[str, int]:
    return Counter(
        str(value).lower() if isinstance(value, bool) else str(value) for value in values if value is not None
    )


def _edges(numbers: Sequence[float]) -> list[float]:
    """The ends of bins of one width: a step of 1, 2 or 5 times a power of ten, and no more bins than are readable."""
    low, high = min(numbers), max(numbers)
    least = 1.0 if all(number.is_integer() for number in numbers) else 0.0
    step = next(
        candidate for candidate in _steps(high - low) if candidate >= least and (high - low) / candidate < BINS_MAX - 1
    )
    first, last = math.floor(low / step), math.floor(high / step) + 1
    return [round(number * step, 12) for number in range(first, last + 1)]


def _steps(span: float) -> list[float]:
    power = math.floor(math.log10(span)) if span > 0 else 0
    return [factor * 10.0**exponent for exponent in range(power - 2, max(power, 0) + 2) for factor in (1, 2, 5)]


def _in_ranges(numbers: Sequence[float], edges: Sequence[float]) -> list[int]:
    counts = Counter(min(max(bisect_right(edges, number) - 1, 0), len(edges) - 2) for number in numbers)
    return [counts[number] for number in range(len(edges) - 1)]
