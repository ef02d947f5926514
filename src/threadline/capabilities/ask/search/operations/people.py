"""People by part of what they are called by: a name, an address, an id, a phone number, in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.search.documents import texts_of
from threadline.capabilities.ask.search.operations.find import Highlight, SearchCursor, matching_events
from threadline.capabilities.ask.search.words import BEGINNING_LENGTH_MIN, Fragment, folded, fragments, words_of
from threadline.capabilities.foundation.conditions import Conditions
from threadline.capabilities.foundation.events.parameters import Next
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.capabilities.profile.people.operations.people import (
    LOOKED_AT_MAX,
    PersonSummary,
    condition_of,
    fits,
    summary,
)
from threadline.kernel.errors import InvalidValue, NotConfigured, ThreadlineError, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import SEARCH_QUERY_LENGTH_MAX, SEARCH_WORDS_MAX
from threadline.kernel.operation import JSON_TEXT, Context, Params, always, operation
from threadline.kernel.ports import Person
from threadline.kernel.search import Phrase, Query

LIMIT_MAX = 100
_PAGES_MAX = 10
"""Pages of the index that one page of people may take, where words are in events that name nobody."""
_EXACT_KINDS = ("email", "phone")
"""Kinds of identifiers for which no kind has to be written."""
_STAGES = ("", "identify", "any", "people")
"""What a cursor begins with: the list it goes on in."""
_NAMING = ("identifiers.", "context.traits.")
"""Paths of what names the person of an event, whatever its type."""


class PeopleFindParams(Params, kw_only=True):
    """What to look for; nothing: who was active last."""

    text: Annotated[
        str,
        Meta(
            description="Part of a name, an address, a user id or another identifier; the beginnings of words, in any "
            "case and without accents. Whole identifiers are found first.",
            max_length=SEARCH_QUERY_LENGTH_MAX,
        ),
    ] = ""
    when: Annotated[
        str,
        Meta(
            description="Only people for whom this condition holds, as JSON, in the language of segments and rules.",
            max_length=8_000,
        ),
        JSON_TEXT,
    ] = ""
    cursor: SearchCursor = ""
    limit: Annotated[int, Meta(description="How many on a page.", ge=1, le=LIMIT_MAX)] = 25


@key_fields("name", "identifiers", "last_seen_at")
class PersonFound(PersonSummary, kw_only=True):
    """A person, and what of them matches."""

    because: Annotated[
        Highlight | None,
        Meta(description="What matches, and where it stands; null for a whole identifier, and without a text."),
    ] = None


class PeopleFound(msgspec.Struct, kw_only=True):
    """People: of a whole identifier, then those of the newest events that name them so.

    With a text somebody may come again on a later page; without one there is a single page.
    """

    people: list[PersonFound]
    people_read: Annotated[
        int, Meta(description="People who were looked at one by one, where the index knew nobody; 0 otherwise.")
    ] = 0
    complete: Annotated[
        bool, Meta(description="False: the index lacks the newest events, and more people may be found later.")
    ] = True
    next: Next = ""


class _Page(msgspec.Struct):
    """A page in the making."""

    context: Context
    params: PeopleFindParams
    condition: Conditions | None
    people: dict[str, PersonFound] = {}

    def is_full(self) -> bool:
        return len(self.people) >= self.params.limit

    def add(self, person: Person, because: Highlight | None = None) -> None:
        if person.id in self.people or person.workspace != self.context.workspace:
            return
        if self.condition is not None and not fits(self.context, person, self.condition):
            return
        listed = msgspec.structs.asdict(summary(self.context, person))
        self.people[person.id] = PersonFound(**listed, because=because)


@operation("GET /v1/people-found", PEOPLE_GROUP, is_long=always, example=PeopleFindParams(text="ada lov"))
def find(context: Context, params: PeopleFindParams) -> PeopleFound:
    """Find people by part of a name, an address or an identifier; without a text, who was active last."""
    text = params.text.strip()
    page = _Page(context, params, condition_of(context, params.when) if params.when else None)
    stage, _, cursor = params.cursor.partition(":")
    if stage not in _STAGES:
        raise InvalidValue("this cursor is of another list: pass the `next` of an answer as it is", param="cursor")
    if text and not stage:
        for person in _named(context, text):
            page.add(person)
    if stage != "people":
        try:
            following, complete = _indexed(page, text, stage, cursor)
        except (NotConfigured, Unavailable):
            following, complete = "", True
        if not text:
            following = ""  # who was active before them is on no page: the same people would come again and again
        if page.people or following:
            return PeopleFound(people=_ordered(page, text), next=following, complete=complete)
    read, after = _looked_at(page, text, cursor if stage == "people" else "")
    return PeopleFound(people=list(page.people.values()), people_read=read, next=after and f"people:{after}")


def _ordered(page: _Page, text: str) -> list[PersonFound]:
    people = list(page.people.values())
    return people if text else sorted(people, key=lambda person: person.last_seen_at or "", reverse=True)


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


def _looked_at(page: _Page, text: str, after: str) -> tuple[int, str]:
    """Look at people one by one: without an index, and for what is in the middle of words."""
    wanted = [folded(part) for part in text.split()]
    read = 0
    while True:
        people, after = page.context.engine.reader.people(page.context.workspace, after, page.params.limit)
        for person in people:
            read += 1
            because = _part_of(page.context, person, wanted) if wanted else None
            if because is not None or not wanted:
                page.add(person, because)
            if page.is_full():
                return read, person.id
        if not after or read >= LOOKED_AT_MAX:
            return read, after


def _part_of(context: Context, person: Person, wanted: list[str]) -> Highlight | None:
    """The first text that names the person and has one of the words in it, if every word is in some."""
    traits = context.engine.reader.views(person, context.now, names=["profile"])["profile"]["traits"]
    texts = [(f"identifiers.{own.kind}", own.value) for own in person.identifiers.values()]
    texts += [(f"properties.{name}", value) for name, value in traits.items() if isinstance(value, str)]
    fitting = [next(((p, t) for p, t in texts if word in folded(t)), None) for word in wanted]
    if None in fitting or fitting[0] is None:
        return None
    path, text = fitting[0]
    return Highlight(path=path, text=text[:120], spans=[])
