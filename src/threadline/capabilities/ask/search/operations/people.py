"""People by part of what they are called by: a name, an address, an id, a phone number, in any case."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.documents import texts_of
from threadline.capabilities.ask.search.naming import CUT, matching, parts_of, plain
from threadline.capabilities.ask.search.operations.find import Highlight, SearchCursor, matching_events
from threadline.capabilities.ask.search.words import BEGINNING_LENGTH_MIN, Fragment, fragments, words_of
from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.fields import Read, reader
from threadline.capabilities.foundation.conditions.operators import decimal_of, instant_of
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Time, time_param
from threadline.capabilities.foundation.events.parameters import Next
from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.capabilities.profile.people.operations.people import (
    LOOKED_AT_MAX,
    PeopleParams,
    PersonSummary,
    condition_of,
    fits,
    ids_of,
    members_among,
    people_in,
    rows_read,
    summary,
)
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments, segment_named
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import PERSONAL, SENTENCE
from threadline.kernel.errors import InvalidValue, NotConfigured, ThreadlineError, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX, SEARCH_QUERY_LENGTH_MAX, SEARCH_WORDS_MAX
from threadline.kernel.names import names_a
from threadline.kernel.operation import COLUMNS, JSON_TEXT, Context, Operation, Params, always, shaped_operation
from threadline.kernel.ports import Person
from threadline.kernel.search import PeopleMatches, PeopleOrder, PeopleQuery, Phrase, Query

LIMIT_MAX = 1_000
_PAGES_MAX = 10
"""Pages of the index that one page of people may take, where words are in events that name nobody."""
_EXACT_KINDS = ("email", "phone")
"""Kinds of identifiers for which no kind has to be written."""
PEOPLE, LOOKED_AT = "index", "people"
_STAGES = ("identify", "any", LOOKED_AT)
"""What a cursor begins with: the list it goes on in."""
_TOGETHER = 100
"""People who are read together to look at each."""
_MEMBERS_MAX = 3_000
"""Members of a segment, with a tag or in a group who are looked up among people; of more, people are among them."""
_READ_MAX = 400
"""People who are read one by one in a call, for a condition."""
_LOOKED_UP_MAX = 10_000
"""People who are looked up among the members of something in a call."""
TEXT_SHOWN_MAX = 120
_NAMING = ("identifiers.", "context.traits.")
"""Paths of what names the person of an event, whatever its type."""


class PeopleFindParams(Params, kw_only=True):
    """What to look for, and among whom; nothing: who was active last."""

    text: Annotated[
        str,
        Meta(
            description="Part of a name, an address, a user id, a phone number or another identifier or trait, in any "
            "case and without accents. Whole identifiers are found first.",
            max_length=SEARCH_QUERY_LENGTH_MAX,
        ),
    ] = ""
    segment: Annotated[
        str, names_a("segment"), Meta(description="Only members of this declared segment.", max_length=64)
    ] = ""
    tag: Annotated[str, names_a("tag"), Meta(max_length=IDENTIFIER_LENGTH_MAX)] = ""
    group: Annotated[str, Meta(description="A group's id.", max_length=IDENTIFIER_LENGTH_MAX)] = ""
    seen_from: Annotated[Time | None, Meta(description="Only people last seen at this instant or later.")] = None
    seen_before: Annotated[Time | None, Meta(description="Only people last seen before this instant, or never.")] = None
    when: Annotated[
        str,
        Meta(
            description="Only people for whom this condition holds, as JSON, in the language of segments and rules. "
            "People are then looked at one by one, some hundreds in a call: go on with `next`.",
            max_length=8_000,
        ),
        JSON_TEXT,
    ] = ""
    sort: Annotated[PeopleOrder, Meta(description="last_seen and created: the newest first; name: from A on.")] = (
        "last_seen"
    )
    reverse: Annotated[bool, Meta(description="The other way round.")] = False
    fields: Annotated[
        list[str],
        Meta(description="Further values of each, such as `traits.plan` or `features.orders`.", max_length=20),
    ] = []
    cursor: SearchCursor = ""
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=LIMIT_MAX)] = 25


@key_fields("name", "identifiers", "last_seen_at")
class PersonFound(PersonSummary, kw_only=True):
    """A person, and what of them matches."""

    because: Annotated[
        Highlight | None,
        Meta(description="What matches, and where it stands; null for a whole identifier, and without a text."),
    ] = None
    fields: Annotated[dict[str, Any], COLUMNS, PERSONAL, Meta(description="The `fields` that were asked for.")] = {}


class PeopleFound(msgspec.Struct, kw_only=True):
    """People of a whole identifier first, then the others in their order."""

    people: list[PersonFound]
    total: Annotated[
        int | None,
        Meta(description="How many people match, on all pages; null where they are looked at one by one."),
    ] = None
    more: Annotated[bool, Meta(description="Whether there are more than `total`, and they were not counted.")] = False
    people_read: Annotated[int, Meta(description="People who were looked at one by one; 0 where an index answers.")] = 0
    complete: Annotated[
        bool, Meta(description="False: the index lacks the newest events, and more people may be found later.")
    ] = True
    note: Annotated[
        str, Meta(description="What this store cannot do here, and what to set for it; empty as a rule."), SENTENCE
    ] = ""
    being_filled: BeingFilled = ""
    next: Next = ""


class _Page(msgspec.Struct):
    """A page in the making."""

    context: Context
    params: PeopleFindParams
    parts: tuple[tuple[str, ...], ...]
    """The text as it is compared with what names people."""
    condition: Conditions | None
    people: dict[str, PersonFound] = {}

    def is_full(self) -> bool:
        return len(self.people) >= self.params.limit

    def add(self, person: Person, because: Highlight | None = None) -> bool:
        """Add a person for whom everything holds; whether one was added."""
        if person.id in self.people or person.workspace != self.context.workspace:
            return False
        if self.condition is not None and not fits(self.context, person, self.condition):
            return False
        if not _was_seen(listed := summary(self.context, person), self.params):
            return False
        self.people[person.id] = PersonFound(**msgspec.structs.asdict(listed), because=because)
        return True

    def because(self, person: Person) -> Highlight | None:
        """What names somebody that matches the text."""
        traits = self.context.engine.reader.views(person, self.context.now, names=["profile"])["profile"]["traits"]
        place = matching(self.context.engine, person, traits, self.parts)
        return None if place is None else Highlight(path=place[0], text=place[1][:TEXT_SHOWN_MAX], spans=place[2])


def _was_seen(person: PersonSummary, params: PeopleFindParams) -> bool:
    at = None if person.last_seen_at is None else time_param(person.last_seen_at)
    start, stop = time_param(params.seen_from), time_param(params.seen_before)
    return (start is None or (at is not None and at >= start)) and (stop is None or at is None or at < stop)


def _read(params: PeopleFindParams) -> tuple[IndexPart, ...]:
    """What is gone through, and asked of each, that is written for everybody."""
    return rows_read(PeopleParams(segment=params.segment, tag=params.tag, group=params.group, when=params.when))


@shaped_operation(
    "GET /v1/people-found",
    PEOPLE_GROUP,
    is_long=always,
    relies_on=("people", "segments"),
    relied_on=_read,
    example=PeopleFindParams(text="ada lov"),
)
def find(segments: Segments, context: Context, params: PeopleFindParams) -> PeopleFound:
    """Find people by part of a name, an address, an id or a phone number; without a text, those active last."""
    if params.segment:
        segment_named(segments, params.segment)
    page = _Page(context, params, parts_of(params.text), _condition(context, params))
    stage, _, cursor = params.cursor.partition(":")
    if stage not in ("", PEOPLE, *_STAGES):
        raise InvalidValue("this cursor is of another list: pass the `next` of an answer as it is", param="cursor")
    if stage in ("", PEOPLE):
        try:
            answer = _of_index(page, cursor)
        except (NotConfigured, Unavailable) as error:
            answer = _without_index(page, "", "", f"{str(error)[:1].upper()}{str(error)[1:]}. {error.hint}".strip())
        else:
            if page.parts and not stage and not answer.people and not answer.next:
                # By what they were called before, if by nothing that names them now.
                former = _by_events(page, "", "")
                answer = former if former.people else answer
    elif stage == LOOKED_AT:
        answer = _without_index(page, stage, cursor, "")
    else:
        answer = _by_events(page, stage, cursor)
    if params.fields:
        answer.people = _with_fields(context, params.fields, answer.people)
    return msgspec.structs.replace(answer, being_filled=being_filled(context.engine, _read(params)))


def _with_fields(context: Context, fields: Sequence[str], people: Sequence[PersonFound]) -> list[PersonFound]:
    """People with further values of theirs. Raises `InvalidDefinition` for a field that there is not."""
    reads: dict[str, Read] = {}
    for field in fields:
        exists = msgspec.json.encode({"field": field, "exists": True}).decode()
        reads[field] = reader(condition_of(context, exists, "fields").fields[0])
    known = context.engine.reader.people_of(context.workspace, [person.id for person in people])
    subjects = {
        id: Subject(context.engine.reader.as_of(person, context.now).view, at=context.now)
        for id, person in known.items()
    }
    return [
        msgspec.structs.replace(person, fields={name: read(subjects[person.id]) for name, read in reads.items()})
        if person.id in subjects
        else person
        for person in people
    ]


def _condition(context: Context, params: PeopleFindParams) -> Conditions | None:
    """All that has to hold for a person, but the text and when they were seen."""
    conditions: list[Any] = []
    if params.when:
        condition_of(context, params.when)
        conditions.append(msgspec.json.decode(params.when))
    if params.segment:
        conditions.append({"field": ["segments", params.segment], "exists": True})
    if params.tag:
        conditions.append({"field": "tags", "contains": params.tag})
    if params.group:
        conditions.append({"field": ["groups", params.group], "exists": True})
    return Conditions(read_json({"all": conditions}, "when")) if conditions else None


# --- by the index of people -----------------------------------------------------------------------


def _of_index(page: _Page, cursor: str) -> PeopleFound:
    """A page of the index of people. Raises `NotConfigured` and `Unavailable` without one."""
    params, engine = page.params, page.context.engine
    first = msgspec.structs.replace(page, people={})
    exact = [person for person in _named(page.context, params.text.strip()) if first.add(person)]
    if not params.cursor:
        page.people.update(first.people)
    if params.text.strip() and not page.parts:
        return PeopleFound(people=list(page.people.values()), total=len(exact))
    among, tested = _members(page.context, params)
    is_apart = bool(params.when or tested)
    query = PeopleQuery(
        page.context.workspace,
        _with_values(page.parts, params.when),
        params.sort,
        (params.sort != "name") != params.reverse,
        time_param(params.seen_from),
        time_param(params.seen_before),
        among,
        tuple(person.id for person in exact),
        is_counted=not is_apart,
    )
    read, is_last = 0, False
    while True:
        size = _TOGETHER if is_apart else max(params.limit - len(page.people), 1)
        matches = engine.search.people(query._replace(cursor=cursor, limit=size))
        if not page.is_full():
            taken, cursor = _take_people(page, matches, cursor, tested)
            read += taken
            is_last = matches.is_last and taken == len(matches.cursors)
        elif not matches.cursors:
            is_last = True
        if is_last or page.is_full() or read >= (_LOOKED_UP_MAX if tested and not params.when else _READ_MAX):
            break
    total: int | None = matches.total + len(exact)
    if is_apart:
        total = len(page.people) if is_last and not params.cursor else None
    return PeopleFound(
        people=list(page.people.values()),
        total=total,
        more=total is not None and not matches.is_total,
        people_read=read if is_apart else 0,
        complete=matches.progress.is_complete,
        next="" if is_last else f"{PEOPLE}:{cursor}",
    )


def _with_values(parts: tuple[tuple[str, ...], ...], when: str) -> tuple[tuple[str, ...], ...]:
    """The parts, and the values that traits have for whom a condition holds: few are read then, not everybody."""
    values = tuple(dict.fromkeys(map(plain, _trait_values(msgspec.json.decode(when))))) if when else ()
    if not values:
        return parts
    # Of somebody with more than an index holds, nobody knows without reading them.
    return tuple((*words, *more) for words in parts or ((),) for more in (values, (CUT,)))


def _trait_values(tree: Any) -> Iterator[str]:
    """Texts that traits have to be equal to, where everything else has to hold as well. Numbers and times may be
    written in several ways."""
    is_several = isinstance(tree, dict) and tree.keys() == {"all"}
    for clause in tree["all"] if is_several else [tree]:
        if isinstance(clause, dict) and clause.keys() == {"field", "equals"}:
            field, value = clause["field"], clause["equals"]
            is_trait = (field.split(".") if isinstance(field, str) else field)[0] == "traits"
            if is_trait and isinstance(value, str) and decimal_of(value) is None and instant_of(value) is None:
                yield value


def _take_people(page: _Page, matches: PeopleMatches, cursor: str, tested: Sequence[PeopleParams]) -> tuple[int, str]:
    """Add people until the page is full; how many were looked at, and the cursor after the last of them."""
    ids = list(matches.cursors)
    for listed in tested:
        ids = members_among(page.context, listed, ids)
    people = page.context.engine.reader.people_of(page.context.workspace, ids)
    read = 0
    for id, after in matches.cursors.items():
        if page.is_full():
            break
        read, cursor = read + 1, after
        if id in people:
            page.add(people[id], page.because(people[id]) if page.parts else None)
    return read, cursor


def _members(context: Context, params: PeopleFindParams) -> tuple[tuple[str, ...] | None, list[PeopleParams]]:
    """The people of a segment, a tag and a group, where these are few; and those lists in which there are many."""
    among: set[str] | None = None
    many: list[PeopleParams] = []
    for listed in (
        PeopleParams(segment=params.segment),
        PeopleParams(tag=params.tag),
        PeopleParams(group=params.group),
    ):
        if not (listed.segment or listed.tag or listed.group):
            continue
        ids = list(islice(ids_of(context, listed), _MEMBERS_MAX + 1))
        if len(ids) > _MEMBERS_MAX:
            many.append(listed)
        else:
            among = set(ids) if among is None else among & set(ids)
    return (None if among is None else tuple(sorted(among))), many


# --- without it -----------------------------------------------------------------------------------


def _by_events(page: _Page, stage: str, cursor: str) -> PeopleFound:
    """A page of the people of events that name them so; of the newest events without a text."""
    text = page.params.text.strip()
    following, complete = _indexed(page, text, stage, cursor)
    people = list(page.people.values())
    if not text:
        following = ""  # who was active before them is on no page: the same people would come again and again
        people = sorted(people, key=lambda person: person.last_seen_at or "", reverse=True)
    return PeopleFound(people=people, complete=complete, next=following)


def _without_index(page: _Page, stage: str, cursor: str, note: str) -> PeopleFound:
    """A page of a store whose index has no people: by events where it has these, else one person after the other."""
    params = page.params
    text = params.text.strip()
    if not stage:
        for person in _named(page.context, text) if text else ():
            page.add(person)
        if text or not (params.segment or params.tag or params.group):
            with contextlib.suppress(NotConfigured, Unavailable):
                answer = _by_events(page, "", "")
                if answer.people or answer.next:
                    return msgspec.structs.replace(answer, note=note)
    read, after = _looked_at(page, cursor)
    note = f"{note} People are looked at one by one, {LOOKED_AT_MAX:,} at a time, in no order.".strip()
    people = list(page.people.values())
    return PeopleFound(people=people, people_read=read, note=note, next=after and f"{LOOKED_AT}:{after}")


def _named(context: Context, text: str) -> Iterator[Person]:
    """People of whom the text is a whole identifier or the id."""
    for ref in (text, *(f"{kind}:{text}" for kind in _EXACT_KINDS)):
        try:
            yield context.engine.reader.person(context.workspace, ref)
        except ThreadlineError:  # nobody's, or not of the form of its kind: then it may be part of something
            continue


def _indexed(page: _Page, text: str, stage: str, cursor: str) -> tuple[str, bool]:
    """Fill the page from the index: by events that describe people first, then by any that name them."""
    phrases = tuple(_phrases(text))
    stages = ("identify", "any") if phrases else ("any",)
    complete = True
    if page.is_full():  # by whole identifiers
        return f"{stages[0]}:", complete
    for name in stages[stages.index(stage) if stage in stages else 0 :]:
        for _ in range(_PAGES_MAX):
            query = Query(
                page.context.workspace,
                phrases,
                type=IDENTIFY if name == "identify" else "",
                cursor=cursor,
                limit=page.params.limit - len(page.people),
            )
            matches = page.context.engine.search.search(query)
            complete = complete and matches.progress.is_complete
            _take(page, matching_events(page.context, query, matches).values(), phrases)
            cursor = matches.next
            if page.is_full():
                # Of the last page of this stage the next stage has its first one.
                return (f"{name}:{cursor}" if cursor else _begin_after(stages, name)), complete
            if not cursor:
                break
        else:
            return f"{name}:{cursor}", complete
    return "", complete


def _begin_after(stages: tuple[str, ...], name: str) -> str:
    following = stages[stages.index(name) + 1 :]
    return f"{following[0]}:" if following else ""


def _take(page: _Page, events: Iterable[Recorded], phrases: tuple[Phrase, ...]) -> None:
    shown = [(event, because) for event in events if (because := _because(event, phrases)) or not phrases]
    people = page.context.engine.reader.by_threads(list(dict.fromkeys(event.thread for event, _ in shown)))
    for event, because in shown:
        if event.thread in people:
            page.add(people[event.thread], because)


def _because(recorded: Recorded, phrases: tuple[Phrase, ...]) -> Highlight | None:
    """What of an event that names its person has the words; None where they stand elsewhere."""
    naming = (*_NAMING, "properties.") if recorded.event.type == IDENTIFY else _NAMING
    texts = [(path, text) for path, text in texts_of(recorded.event) if path.startswith(naming)]
    # Each word somewhere in what names the person: first and last name are two traits.
    matches = [max(fragments(texts, [phrase]), key=_words_shown, default=None) for phrase in phrases]
    first = matches[0] if matches and None not in matches else None
    return None if first is None else Highlight(path=first.path, text=first.text, spans=first.spans)


def _words_shown(fragment: Fragment) -> int:
    return len(fragment.spans)


def _phrases(text: str) -> Iterator[Phrase]:
    for part in text.split()[:SEARCH_WORDS_MAX]:
        if words := words_of(part):
            yield Phrase(words, is_beginning=len(words[-1]) >= BEGINNING_LENGTH_MIN)


def _looked_at(page: _Page, after: str) -> tuple[int, str]:
    """Look at people one by one, of a segment, a tag or a group if one is asked for."""
    params, read = page.params, 0
    listed = PeopleParams(segment=params.segment)
    if not params.segment:
        listed = PeopleParams(tag=params.tag) if params.tag else PeopleParams(group=params.group)
    while True:
        people, after = people_in(page.context, msgspec.structs.replace(listed, cursor=after, limit=_TOGETHER))
        for person in people:
            read += 1
            because = page.because(person) if page.parts else None
            if because is not None or not params.text.strip():
                page.add(person, because)
            if page.is_full():
                return read, person.id
        if not after or read >= LOOKED_AT_MAX:
            return read, after


def declare(definitions: Definitions) -> list[Operation]:
    """Finding people, who may be asked for among the members of a segment."""
    return [find(read_segments(definitions) or ())]
