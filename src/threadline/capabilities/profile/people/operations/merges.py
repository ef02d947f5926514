"""Two people who are one, one who are two: preview, merge, split, undo, and the joins that wait for a decision."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.causes import Causes, causes_of
from threadline.capabilities.foundation.events.forms import EventId, Instant, PersonRef, checked_id, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, next_of
from threadline.capabilities.foundation.events.requests import RequestKey, derived_key
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP, QUARANTINE_GROUP
from threadline.capabilities.profile.people.operations.people import PersonSummary, summary
from threadline.kernel.disclosure import IDENTIFIERS, SENTENCE, not_personal
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.event import Recorded, identifier_named
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, operation

Reason = Annotated[str, Meta(description="Why; it is kept in the event.", max_length=500)]

# --- merge ------------------------------------------------------------------------------------


class MergePreviewParams(Params, kw_only=True):
    """Which two people would be joined."""

    id: PersonRef
    other: PersonRef


class MergeParams(Params, kw_only=True):
    """Which two people to join, and why."""

    id: PersonRef
    other: PersonRef
    reason: Reason = ""
    dry_run: Annotated[bool, Meta(description="Only show what would happen.")] = False
    force: Annotated[bool, Meta(description="Join them even if that breaks an identity limit.")] = False
    request: RequestKey = ""


@not_personal
class MergeResult(msgspec.Struct, kw_only=True):
    """Who stays, who goes (an alias from then on), and the person that the two are or would be."""

    done: bool
    survivor: str
    merged: str
    objection: Annotated[str, Meta(description="Why it would be refused; empty if it would not."), SENTENCE] = ""
    event: Annotated[str, Meta(description="The id of the merge's event; `unmerge` takes it.")] = ""
    causes: Causes | None = None
    person: PersonSummary


@operation(
    "GET /v1/people/{id}/merge",
    PEOPLE_GROUP,
    example=MergePreviewParams(id="user_id:42", other="email:ada@example.com"),
)
def merge_preview(context: Context, params: MergePreviewParams) -> MergeResult:
    """Preview the merge of two people, and any objection to it."""
    identity, workspace = context.engine.identity, context.workspace
    union, merged, objection = identity.preview_merge(workspace, params.id, params.other)
    return MergeResult(
        done=False,
        survivor=union.id,
        merged=merged.id,
        objection=objection,
        person=summary(context, union),
        causes=causes_of(identity.foretell_merge(workspace, params.id, params.other)),
    )


@operation(
    "POST /v1/people/{id}/merge",
    PEOPLE_GROUP,
    done=("Joined with {other}",),
    scope="admin",
    example=MergeParams(id="user_id:42", other="email:ada@example.com", reason="told so by phone", dry_run=True),
)
def merge(context: Context, params: MergeParams) -> MergeResult:
    """Merge two people into one; the older one stays."""
    if params.dry_run:
        return merge_preview(context, MergePreviewParams(id=params.id, other=params.other))
    engine = context.engine
    first, second = (engine.reader.person(context.workspace, ref) for ref in (params.id, params.other))
    recorded = _event_of_request(context, [first, second], MERGED, params.request)
    if recorded is None:
        if first.id == second.id:
            raise Conflict("they are already one person")
        request = params.request or derived_key("merge", *_standing(first, second))
        survivor, merged = engine.identity.merge(
            context.workspace,
            first.id,
            second.id,
            request=request,
            reason=params.reason,
            by=context.source,
            force=params.force,
        )
        recorded = _event_of_request(
            context, [engine.reader.person(context.workspace, survivor)], MERGED, request, merged=merged
        )
    elif first.id != second.id:
        raise Conflict(
            "this request was carried out before, for others or undone since; give a new `request` to join them"
        )
    _refuse_other(recorded, params.request, recorded.event.properties["reason"] == params.reason)
    properties = recorded.event.properties
    person = engine.reader.person(context.workspace, properties["survivor"])
    return MergeResult(
        done=True, survivor=person.id, merged=properties["merged"], event=recorded.id, person=summary(context, person)
    )


def _standing(*people: Any) -> list[str]:
    """Who is meant at which position: a wish of the same words after anything has happened is another wish."""
    return sorted(f"{person.id}@{person.position}" for person in people)


def _refuse_other(recorded: Recorded, request: str, is_same: bool) -> None:
    if not is_same:
        raise Conflict(
            f"the request {request!r} was used for something else, {recorded.id}; give this one its own name"
        )


def _event_of_request(context: Context, people: list[Any], type_: str, request: str, **properties: str) -> Any:
    """The event of a request that was carried out: the newest of these people's of a type that it caused, or None."""
    if request:
        for person in people:
            for recorded in context.engine.reader.all_events(person, types=frozenset({type_}), reverse=True):
                known = recorded.event.properties
                if recorded.cause == request and all(known.get(name) == value for name, value in properties.items()):
                    return recorded
    return None


# --- split and unmerge ------------------------------------------------------------------------


class SplitParams(Params, kw_only=True):
    """Which identifiers to take out of a person, with the events of their threads."""

    id: PersonRef
    identifiers: Annotated[list[str], Meta(description="User ids, or kind:value.", min_length=1, max_length=64)]
    reason: Reason = ""
    dry_run: Annotated[bool, Meta(description="Only show what would happen.")] = False
    request: RequestKey = ""


class SplitResult(msgspec.Struct, kw_only=True):
    """The person who keeps the id and the one who is new, or back."""

    done: bool
    person: PersonSummary
    new: PersonSummary
    event: Annotated[str, Meta(description="The event that tells of it.")] = ""


@operation(
    "POST /v1/people/{id}/split",
    PEOPLE_GROUP,
    done=("Split off {identifiers}",),
    scope="admin",
    example=SplitParams(
        id="user_id:42", identifiers=["email:info@example.com"], reason="a shared mail box", dry_run=True
    ),
)
def split(context: Context, params: SplitParams) -> SplitResult:
    """Take identifiers, with their events, out of a person."""
    engine = context.engine
    if params.dry_run:
        remaining, new = engine.identity.preview_split(context.workspace, params.id, params.identifiers)
        return SplitResult(done=False, person=summary(context, remaining), new=summary(context, new))
    person = engine.reader.person(context.workspace, params.id)
    recorded = _event_of_request(context, [person], SPLIT, params.request)
    if recorded is None:
        request = params.request or derived_key("split", *_standing(person), *sorted(params.identifiers))
        remaining_id, new_id = engine.identity.split(
            context.workspace, person.id, params.identifiers, request=request, reason=params.reason, by=context.source
        )
        return _split_result(context, remaining_id, new_id, request)
    properties = recorded.event.properties
    is_same = properties["reason"] == params.reason and _names_the_same(context, params.identifiers, properties)
    _refuse_other(recorded, params.request, is_same)
    return _split_result(
        context, recorded.event.properties["person"], recorded.event.properties["split"], params.request
    )


def _names_the_same(context: Context, identifiers: list[str], split: dict[str, Any]) -> bool:
    """Whether these are what a split took out, or what it left where the founding identifier was to be taken out."""
    rules, moved = context.engine.catalogue.rules, set(split["threads"])
    named = [set(rules.threads(context.workspace, identifier_named(text))) for text in identifiers]
    together = set().union(*named)
    return (moved <= together and all(forms & moved for forms in named)) or (
        split["person"] in together and not together & moved
    )


def _split_result(context: Context, person: str, new: str, request: str) -> SplitResult:
    remaining, apart = (context.engine.reader.person(context.workspace, id) for id in (person, new))
    if remaining.id == apart.id:
        raise Conflict("this request was carried out before and undone since; give a new `request`")
    recorded = _event_of_request(context, [remaining], SPLIT, request, split=new)
    return SplitResult(
        done=True,
        person=summary(context, remaining),
        new=summary(context, apart),
        event="" if recorded is None else recorded.id,
    )


class UnmergeParams(Params, kw_only=True):
    """Which merge to undo."""

    id: EventId
    reason: Reason = ""
    request: RequestKey = ""


@operation(
    "POST /v1/events/{id}/unmerge",
    PEOPLE_GROUP,
    done=("Undid a join",),
    scope="admin",
    example=UnmergeParams(id="0123456789abcdef0123456789abcdef", reason="two people after all"),
)
def unmerge(context: Context, params: UnmergeParams) -> SplitResult:
    """Undo a merge, as if the two people had never been merged."""
    engine = context.engine
    merge = engine.log.event(context.workspace, checked_id(params.id))
    if merge.event.type != MERGED:
        raise InvalidValue(f"event {params.id} is a {merge.event.type}, not a merge")
    # A merge can be undone once, so its own id names the wish.
    request = params.request or derived_key("unmerge", params.id)
    survivor = engine.reader.person(context.workspace, merge.event.properties["survivor"])
    recorded = _event_of_request(context, [survivor], SPLIT, request)
    if recorded is not None:
        _refuse_other(recorded, request, recorded.event.properties["reason"] == params.reason)
        return _split_result(context, recorded.event.properties["person"], recorded.event.properties["split"], request)
    remaining, back = engine.identity.unmerge(
        context.workspace, params.id, request=request, reason=params.reason, by=context.source
    )
    return _split_result(context, remaining, back, request)


# --- joins set aside --------------------------------------------------------------------------


class QuarantineParams(Page, kw_only=True):
    """Which of the joins that were not done to list."""

    status: Annotated[str, Meta(description="open, joined or dismissed; empty: all.", max_length=20)] = "open"
    limit: Annotated[int, Meta(description="Joins looked at for one page.", ge=1, le=999)] = 100


@key_fields("identifiers", "reason", "status", "id")
class DoubtfulJoin(msgspec.Struct, kw_only=True):
    """A join that an event asked for and a guard stopped."""

    id: str
    identifiers: Annotated[list[str], Meta(description="The two that stood in one event, kind:value."), IDENTIFIERS]
    reason: Annotated[str, Meta(description="Why it would be refused."), SENTENCE]
    event: Annotated[str, Meta(description="The first event that asked for it.")]
    at: Instant
    status: Annotated[str, Meta(description="open, joined or dismissed.")]


class QuarantinePage(msgspec.Struct, kw_only=True):
    """Joins by id. The filter may leave a page short of its limit; it is the last only if ``next`` is empty."""

    joins: list[DoubtfulJoin]
    next: Next = ""


@operation("GET /v1/quarantine", QUARANTINE_GROUP, example=QuarantineParams(limit=20))
def list_(context: Context, params: QuarantineParams) -> QuarantinePage:
    """List the merges of people that were set aside for review."""
    page = context.engine.identity.quarantined(context.workspace, params.cursor, params.limit)
    joins = [_join_view(join) for join in page if params.status in ("", join["status"])]
    return QuarantinePage(joins=joins, next=next_of(page, params.limit, lambda entry: str(entry["id"])))


def _join_view(entry: dict[str, Any]) -> DoubtfulJoin:
    return DoubtfulJoin(
        id=entry["id"],
        identifiers=entry["identifiers"],
        reason=entry["reason"],
        event=entry["event"],
        at=instant(entry["at"]),
        status=entry["status"],
    )


class ReviewParams(Params, kw_only=True):
    """What to do about a join that was set aside."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    join: Annotated[bool, Meta(description="true: join them across the limit; false: leave them apart for good.")]


@operation(
    "POST /v1/quarantine/{id}",
    QUARANTINE_GROUP,
    done=("Decided on a join in doubt, joined: {join}",),
    scope="admin",
    example=ReviewParams(id="0123456789abcdef0123456789abcdef-0123456789abcdef0123456789abcdef", join=True),
)
def review(context: Context, params: ReviewParams) -> DoubtfulJoin:
    """Decide about a merge that was set aside: merge, or keep apart."""
    return _join_view(context.engine.identity.review(context.workspace, params.id, join=params.join, by=context.source))
