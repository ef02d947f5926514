"""How a feature that is being written would be spread over people, reckoned from their events in a sandbox."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.drafts.draft import Text, read_draft
from threadline.capabilities.drafts.sample import Deadline, Estimate, Seconds, sample
from threadline.capabilities.events.forms import Instant, instant
from threadline.capabilities.features.operations import FEATURES_GROUP
from threadline.kernel.chart import Axis, Chart, Point, Series
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context, Operation
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Emit, Wish
from threadline.kernel.ports import Catalogue, WithCatalogue, WithReader, WithRecorder, WithSimulations
from threadline.kernel.simulation import Decisions, Pair, VariantSpec
from threadline.kernel.time import EARLIEST

FEATURES = "features"
UNNAMED = "draft_feature"
BINS_MAX = 24
TEXTS_MAX = 20
"""Values shown of a feature that is a text; the others are put together."""
FAILURES_MAX = 5
OTHERS = "others"


class PreviewParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which feature."""

    text: Annotated[Text, Meta(description="What stands under the name of the feature.")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=100)] = ""
    seconds: Seconds = 2


class Bin(msgspec.Struct, kw_only=True):
    """People whose value lies in a range, or is a text."""

    low: Annotated[float | None, Meta(description="From this value on; null for a text.")] = None
    high: Annotated[float | None, Meta(description="Up to this value, in the last bin with it.")] = None
    value: Annotated[str, Meta(description="The text; empty for a number.")] = ""
    people: int
    people_now: Annotated[int | None, Meta(description="By the feature in force; null: there is none.")] = None


class FeaturePreview(msgspec.Struct, kw_only=True):
    """The values of the people who were looked at. Nothing was changed."""

    name: str
    as_of: Instant
    people_read: int
    exact: Annotated[bool, Meta(description="Whether everybody was looked at; else those whose ids come first.")]
    valued: Annotated[Estimate, Meta(description="People who have a value.")]
    changed: Annotated[Estimate | None, Meta(description="People whose value is another than in force; null: new.")]
    least: float | None = None
    median: float | None = None
    mean: float | None = None
    most: float | None = None
    bins: list[Bin]
    failures: Annotated[dict[str, str], Meta(description="Person -> what went wrong with their events, for some.")]


class Needs(WithCatalogue, WithReader, WithRecorder, WithSimulations, Protocol):
    """What is needed here of the engine."""


class _Reading:
    """Decides nothing, and reads one feature."""

    name = FEATURES

    def __init__(self, feature: str, catalogue: Catalogue, at: int) -> None:
        known = catalogue.of_nobody(FEATURES, at) or {}
        self.reads: Sequence[tuple[str, tuple[str, ...]]] = [(FEATURES, (feature,))] if feature in known else []
        self._feature = feature

    def value(self, person: PersonView) -> Any:
        """The value; None where there is none, or no such feature."""
        return person.view(FEATURES)[self._feature]["value"] if self.reads else None

    def handles(self, event_type: str) -> bool:
        return False

    def decisions(self, recorded: Recorded, person: PersonView) -> Decisions:
        return {}

    def wishes(self, recorded: Recorded, decisions: Any, matters: Callable[[str], bool]) -> Sequence[Wish]:
        return ()

    def decides_as(self, other: Any, event_type: str) -> bool:
        return True

    def alike(self, wish: Emit) -> Any:
        return wish


class _Values:
    """Collects the values of people, in force and by the draft."""

    def __init__(self) -> None:
        self.old: list[Any] = []
        self.new: list[Any] = []
        self.failures: dict[str, str] = {}

    def take(self, person: str, pairs: Sequence[Pair]) -> bool:
        return False

    def explain(self, person: str, pairs: Sequence[Pair]) -> None:
        """Nothing is decided, so there is nothing to explain."""

    def end(self, person: str, old: Any, new: Any) -> None:
        self.old.append(old)
        self.new.append(new)

    def cut(self, events: int) -> None:
        """Nothing is emitted, so nothing is cut."""

    def fail(self, person: str, problem: str) -> None:
        if len(self.failures) < FAILURES_MAX:
            self.failures[person] = problem[:500]


def _preview(context: Context[Needs], params: PreviewParams) -> FeaturePreview:
    name = params.name or UNNAMED
    read = read_draft(context, params.text, FEATURES, name)
    if read.catalogue is None:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    in_force = context.engine.catalogue
    old, new = _Reading(name, in_force, context.now), _Reading(name, read.catalogue, context.now)
    values = _Values()
    pages = context.engine.simulations.replay(
        context.workspace, _spec(in_force, old), _spec(read.catalogue, new), EARLIEST, context.now, values,
        endings=(old.value, new.value),
    )  # fmt: skip
    deadline, people, last = Deadline(context, params.seconds), 0, ""
    for done in pages(None):
        people, last = people + done.people, "" if done.after is None else done.after.partition
        if last and deadline.is_over:
            break
    looked, is_new = sample(people, last), not old.reads
    changed = sum(was != becomes for was, becomes in zip(values.old, values.new, strict=True))
    numbers = sorted(_numbers(values.new))
    return FeaturePreview(
        name=name, as_of=instant(context.now), people_read=people, exact=not last,
        valued=looked.estimate(sum(each is not None for each in values.new)),
        changed=None if is_new else looked.estimate(changed), failures=values.failures,
        bins=_bins(values.new, None if is_new else values.old), **_summary(numbers),
    )  # fmt: skip


def _spec(catalogue: Catalogue, reading: _Reading) -> VariantSpec:
    return VariantSpec(catalogue, reading, reading, frozenset(), {})


def _numbers(values: Sequence[Any]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _summary(numbers: Sequence[float]) -> dict[str, float]:
    """Of numbers in order; nothing of none."""
    if not numbers:
        return {}
    half, odd = divmod(len(numbers), 2)
    median = numbers[half] if odd else (numbers[half - 1] + numbers[half]) / 2
    return {"least": numbers[0], "median": median, "mean": sum(numbers) / len(numbers), "most": numbers[-1]}


def _bins(new: Sequence[Any], old: Sequence[Any] | None) -> list[Bin]:
    """Ranges of one width for numbers, or the most frequent texts."""
    numbers = _numbers(new)
    if numbers:
        edges = _edges([*numbers, *_numbers(old or ())])
        counts, before = _in_ranges(numbers, edges), None if old is None else _in_ranges(_numbers(old), edges)
        return [
            Bin(low=low, high=high, people=counts[n], people_now=None if before is None else before[n])
            for n, (low, high) in enumerate(pairwise(edges))
        ]
    texts, were = _texts(new), None if old is None else _texts(old)
    named = [text for text, _ in sorted(texts.items(), key=lambda each: (-each[1], each[0]))[:TEXTS_MAX]]
    bins = [
        Bin(value=text, people=texts[text], people_now=None if were is None else were.get(text, 0)) for text in named
    ]
    if len(texts) > len(named):
        bins.append(Bin(value=OTHERS, people=sum(texts.values()) - sum(each.people for each in bins)))
    return bins


def _texts(values: Sequence[Any]) -> Mapping[str, int]:
    return Counter(
        str(value).lower() if isinstance(value, bool) else str(value) for value in values if value is not None
    )


def _edges(numbers: Sequence[float]) -> list[float]:
    """The ends of bins of one width: a step of 1, 2 or 5 times a power of ten, and no more bins than are readable."""
    low, high = min(numbers), max(numbers)
    least = 1.0 if all(each.is_integer() for each in numbers) else 0.0
    step = next(each for each in _steps(high - low) if each >= least and (high - low) / each < BINS_MAX - 1)
    first, last = math.floor(low / step), math.floor(high / step) + 1
    return [round(number * step, 12) for number in range(first, last + 1)]


def _steps(span: float) -> list[float]:
    power = math.floor(math.log10(span)) if span > 0 else 0
    return [factor * 10.0**each for each in range(power - 2, max(power, 0) + 2) for factor in (1, 2, 5)]


def _in_ranges(numbers: Sequence[float], edges: Sequence[float]) -> list[int]:
    counts = Counter(min(max(bisect_right(edges, each) - 1, 0), len(edges) - 2) for each in numbers)
    return [counts[number] for number in range(len(edges) - 1)]


def preview_picture(result: FeaturePreview) -> Chart:
    """The people of each bin, and beside them those by the feature in force."""
    is_number = bool(result.bins) and result.bins[0].low is not None
    sides = [("as it is written", [each.people for each in result.bins])]
    if result.bins and result.bins[0].people_now is not None:
        sides.append(("in force", [each.people_now or 0 for each in result.bins]))
    series = tuple(
        Series(
            side if len(sides) > 1 else "",
            tuple(
                Point(each.value if each.low is None else each.low, count, high=each.high)
                for each, count in zip(result.bins, counts, strict=True)
            ),
        )
        for side, counts in sides
    )
    part = "everybody" if result.exact else "those whose ids come first"
    return Chart(
        kind="histogram" if is_number else "bars", title=result.name, x=Axis(title=result.name),
        y=Axis(title="People", unit="count"), series=series if result.bins else (),
        summary=f"The values of {result.people_read:,} people, {part}.",
    )  # fmt: skip


PREVIEW = Operation(
    name="features_preview",
    group=FEATURES_GROUP,
    summary="Reckon a feature that is being written from people's events, and show how it is spread.",
    params=PreviewParams,
    result=FeaturePreview,
    run=_preview,
    method="POST",
    path="/v1/features/preview",
    shown_on=frozenset({"http", "python"}),
    picture=preview_picture,
    example=PreviewParams(name="orders_of_march", text="{aggregate: count, events: purchase_completed, window: 30d}"),
    audited=False,
)
