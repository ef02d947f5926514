"""The feature vector of one person, now or as it was served at an instant."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import KnownAsOf
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.training import Vector
from threadline.kernel.disclosure import FREE, NOT_PERSONAL, SENTENCE, not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.lists import comma_separated
from threadline.kernel.names import hint
from threadline.kernel.operation import Context, operation
from threadline.kernel.ports import Person, ValueAsked, ValuesRead

Names = Annotated[str, Meta(description="Names separated by commas; empty: all.", max_length=20_000)]


class FeatureView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One feature of one person at one instant."""

    value: Annotated[Any, Meta(description="A number, text, true or false, or null."), FREE]
    status: Annotated[str, Meta(description="PRESENT; STALE: its last event is too old; NOT_FOUND: it had none.")]
    reason: Annotated[
        str, Meta(description="Why there is no value, although it had events, or no complete one."), SENTENCE
    ] = ""
    computed_at: Annotated[Instant | None, Meta(description="When the newest event of its own was recorded.")]
    changes_at: Annotated[Instant | None, Meta(description="The next instant at which it may change by time alone.")]
    version: int
    unit: str = ""
    currency: Annotated[str | None, NOT_PERSONAL] = None
    amounts: Annotated[dict[str, Any], Meta(description="Per currency, where there are several."), FREE] = {}
    capped: Annotated[
        bool, Meta(description="Whether there were more different values than are counted separately.")
    ] = False


def feature_views(vector: Vector) -> dict[str, FeatureView]:
    """A vector in the form in which it is read."""
    views = {}
    for name, shown in vector.items():
        times = {
            field: None if shown[field] is None else instant(shown[field]) for field in ("computed_at", "changes_at")
        }
        views[name] = FeatureView(**(shown | times))
    return views


class FeaturesParams(KnownAsOf, kw_only=True):
    """Whose features, which, and at which instant."""

    id: PersonRef
    names: Names = ""


@not_personal
class FeaturesResult(msgspec.Struct, kw_only=True):
    """A vector. Only what occurred before ``as_of`` counts."""

    person: str
    position: Annotated[int, Meta(description="How many events were ever recorded of the person, erased ones too.")]
    as_of: Instant
    known: Annotated[str, Meta(description="then or now: whether what became known later is left out or included.")]
    features: dict[str, FeatureView]


@operation(
    "GET /v1/people/{id}/features",
    FEATURES_GROUP,
    example=FeaturesParams(id="user_id:42", names="monetary_total,recency_days"),
)
def of(context: Context, params: FeaturesParams) -> FeaturesResult:
    """Show a person's features, now or as they were served at an instant."""
    asked = person_as_of(context, params.id, params.as_of, params.known)
    vector = asked.views("features").get("features", {})
    return FeaturesResult(
        person=asked.person.id,
        position=asked.person.position,
        as_of=asked.shown_at,
        known="now" if asked.as_of is None else params.known,
        features=feature_views(chosen(vector, params.names)),
    )


def vector_of(context: Context, person: Person, at: int, known_at: int | None = None) -> Vector:
    """A person's features at an instant; with ``known_at`` by what was known then."""
    views = context.engine.reader.views(person, at, known_at=known_at, names=["features"])
    vector: Vector = views.get("features", {})
    return vector


def values_of(context: Context, name: str, is_over: Callable[[], bool] = lambda: False) -> ValuesRead:
    """A feature's value for everybody now; where time is over before, for those whose ids come first."""
    engine = context.engine
    projection = next(projection for projection in engine.catalogue.projections if projection.name == "features")
    assert projection.depends.content is not None

    def value(person: Person, at: int) -> tuple[Any, int | None]:
        shown = vector_of(context, person, at)[name]
        return shown["value"], shown["changes_at"]

    # The layout as well: it has who may say what.
    content = f"{engine.catalogue.layout} {projection.depends.content((name,))}"
    return engine.people_values.read(
        ValueAsked(context.workspace, f"features/{name}", content, value, context.now), is_over
    )


def chosen(vector: Vector, names: str | Collection[str]) -> Vector:
    """The features of these names, in their order; all of them for none. Raises `NotFound` for an unknown one."""
    wanted = comma_separated(names) if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in vector:
            raise NotFound(f"there is no feature {name[:64]!r}; {hint(name, vector)}")
    return {name: vector[name] for name in wanted} if wanted else vector
