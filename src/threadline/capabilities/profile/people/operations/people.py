"""Lists of people: all, or those of one identifier, tag, group or segment, and for whom a condition holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.fields import PROFILE
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, page_of
from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.capabilities.profile.people.operations.person import name_in
from threadline.capabilities.profile.segments.definition import SECTION_NAME, read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments, segment_named
from threadline.capabilities.profile.segments.projection import member_rows
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import PERSONAL
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Identifier
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX, PAGE_ITEMS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import JSON_TEXT, Choice, Context, Operation, shaped_operation
from threadline.kernel.policy import Read
from threadline.kernel.ports import Person
from threadline.kernel.store import Item, query_pages

_CONDITION_LENGTH_MAX = 8_000
_PAGES_MAX = 50
"""Pages of the store that one page of people may take, where others' people lie in between."""
LOOKED_AT_MAX = 1_000
"""People to whom a condition is put in one call."""
_TOGETHER = 100
"""People who are read together to put a condition to them."""


class PeopleParams(Page, kw_only=True):
    """All people, or those of one identifier, tag, group or segment; of these, those for whom a condition holds."""

    identifier: Annotated[
        str, Meta(description="A user id, or kind:value; nobody or one person.", max_length=1_024)
    ] = ""
    tag: Annotated[str, names_a("tag"), Meta(max_length=IDENTIFIER_LENGTH_MAX)] = ""
    group: Annotated[str, Meta(description="A group's id.", max_length=IDENTIFIER_LENGTH_MAX)] = ""
    segment: Annotated[
        str,
        names_a("segment"),
        Meta(description="The members of a declared segment, found in an index.", max_length=64),
    ] = ""
    when: Annotated[
        str,
        Meta(
            description="A condition as JSON, in the language of segments and rules: "
            '`{"field": "features.monetary_total", "gt": 100}`, also with `all`, `any` and `not`. People are looked '
            f"at one by one, at most {LOOKED_AT_MAX:,} in a call: a page may be short or empty, go on with `next`.",
            max_length=_CONDITION_LENGTH_MAX,
        ),
        JSON_TEXT,
    ] = ""


@key_fields("name", "identifiers", "last_seen_at")
class PersonSummary(msgspec.Struct, kw_only=True):
    """A person in a list."""

    id: str
    name: Annotated[
        str, Meta(description="What to call them, by their traits; empty where these do not say."), PERSONAL
    ] = ""
    email: Annotated[
        str, Meta(description="Their address: an identifier, or else the trait `email`; empty without one."), PERSONAL
    ] = ""
    identifiers: Identifiers
    tags: list[str] = []
    events: int
    created_at: Instant
    last_seen_at: Instant | None


class PeoplePage(msgspec.Struct, kw_only=True):
    """People in a stable order that has no meaning."""

    people: list[PersonSummary]
    people_read: Annotated[int, Meta(description="How many the condition was put to; 0 without one.")] = 0
    being_filled: BeingFilled = ""
    next: Next = ""


def _read(params: PeopleParams) -> tuple[IndexPart, ...]:
    """What is gone through, and asked of each, that is written for everybody."""
    rows = [IndexPart(SECTION_NAME, params.segment)] if params.segment else []
    rows += [IndexPart(PROFILE)] if params.tag or params.group else []
    return (*rows, *(_read_condition(params.when).parts if params.when else ()))


@shaped_operation(
    "GET /v1/people",
    PEOPLE_GROUP,
    is_long=lambda params: bool(params.when),
    choices=(Choice(("identifier", "tag", "group", "segment")),),
    relies_on=("people", "segments"),
    relied_on=_read,
    example=PeopleParams(tag="vip", limit=20),
)
def list_(segments: Segments, context: Context, params: PeopleParams) -> PeoplePage:
    """List people: all, or by identifier, tag, group, segment or a condition."""
    if params.segment:
        segment_named(segments, params.segment)
    condition = condition_of(context, params.when) if params.when else None
    filling = being_filled(context.engine, _read(params))
    if condition is not None:
        return msgspec.structs.replace(_matching(context, params, condition), being_filled=filling)
    people, following = _page(context, params)
    return PeoplePage(people=[summary(context, person) for person in people], being_filled=filling, next=following)


def _page(context: Context, params: PeopleParams) -> tuple[list[Any], str]:
    if params.identifier:
        return _named(context, params.identifier), ""
    if params.segment:
        size = params.limit + 1
        rows = member_rows(context.engine.store, context.workspace, params.segment, params.cursor, size)
        page, following = page_of(rows, params.limit, lambda row: row.key.sort)
        return [person for row in page if (person := _of_row(context, row)) is not None], following
    if params.tag or params.group:
        return _indexed(context, "tag" if params.tag else "group", params.tag or params.group, params)
    return _everybody(context, params)


def _read_condition(written: str) -> Conditions:
    try:
        return Conditions(read_json(msgspec.json.decode(written), "when"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValue(f"when: this is not JSON: {error}", param="when") from None


def condition_of(context: Context, written: str) -> Conditions:
    """The condition that a caller wrote as JSON. Raises `InvalidValue` for what none can be."""
    conditions = _read_condition(written)
    conditions.refuse_event_fields("when")
    context.engine.catalogue.refuse_unread(Read(name, path, "when") for name, path in conditions.reads)
    return conditions


def _matching(context: Context, params: PeopleParams, conditions: Conditions) -> PeoplePage:
    summaries: list[PersonSummary] = []
    read, cursor = 0, params.cursor
    while True:
        people, following = _page(context, msgspec.structs.replace(params, cursor=cursor, limit=_TOGETHER))
        for person in people:
            read += 1
            if fits(context, person, conditions):
                summaries.append(summary(context, person))
                if len(summaries) == params.limit:
                    # Every list of people goes on after the last one's id.
                    return PeoplePage(
                        people=summaries, people_read=read, next=person.id if not params.identifier else ""
                    )
        if not following or read >= LOOKED_AT_MAX:
            return PeoplePage(people=summaries, people_read=read, next=following)
        cursor = following


def fits(context: Context, person: Person, conditions: Conditions) -> bool:
    """Whether a condition holds for a person now."""
    return conditions.test(Subject(context.engine.reader.as_of(person, context.now).view, at=context.now))


def _of_row(context: Context, row: Item) -> Person | None:
    # A partition is named by workspace and value together: where the name of a workspace holds the mark between
    # them, a row may be of another workspace, and is passed over.
    with contextlib.suppress(NotFound):
        return context.engine.reader.person(context.workspace, row.key.sort)
    return None


def _named(context: Context, identifier: str) -> list[Any]:
    try:
        return [context.engine.reader.person(context.workspace, identifier)]
    except NotFound:
        return []


def _indexed(context: Context, table: str, value: str, params: PeopleParams) -> tuple[list[Any], str]:
    engine = context.engine
    size = min(params.limit + 1, PAGE_ITEMS_MAX)
    rows = query_pages(engine.store, table, f"{context.workspace}/{value}", params.cursor, size=size)
    page, following = page_of(rows, params.limit, lambda row: row.key.sort)
    people = [person for row in page if (person := _of_row(context, row)) is not None]
    return [person for person in people if _has_now(context, person, table, value)], following


def _has_now(context: Context, person: Person, table: str, value: str) -> bool:
    """Whether somebody has a tag or is in a group whose row is there: the event of it may lie ahead of the clock."""
    if context.engine.reader.as_of(person, context.now).ahead() is None:
        return True
    return value in context.engine.reader.views(person, context.now, names=["profile"])["profile"][f"{table}s"]


def _everybody(context: Context, params: PeopleParams) -> tuple[list[Any], str]:
    people: list[Any] = []
    after = params.cursor
    for _ in range(_PAGES_MAX):
        page, after = context.engine.reader.people(context.workspace, after, params.limit - len(people))
        people += page
        if not after or len(people) == params.limit:
            break
    return people, after


def summary(context: Context, person: Person) -> PersonSummary:
    """A person in a list."""
    rules = context.engine.catalogue.rules
    ordered = sorted(person.identifiers.values(), key=rules.rank)
    views = context.engine.reader.views(person, context.now, names=["activity", "profile"])
    profile = views.get("profile", {"traits": {}, "tags": []})
    return PersonSummary(
        id=person.id,
        name=name_in(profile["traits"]),
        email=_address(ordered, profile["traits"]),
        identifiers=[str(i) for i in ordered],
        tags=profile["tags"],
        events=person.position,
        created_at=instant(person.created_at),
        last_seen_at=views.get("activity", {}).get("last_seen_at"),
    )


def _address(identifiers: Iterable[Identifier], traits: Mapping[str, Any]) -> str:
    own = next((identifier.value for identifier in identifiers if identifier.kind == "email"), "")
    trait = traits.get("email")
    return own or (trait if isinstance(trait, str) else "")


def declare(definitions: Definitions) -> list[Operation]:
    """The list of people, which can be that of a segment's members."""
    return [list_(read_segments(definitions) or ())]
