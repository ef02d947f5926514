"""Everything that is linked to an event, a decision, something sent, a rule, or an object."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.linked import Network
from threadline.capabilities.ask.search.operations import SEARCH_GROUP
from threadline.capabilities.ask.search.operations.find import people_by_thread
from threadline.capabilities.foundation.events.forms import EventView, event_view
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import CORRELATED_EVENTS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import Choice, Context, Params, always, operation
from threadline.kernel.search import Query

DECISIONS_OF_RULE = 20
"""The newest decisions of a rule, from which its network begins."""


class CorrelateParams(Params, kw_only=True):
    """Where to begin."""

    id: Annotated[
        str,
        Meta(
            description="The id of an event or a decision, of a mail or another effect, or the producer's id of the "
            "object that events are about.",
            max_length=512,
        ),
    ] = ""
    rule: Annotated[str, names_a("rule"), Meta(description="A rule: its newest decisions.", max_length=100)] = ""
    limit: Annotated[int, Meta(description="How many events at most.", ge=1, le=CORRELATED_EVENTS_MAX)] = 100


@key_fields("relation", "via", "event")
@not_personal
class Link(msgspec.Struct, kw_only=True):
    """An event that is linked to the beginning."""

    event: EventView
    relation: Annotated[
        Literal["itself", "cause", "consequence", "same object"],
        Meta(description="cause: an event nearer to the beginning names it; consequence: it names one of those."),
    ]
    via: Annotated[str, Meta(description="The id by which it was come upon.")]
    distance: Annotated[int, Meta(description="Links between it and the beginning.")]


class Correlated(msgspec.Struct, kw_only=True):
    """The network around the beginning, in the order of recording."""

    links: list[Link]
    cut: Annotated[bool, Meta(description="Whether there is more than this.")]
    position: Annotated[int, Meta(description="Of the log's entries so many were searched, the first ones.")]
    complete: Annotated[bool, Meta(description="Whether that is the whole log.")]


@operation(
    "GET /v1/search/correlate",
    SEARCH_GROUP,
    is_long=always,
    example=CorrelateParams(id="0123456789abcdef0123456789abcdef"),
    choices=(Choice(("id", "rule"), required=True),),
)
def correlate(context: Context, params: CorrelateParams) -> Correlated:
    """Show everything linked to an event, a decision, a mail, a rule or an object."""
    network = Network(context, params.limit)
    if params.rule:
        decisions = Query(context.workspace, decisions=True, rule=params.rule, limit=DECISIONS_OF_RULE)
        leads = network.begin(network.matching(decisions), "itself", params.rule)
    else:
        itself = context.engine.log.events(context.workspace, [params.id])
        leads = network.begin(itself.values(), "itself", params.id)
        # Objects lead no further: thousands of events may be about one product.
        objects = {params.id, *(event.event.object_id for event in itself.values())} - {""}
        about = [event for event in network.naming(objects) if event.event.object_id in objects]
        leads += [params.id, *network.begin(about, "same object", "")]
    network.follow(leads)
    if not network.links:
        raise NotFound(f"nothing in the log is linked to {(params.rule or params.id)[:64]!r}")
    links = sorted(
        network.links.values(),
        key=lambda link: (link.recorded.recorded_at, link.recorded.thread, link.recorded.sequence),
    )
    people = people_by_thread(context, (link.recorded for link in links))
    return Correlated(
        links=[
            Link(
                event=event_view(link.recorded, people.get(link.recorded.thread, "")),
                relation=link.relation,
                via=link.via or link.recorded.event.object_id,
                distance=link.distance,
            )
            for link in links
        ],
        cut=network.is_cut,
        position=network.progress.position,
        complete=network.progress.is_complete,
    )
