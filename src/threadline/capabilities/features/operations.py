"""Features as callers read them: one person's vector now or as it was served, training sets, the best people."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Identifiers, Instant, PersonRef, Time, instant
from threadline.capabilities.events.instants import person_as_of
from threadline.capabilities.events.parameters import Known, KnownAsOf
from threadline.capabilities.features.definition import Feature, FeatureSet
from threadline.capabilities.features.training import ReadVector, Row, Vector, read_labels, training_rows
from threadline.kernel.errors import NotFound
from threadline.kernel.limits import TRAINING_ROWS_MAX
from threadline.kernel.lists import comma_separated
from threadline.kernel.operation import Context, Group, Operation
from threadline.kernel.ports import Person, WithCatalogue, WithReader
from threadline.kernel.time import format_duration

FEATURES_GROUP = Group("features", "Numbers about people: who has which, and the highest.")

Names = Annotated[str, Meta(description="Names separated by commas; empty: all.", max_length=20_000)]

# --- one vector -------------------------------------------------------------------------------


class FeatureView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One feature of one person at one instant."""

    value: Annotated[Any, Meta(description="A number, text, true or false, or null.")]
    status: Annotated[str, Meta(description="PRESENT; STALE: its last event is too old; NOT_FOUND: it had none.")]
    reason: Annotated[str, Meta(description="Why there is no value, although it had events, or no complete one.")] = ""
    computed_at: Annotated[Instant | None, Meta(description="When the newest event of its own was recorded.")]
    changes_at: Annotated[Instant | None, Meta(description="The next instant at which it may change by time alone.")]
    version: int
    unit: str = ""
    currency: str | None = None
    amounts: Annotated[dict[str, Any], Meta(description="Per currency, where there are several.")] = {}
    capped: Annotated[bool, Meta(description="Whether there were more different values than are told apart.")] = False


def feature_views(vector: Vector) -> dict[str, FeatureView]:
    """A vector in the form in which it is read."""
    views = {}
    for name, shown in vector.items():
        times = {
            field: None if shown[field] is None else instant(shown[field]) for field in ("computed_at", "changes_at")
        }
        views[name] = FeatureView(**(shown | times))
    return views


class FeaturesParams(KnownAsOf, kw_only=True, forbid_unknown_fields=True):
    """Whose features, which, and at which instant."""

    id: PersonRef
    names: Names = ""


class FeaturesResult(msgspec.Struct, kw_only=True):
    """A vector. Only what occurred before ``as_of`` counts."""

    person: str
    position: Annotated[int, Meta(description="How many events the person has today.")]
    as_of: Instant
    known: Annotated[str, Meta(description="then or now: whether what became known later is left out or included.")]
    features: dict[str, FeatureView]


def _features(context: Context[WithReader], params: FeaturesParams) -> FeaturesResult:
    asked = person_as_of(context, params.id, params.as_of, params.known)
    vector = asked.views("features").get("features", {})
    return FeaturesResult(
        person=asked.person.id, position=asked.person.position, as_of=asked.shown_at,
        known="now" if asked.as_of is None else params.known, features=feature_views(_chosen(vector, params.names)),
    )  # fmt: skip


def _vector(context: Context[WithReader], person: Person, at: int, known_at: int | None = None) -> Vector:
    views = context.engine.reader.views(person, at, known_at=known_at, names=["features"])
    vector: Vector = views.get("features", {})
    return vector


def _chosen(vector: Vector, names: str | Collection[str]) -> Vector:
    """The features of these names, in their order; all of them for none. Raises `NotFound` for an unknown one."""
    wanted = comma_separated(names) if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in vector:
            raise NotFound(f"there is no feature {name[:100]!r}", hint="`features_list` lists them all")
    return {name: vector[name] for name in wanted} if wanted else vector


FEATURES = Operation(
    name="features_of",
    group=FEATURES_GROUP,
    summary="Show a person's feature vector, now or as it was served at an instant.",
    params=FeaturesParams,
    result=FeaturesResult,
    run=_features,
    method="GET",
    path="/v1/people/{id}/features",
    example=FeaturesParams(id="user_id:42", names="monetary_total,recency_days"),
)

# --- training sets ----------------------------------------------------------------------------


class LabelParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Of whom and at which instant a vector is wanted."""

    person: PersonRef
    at: Time
    label: Annotated[Any, Meta(description="What is to be learned; returned unchanged.")] = None


class TrainingParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The labels, and which features to give for each."""

    labels: Annotated[list[LabelParams], Meta(max_length=TRAINING_ROWS_MAX)]
    names: Annotated[list[str], Meta(description="Names of features; empty: all.", max_length=1_000)] = []
    known: Known = "then"


class TrainingRow(msgspec.Struct, kw_only=True):
    """A label with the values at its instant."""

    person: Annotated[str, Meta(description="The person's id; empty if there is no such person.")]
    at: Instant
    label: Any
    status: Annotated[str, Meta(description="ok, or not_found: there is no such person, and every value is null.")]
    values: dict[str, Any]
    statuses: Annotated[dict[str, str], Meta(description="PRESENT, STALE or NOT_FOUND for each value.")]


class TrainingSet(msgspec.Struct, kw_only=True):
    """Rows in the order of the labels; every row has the same columns."""

    columns: list[str]
    rows: list[TrainingRow]


class Needs(WithReader, WithCatalogue, Protocol):
    """What is needed here of the engine."""


def _training_set(context: Context[Needs], params: TrainingParams) -> TrainingSet:
    def whom(ref: str) -> ReadVector:
        if params.known == "then":
            past = context.engine.reader.identity_history(context.workspace, ref)

            def then(at: int) -> tuple[str, Vector]:
                person = past.at(at)
                return person.id, _vector(context, person, at, at)

            return then
        person = context.engine.reader.person(context.workspace, ref)
        return lambda at: (person.id, _vector(context, person, at))

    labels = read_labels([(each.person, each.at, each.label) for each in params.labels], context.now)
    # What is said of nobody names every feature there is, so that columns do not depend on who is asked for.
    columns = list(_chosen(context.engine.catalogue.of_nobody("features", context.now), params.names))
    return TrainingSet(columns=columns, rows=[_training_row(row) for row in training_rows(labels, columns, whom)])


def _training_row(row: Row) -> TrainingRow:
    return TrainingRow(
        person=row.person, at=instant(row.label.at), label=row.label.value, status=row.status, values=row.values,
        statuses=row.statuses,
    )  # fmt: skip


TRAINING_SET = Operation(
    name="features_training_set",
    group=FEATURES_GROUP,
    summary="Give the feature vectors of people at label times, as they were served then.",
    params=TrainingParams,
    result=TrainingSet,
    run=_training_set,
    method="POST",
    path="/v1/features/training_set",
    example=TrainingParams(
        labels=[LabelParams(person="user_id:42", at="2026-03-01T12:00:00Z", label=True)], names=["monetary_total"]
    ),
)

# --- the best people --------------------------------------------------------------------------


class TopParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """By which feature, and how many people."""

    name: Annotated[str, Meta(description="A feature that is a number.", min_length=1, max_length=100)]
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 10
    lowest: Annotated[bool, Meta(description="The lowest first instead of the highest.")] = False


class TopEntry(msgspec.Struct, kw_only=True):
    """One person's place."""

    rank: int
    person: str
    identifiers: Identifiers
    value: int | float


class TopResult(msgspec.Struct, kw_only=True):
    """People in the order of a feature; equal ones in that of their ids."""

    name: str
    as_of: Instant
    people_read: Annotated[int, Meta(description="Every person of the workspace: it takes time in proportion.")]
    top: list[TopEntry]


def _top(context: Context[Needs], params: TopParams) -> TopResult:
    _chosen(context.engine.catalogue.of_nobody("features", context.now), [params.name])
    sign, read = 1 if params.lowest else -1, 0
    heap: list[tuple[Any, ...]] = []
    # The worst of those kept stands first: by value, then by id from the end of the alphabet, so that of equals the
    # first ids stay.
    for person in context.engine.reader.all_people(context.workspace):
        read += 1
        value = _vector(context, person, context.now)[params.name]["value"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        entry = (-sign * value, tuple(-ord(c) for c in person.id), value, person)
        if len(heap) < params.limit:
            heapq.heappush(heap, entry)
        elif entry[:2] > heap[0][:2]:
            heapq.heapreplace(heap, entry)
    ranked = sorted(heap, key=lambda entry: entry[:2], reverse=True)
    names = context.engine.reader.identifiers_of(context.workspace, [entry[3].id for entry in ranked])
    top = [
        TopEntry(rank=rank, person=person.id, identifiers=names.get(person.id, []), value=value)
        for rank, (_, _, value, person) in enumerate(ranked, 1)
    ]
    return TopResult(name=params.name, as_of=instant(context.now), people_read=read, top=top)


FEATURE_TOP = Operation(
    name="features_top",
    relies_on=("people",),
    group=FEATURES_GROUP,
    summary="List the people with the highest values of a feature; reads every person.",
    params=TopParams,
    result=TopResult,
    run=_top,
    method="GET",
    path="/v1/features/{name}/top",
    example=TopParams(name="monetary_total", limit=10),
)

# --- definitions ------------------------------------------------------------------------------


class DefinitionsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class FeatureDefinition(msgspec.Struct, kw_only=True):
    """What a feature is made of."""

    name: str
    description: str
    aggregate: str
    events: Annotated[list[str], Meta(description="The types that feed it; * is any. Empty for one built on features.")]
    features: Annotated[list[str], Meta(description="The features it is built on.")]
    window: Annotated[str, Meta(description="e.g. 30d, or lifetime.")]
    unit: str
    empty: Annotated[Any, Meta(description="Its value where there is nothing to compute with.")]
    version: int
    stale_after: Annotated[str | None, Meta(description="How old its newest event may be before it is STALE.")]


class DefinitionsResult(msgspec.Struct, kw_only=True):
    """Every feature in force, by name."""

    fingerprint: Annotated[str, Meta(description="Changes with anything declared.")]
    features: list[FeatureDefinition]


def _definition(feature: Feature) -> FeatureDefinition:
    return FeatureDefinition(
        name=feature.name, description=feature.description, aggregate=feature.aggregate,
        events=sorted({feed.type for feed in feature.source.feeds}) if feature.source is not None else [],
        features=list(feature.needs), window="lifetime" if feature.window is None else format_duration(feature.window),
        unit=feature.unit, empty=feature.empty, version=feature.version,
        stale_after=None if feature.stale_after is None else format_duration(feature.stale_after),
    )  # fmt: skip


def definitions_operation(features: FeatureSet) -> Operation:
    """The operation that tells these definitions."""
    shown = [_definition(feature) for feature in sorted(features.features, key=lambda f: f.name) if not feature.hidden]
    result = DefinitionsResult(fingerprint=features.fingerprint, features=shown)
    return Operation(
        name="features_list",
        group=FEATURES_GROUP,
        summary="List the features in force and what each is made of.",
        params=DefinitionsParams,
        result=DefinitionsResult,
        run=lambda context, params: result,
        method="GET",
        path="/v1/features",
        example=DefinitionsParams(),
    )
