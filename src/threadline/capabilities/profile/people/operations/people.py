"""Lists of people: all, or those of one identifier, tag, group or segment, and for whom a condition holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from threadline.capabilities.profile.people.projection import group_key, grouped, tagged_since
from threadline.capabilities.profile.people.tags import tag_key, tagged
from threadline.capabilities.profile.segments.definition import SECTION_NAME, read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments, segment_named
from threadline.capabilities.profile.segments.projection import member_key, member_rows
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import PERSONAL
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Identifier, is_thread_id
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX, PAGE_ITEMS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import JSON_TEXT, Choice, Context, Operation, shaped_operation
from threadline.kernel.policy import Read
from threadline.kernel.ports import Person

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
    events: Annotated[int, Meta(description="How many were ever recorded of them, erased ones too.")]
    created_at: Instant
    last_seen_at: Instant | None
    tagged_at: Annotated[
        Instant | None, Meta(description="Since when they have the tag that is asked for; null where none is.")
    ] = None


class PeoplePage(msgspec.Struct, kw_only=True):
    """People in a stable order that has no meaning."""

    people: list[PersonSummary]
    people_read: Annotated[int, Meta(description="How many the condition was put to; 0 without one.")] = 0
    being_filled: BeingFilled = ""
    next: Next = ""


def rows_read(params: PeopleParams) -> tuple[IndexPart, ...]:
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
    relied_on=rows_read,
    example=PeopleParams(tag="vip", limit=20),
)
def list_(segments: Segments, context: Context, params: PeopleParams) -> PeoplePage:
    """List people: all, or by identifier, tag, group, segment or a condition."""
    if params.segment:
        segment_named(segments, params.segment)
    condition = condition_of(context, params.when) if params.when else None
    filling = being_filled(context.engine, rows_read(params))
    if condition is not None:
        return msgspec.structs.replace(_matching(context, params, condition), being_filled=filling)
    people, following = people_in(context, params)
    return PeoplePage(
        people=[summary(context, person, params.tag) for person in people], being_filled=filling, next=following
    )


def people_in(context: Context, params: PeopleParams) -> tuple[list[Any], str]:
    """A page of the people of a list, without its condition, and the cursor after it."""
    if params.identifier:
        return _named(context, params.identifier), ""
    if params.segment:
        size = params.limit + 1
        rows = member_rows(context.engine.store, context.workspace, params.segment, params.cursor, size)
        page, following = page_of((row.key.sort for row in rows), params.limit, str)
        return _people_of(context, page), following
    if params.tag or params.group:
        return _indexed(context, params)
    return _everybody(context, params)


def _read_condition(written: str, param: str = "when") -> Conditions:
    try:
        return Conditions(read_json(msgspec.json.decode(written), param))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValue(f"{param}: this is not JSON: {error}", param=param) from None


def condition_of(context: Context, written: str, param: str = "when") -> Conditions:
    """The condition that a caller wrote as JSON. Raises `InvalidValue` for what none can be."""
    conditions = _read_condition(written, param)
    conditions.refuse_event_fields(param)
    context.engine.catalogue.refuse_unread(Read(name, path, param) for name, path in conditions.reads)
    return conditions


def _matching(context: Context, params: PeopleParams, conditions: Conditions) -> PeoplePage:
    summaries: list[PersonSummary] = []
    read, cursor = 0, params.cursor
    while True:
        people, following = people_in(context, msgspec.structs.replace(params, cursor=cursor, limit=_TOGETHER))
        for person in people:
            read += 1
            if fits(context, person, conditions):
                summaries.append(summary(context, person, params.tag))
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


def ids_of(context: Context, params: PeopleParams) -> Iterator[str]:
    """The ids of everybody in a segment, with a tag or in a group, as the index has them."""
    store, size = context.engine.store, PAGE_ITEMS_MAX
    if params.segment:
        rows = member_rows(store, context.workspace, params.segment, "", size)
        ids: Iterable[str] = (row.key.sort for row in rows)
    else:
        ids = _with_tag_or_in_group(context, params, "", size)
    return (id for id in ids if is_thread_id(id))


def members_among(context: Context, params: PeopleParams, ids: Sequence[str]) -> list[str]:
    """Who of these people is in a segment, has a tag or is in a group, as the index has it."""
    if params.segment:
        keys = [member_key(context.workspace, params.segment, id) for id in ids]
    elif params.tag:
        keys = [tag_key(context.workspace, params.tag, id) for id in ids]
    else:
        keys = [group_key(context.workspace, params.group, id) for id in ids]
    return [id for id, item in zip(ids, context.engine.store.get(keys), strict=True) if item is not None]


def _with_tag_or_in_group(context: Context, params: PeopleParams, after: str, size: int) -> Iterator[str]:
    """The ids of everybody with a tag or in a group after one, read ``size`` at a time."""
    store, workspace = context.engine.store, context.workspace
    while True:
        if params.tag:
            page = tagged(store, workspace, params.tag, after, size)
        else:
            page = grouped(store, workspace, params.group, after, size)
        yield from page
        if len(page) < size:
            return
        after = page[-1]


def _people_of(context: Context, ids: Iterable[str]) -> list[Person]:
    """The people of rows that were read; without those who were erased or joined since."""
    people = []
    for id in ids:
        with contextlib.suppress(NotFound):
            people.append(context.engine.reader.person(context.workspace, id))
    return people


def _named(context: Context, identifier: str) -> list[Any]:
    try:
        return [context.engine.reader.person(context.workspace, identifier)]
    except NotFound:
        return []


def _indexed(context: Context, params: PeopleParams) -> tuple[list[Any], str]:
    size = min(params.limit + 1, PAGE_ITEMS_MAX)
    ids = _with_tag_or_in_group(context, params, params.cursor, size)
    page, following = page_of(ids, params.limit, str)
    return [person for person in _people_of(context, page) if _has_now(context, person, params)], following


def _has_now(context: Context, person: Person, params: PeopleParams) -> bool:
    """Whether somebody has a tag or is in a group whose row is there: the event of it may lie ahead of the clock."""
    if context.engine.reader.as_of(person, context.now).ahead() is None:
        return True
    profile = context.engine.reader.views(person, context.now, names=["profile"])["profile"]
    return params.tag in profile["tags"] if params.tag else params.group in profile["groups"]


def _everybody(context: Context, params: PeopleParams) -> tuple[list[Any], str]:
    people: list[Any] = []
    after = params.cursor
    for _ in range(_PAGES_MAX):
        page, after = context.engine.reader.people(context.workspace, after, params.limit - len(people))
        people += page
        if not after or len(people) == params.limit:
            break
    return people, after


def summary(context: Context, person: Person, tag: str = "") -> PersonSummary:
    """A person in a list; ``tag``: since when they have it."""
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
        tagged_at=_tagged_at(context, person, tag) if tag else None,
    )


def _tagged_at(context: Context, person: Person, tag: str) -> Instant | None:
    at = tagged_since(context.engine.reader.state(person, PROFILE, context.now), tag)
    return None if at is None else instant(at)


def _address(identifiers: Iterable[Identifier], traits: Mapping[str, Any]) -> str:
    own = next((identifier.value for identifier in identifiers if identifier.kind == "email"), "")
    trait = traits.get("email")
    return own or (trait if isinstance(trait, str) else "")


def declare(definitions: Definitions) -> list[Operation]:
    """The list of people, which can be that of a segment's members."""
    return [list_(read_segments(definitions) or ())]
