"""How a feature that is being written would be spread over people, reckoned from their events in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text, read_draft
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, Seconds, sample
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.spread import Bin, bins_of, histogram, summary
from threadline.kernel.chart import Chart
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Emit, Wish
from threadline.kernel.ports import Catalogue
from threadline.kernel.simulation import Decisions, Pair, VariantSpec
from threadline.kernel.time import EARLIEST

FEATURES = "features"
UNNAMED = "draft_feature"
FAILURES_MAX = 5


class PreviewParams(Params, kw_only=True):
    """Which feature."""

    text: Annotated[Text, Meta(description="What stands under the name of the feature.")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=100)] = ""
    seconds: Seconds = 2


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


def preview_picture(result: FeaturePreview) -> Chart:
    """The people of each bin, and beside them those by the feature in force."""
    return histogram(result.name, result.bins, result.people_read, exact=result.exact)


@operation(
    "POST /v1/features/preview",
    FEATURES_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    picture=preview_picture,
    example=PreviewParams(name="orders_of_march", text="{aggregate: count, events: purchase_completed, window: 30d}"),
    audited=False,
)
def preview(context: Context, params: PreviewParams) -> FeaturePreview:
    """Reckon a feature that is being written from people's events, and show how it is spread."""
    name = params.name or UNNAMED
    read = read_draft(context, params.text, FEATURES, name)
    if read.catalogue is None:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    in_force = context.engine.catalogue
    old, new = _Reading(name, in_force, context.now), _Reading(name, read.catalogue, context.now)
    values = _Values()
    pages = context.engine.simulations.replay(
        context.workspace,
        _spec(in_force, old),
        _spec(read.catalogue, new),
        EARLIEST,
        context.now,
        values,
        endings=(old.value, new.value),
    )
    deadline, people, last = Deadline(context, params.seconds), 0, ""
    for done in pages(None):
        people, last = people + done.people, "" if done.after is None else done.after.partition
        if last and deadline.is_over:
            break
    looked, is_new = sample(people, last), not old.reads
    changed = sum(was != becomes for was, becomes in zip(values.old, values.new, strict=True))
    return FeaturePreview(
        name=name,
        as_of=instant(context.now),
        people_read=people,
        exact=not last,
        valued=looked.estimate(sum(value is not None for value in values.new)),
        changed=None if is_new else looked.estimate(changed),
        failures=values.failures,
        bins=bins_of(values.new, None if is_new else values.old),
        **summary(values.new),
    )


def _spec(catalogue: Catalogue, reading: _Reading) -> VariantSpec:
    return VariantSpec(catalogue, reading, reading, frozenset(), {})
