"""Events and decisions by their words, types, people, rules, statuses and times, the newest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.documents import texts_of
from threadline.capabilities.ask.search.operations import SEARCH_GROUP
from threadline.capabilities.ask.search.words import fragments, phrases_of
from threadline.capabilities.decide.rules.acting import STATUSES
from threadline.capabilities.decide.rules.projection import decision_of
from threadline.capabilities.foundation.events.forms import EventView, PersonRef, event_view, time_param
from threadline.capabilities.foundation.events.parameters import Next, TimeRange
from threadline.kernel.disclosure import NOT_PERSONAL, free, not_personal
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import SEARCH_QUERY_LENGTH_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, always, operation
from threadline.kernel.search import Matches, Phrase, Query

LIMIT_MAX = 200
SearchCursor = Annotated[
    str,
    Meta(
        description="The `next` of the previous page. Opaque.",
        max_length=400,
        extra_json_schema={"pattern": "^[!-~]*$"},
    ),
]
"""Where a page of what a search finds begins."""


class FindParams(TimeRange, kw_only=True):
    """What to search for. Everything that is given must be true of an event; nothing given is every event."""

    text: Annotated[
        str,
        Meta(
            description='Words that must all occur; "in this order" in quotes, begin* for the beginning of a word, '
            "-without a word.",
            max_length=SEARCH_QUERY_LENGTH_MAX,
        ),
    ] = ""
    kind: Annotated[
        Literal["", "event", "decision"], Meta(description="Only decisions of rules, or only what is none.")
    ] = ""
    type: Annotated[str, Meta(description="Only events of this type.", max_length=200)] = ""
    person: PersonRef | None = None
    rule: Annotated[str, names_a("rule"), Meta(description="Only decisions of this rule.", max_length=100)] = ""
    status: Annotated[Literal["", *STATUSES], Meta(description="Only decisions of this status.")] = ""  # type: ignore[valid-type]
    facets: Annotated[bool, Meta(description="Count types, rules and statuses among the newest matches.")] = False
    cursor: SearchCursor = ""
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=LIMIT_MAX)] = 20


class Highlight(msgspec.Struct, kw_only=True):
    """Where words of the query occur in an event."""

    path: Annotated[str, Meta(description="In which field, such as properties.title."), NOT_PERSONAL]
    text: Annotated[str, Meta(description="The field's text around the first of them."), free(named_by="path")]
    spans: Annotated[list[tuple[int, int]], Meta(description="Start and end of each in that text, in characters.")]


@key_fields("highlights", "event")
class Hit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A match."""

    event: EventView
    highlights: list[Highlight] = []
    rule: Annotated[str, Meta(description="The rule, if it is a decision.")] = ""
    status: Annotated[str, Meta(description="The status, if it is a decision.")] = ""


@not_personal
class FacetsView(msgspec.Struct, kw_only=True):
    """How often which value occurs among the newest matches, the most frequent first."""

    counted: Annotated[int, Meta(description="Matches that were counted.")]
    complete: Annotated[bool, Meta(description="Whether these were all.")]
    types: dict[str, int]
    rules: dict[str, int]
    statuses: dict[str, int]


class Found(msgspec.Struct, kw_only=True):
    """Matches by the time at which they occurred, the newest first. A page may be short of its limit before the end."""

    hits: list[Hit]
    next: Next = ""
    position: Annotated[
        int, Meta(description="Of the log's entries so many are searched, the first ones; nothing of these is missed.")
    ]
    complete: Annotated[bool, Meta(description="Whether that is the whole log.")]
    facets: FacetsView | None = None


@operation(
    "GET /v1/search",
    SEARCH_GROUP,
    is_long=always,
    example=FindParams(text='"red shoes" -returned', type="purchase_completed"),
)
def find(context: Context, params: FindParams) -> Found:
    """Find events and decisions by words, type, person, rule, status and time."""
    engine = context.engine
    threads = None
    if params.person is not None:
        threads = tuple(engine.reader.person(context.workspace, params.person).heads)
    phrases = phrases_of(params.text)
    query = Query(
        context.workspace,
        phrases,
        {"": None, "decision": True, "event": False}[params.kind],
        params.type,
        threads,
        params.rule,
        params.status,
        (),
        time_param(params.start),
        time_param(params.stop),
        params.cursor,
        params.limit,
        params.facets,
    )
    matches = engine.search.search(query)
    events = matching_events(context, query, matches)
    people = people_by_thread(context, events.values())
    return Found(
        hits=[_hit(event, phrases, people.get(event.thread, "")) for event in events.values()],
        next=matches.next,
        position=matches.progress.position,
        complete=matches.progress.is_complete,
        facets=_facets(matches),
    )


def matching_events(context: Context, query: Query, matches: Matches) -> dict[str, Recorded]:
    """The events of a page, in its order. What was erased a moment ago is gone, and times are compared exactly."""
    by_id = context.engine.log.events(context.workspace, matches.ids)
    events = {id: by_id[id] for id in matches.ids if id in by_id}
    return {
        id: event
        for id, event in events.items()
        if (query.start is None or event.event.occurred_at >= query.start)
        and (query.stop is None or event.event.occurred_at < query.stop)
        and (query.threads is None or event.thread in query.threads)
    }


def people_by_thread(context: Context, events: Iterable[Recorded]) -> dict[str, str]:
    """Thread -> the id of the person whose it is now."""
    people = context.engine.reader.by_threads(list(dict.fromkeys(event.thread for event in events)))
    return {thread: person.id for thread, person in people.items()}


def _hit(recorded: Recorded, phrases: Sequence[Phrase], person: str) -> Hit:
    decision = decision_of(recorded)
    rule, status = ("", "") if decision is None else (decision[0], decision[2])
    shown = [
        Highlight(path=fragment.path, text=fragment.text, spans=fragment.spans)
        for fragment in (fragments(texts_of(recorded.event), phrases) if phrases else ())
    ]
    return Hit(event=event_view(recorded, person), highlights=shown, rule=rule, status=status)


def _facets(matches: Matches) -> FacetsView | None:
    if matches.facets is None:
        return None
    counted, complete, values = matches.facets
    return FacetsView(
        counted=counted,
        complete=complete,
        types=dict(values.get("type", {})),
        rules=dict(values.get("rule", {})),
        statuses=dict(values.get("status", {})),
    )
