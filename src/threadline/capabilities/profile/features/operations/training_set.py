"""Feature vectors of people at label times, as they were served then."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef, Time, instant
from threadline.capabilities.foundation.events.parameters import Known
from threadline.capabilities.profile.features.operations import FEATURES_GROUP
from threadline.capabilities.profile.features.operations.vector import chosen, vector_of
from threadline.capabilities.profile.features.training import ReadVector, Row, Vector, read_labels, training_rows
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import TRAINING_ROWS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import COLUMNS, Context, Params, always, operation


class LabelParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The person and the instant for which a vector is wanted."""

    person: PersonRef
    at: Time
    label: Annotated[Any, Meta(description="What is to be learned; returned unchanged.")] = None


class TrainingParams(Params, kw_only=True):
    """The labels, and which features to give for each."""

    labels: Annotated[list[LabelParams], Meta(max_length=TRAINING_ROWS_MAX)]
    names: Annotated[
        list[str], names_a("feature"), Meta(description="Names of features; empty: all.", max_length=1_000)
    ] = []
    known: Known = "then"


@key_fields("label", "values", "at", "person")
class TrainingRow(msgspec.Struct, kw_only=True):
    """A label with the values at its instant."""

    person: Annotated[str, Meta(description="The person's id; empty if there is no such person.")]
    at: Instant
    label: Any
    status: Annotated[str, Meta(description="ok, or not_found: there is no such person, and every value is null.")]
    values: Annotated[dict[str, Any], COLUMNS]
    statuses: Annotated[dict[str, str], COLUMNS, Meta(description="PRESENT, STALE or NOT_FOUND for each value.")]


class TrainingSet(msgspec.Struct, kw_only=True):
    """Rows in the order of the labels; every row has the same columns."""

    columns: list[str]
    rows: list[TrainingRow]


@operation(
    "POST /v1/features/training_set",
    FEATURES_GROUP,
    is_long=always,
    example=TrainingParams(
        labels=[LabelParams(person="user_id:42", at="2026-03-01T12:00:00Z", label=True)], names=["monetary_total"]
    ),
)
def training_set(context: Context, params: TrainingParams) -> TrainingSet:
    """Give the feature vectors of people at label times, as they were served then."""

    def whom(ref: str) -> ReadVector:
        if params.known == "then":
            past = context.engine.reader.identity_history(context.workspace, ref)

            def then(at: int) -> tuple[str, Vector]:
                person = past.at(at)
                return person.id, vector_of(context, person, at, at)

            return then
        person = context.engine.reader.person(context.workspace, ref)
        return lambda at: (person.id, vector_of(context, person, at))

    labels = read_labels([(label.person, label.at, label.label) for label in params.labels], context.now)
    # What is said of nobody names every feature there is, so that columns do not depend on who is asked for.
    columns = list(chosen(context.engine.catalogue.of_nobody("features", context.now), params.names))
    return TrainingSet(columns=columns, rows=[_training_row(row) for row in training_rows(labels, columns, whom)])


def _training_row(row: Row) -> TrainingRow:
    return TrainingRow(
        person=row.person,
        at=instant(row.label.at),
        label=row.label.value,
        status=row.status,
        values=row.values,
        statuses=row.statuses,
    )
