"""What this Threadline derives, does and answers, as it runs now."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.seen import known_types
from threadline.kernel.disclosure import not_personal
from threadline.kernel.event_type import Origin, Speaker
from threadline.kernel.operation import Context, NoParams, operation


@not_personal
class ProjectionView(msgspec.Struct, kw_only=True):
    """One kind of knowledge about a person."""

    name: str
    version: int
    handles: Annotated[list[str] | None, Meta(description="The event types it is folded from; null: every type.")]
    ordered: Annotated[bool, Meta(description="Whether a late event makes it fold the person's log again.")]
    fingerprint: Annotated[str, Meta(description="Changes with the definitions that shape it.")]


@not_personal
class PolicyView(msgspec.Struct, kw_only=True):
    """Something that is done because of events."""

    name: str
    handles: Annotated[list[str] | None, Meta(description="The event types it reacts to; null: every type.")]


@not_personal
class OperationView(msgspec.Struct, kw_only=True):
    """Something that can be asked."""

    name: str
    summary: str
    method: str
    path: str
    scope: str


@not_personal
class KindView(msgspec.Struct, kw_only=True):
    """A kind of identifier."""

    name: str
    priority: Annotated[
        int, Meta(description="0 is the strongest; an event is kept in the thread of its strongest identifier.")
    ]
    limit: Annotated[int, Meta(description="How many of this kind one person may have.")]
    normalise: str
    identifying: bool
    joins: bool
    shared: bool


@not_personal
class EventTypeView(msgspec.Struct, kw_only=True):
    """A type of events."""

    name: str
    about: Annotated[str, Meta(description="What happened.")]
    speaker: Annotated[
        Speaker,
        Meta(
            description="Who may say it: `threadline` alone, the `process` that has opened the store as well, or "
            "`anyone` who has a write key. What somebody else says is in the log and counts for nothing."
        ),
    ]
    origin: Annotated[
        Origin,
        Meta(
            description="From where it is known: it ships (`threadline`), has a `schema` of yours, is made by other "
            "`definitions` such as a rule, or was only `seen`: somebody has sent one."
        ),
    ]
    sentence: Annotated[str, Meta(description="How an event reads, with the names of properties in braces.")]
    is_activity: Annotated[bool, Meta(description="Whether it is something that the person did.")]
    properties: Annotated[dict[str, Any], Meta(description="JSON Schema (2020-12) of the properties.")]


@not_personal
class CatalogueView(msgspec.Struct, kw_only=True):
    """Everything in force."""

    projections: list[ProjectionView]
    policies: list[PolicyView]
    operations: list[OperationView]
    identifiers: list[KindView]
    event_types: Annotated[
        list[str],
        Meta(description="The types that anybody may send and that are known here; any other may be used as well."),
    ]
    types: Annotated[
        list[EventTypeView],
        Meta(description="What is known of each type: Threadline's own, yours, and those that somebody has sent."),
    ]
    event_schemas: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Event type -> the JSON Schema (2020-12) that properties of new events have to fit."),
    ]


@operation("GET /v1/catalogue")
def catalogue(context: Context, params: NoParams) -> CatalogueView:
    """List the projections, policies, operations and kinds of identifiers in force."""
    catalogue = context.engine.catalogue
    types = known_types(context.engine, context.workspace).known
    return CatalogueView(
        projections=[
            ProjectionView(
                name=p.name,
                version=p.version,
                handles=None if p.handles is None else sorted(p.handles),
                ordered=p.ordered,
                fingerprint=p.fingerprint,
            )
            for p in catalogue.projections
        ],
        policies=[
            PolicyView(name=p.name, handles=None if p.handles is None else sorted(p.handles))
            for p in catalogue.policies
        ],
        operations=[
            OperationView(name=o.name, summary=o.summary, method=o.method, path=o.path, scope=o.scope)
            for o in catalogue.operations
        ],
        identifiers=[
            KindView(
                name=k.name,
                priority=k.priority,
                limit=k.limit,
                normalise=k.normalise,
                identifying=k.identifying,
                joins=k.joins,
                shared=k.shared,
            )
            for k in sorted(catalogue.rules.kinds.values(), key=lambda k: (k.priority, k.name))
        ],
        event_types=[type.name for type in types if type.speaker == "anyone"],
        types=[
            EventTypeView(
                name=type.name,
                about=type.about,
                speaker=type.speaker,
                origin=type.origin,
                sentence=type.sentence,
                is_activity=type.acts,
                properties=dict(type.schema),
            )
            for type in types
        ],
        event_schemas={requirement.name: dict(requirement.schema) for requirement in catalogue.requirements.values()},
    )
