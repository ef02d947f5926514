"""The person of an event: threads found, people created, merged and split, doubtful joins quarantined for review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from threadline.engine.folding.history import thread_events
from threadline.engine.folding.person import Person, begins_of, person_key, thread_key
from threadline.engine.folding.person_packing import alias_writes
from threadline.engine.folding.refold import fold_events, refold_person
from threadline.engine.folding.states import States
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.reactions import look_first, react
from threadline.engine.recording.validation import ResolvedIdentifier, ValidatedEvent
from threadline.engine.recording.working_set import ConcurrencyConflict
from threadline.kernel.errors import Conflict
from threadline.kernel.event import Event, Identifier, Recorded, event_id, marks_of, thread_id
from threadline.kernel.identity import MERGED, SPLIT, IdentityRules
from threadline.kernel.limits import THREADS_PER_PERSON_MAX
from threadline.kernel.projection import State
from threadline.kernel.store import Key, Put
from threadline.kernel.why import MERGE, Why

QUARANTINE = "quarantine"
NEVER_MERGED = "an operator has set them apart"
ALIAS_OF_USERS = "an alias says that two user ids are one person"
TOO_MANY_TO_JOIN = "to join them would change more items than a batch can hold; tags and groups count one each"


class Grounds(NamedTuple):
    """Why people are merged or split, for the event that says so."""

    cause: str
    """The id of the event or request that leads to it; one cause does it once."""
    reason: str
    by: str = ""
    """Who asked for it."""
    why: Why = MERGE
    """An operator's request, unless an event leads to it: then why that happened."""


def objections(rules: IdentityRules, person: Person, identifiers: Iterable[Identifier], other: Person | None) -> str:
    """Why these identifiers must not become the person's, or "" if nothing speaks against it.

    ``other`` is the person they come from, if the join is not an operator's request: a split is then respected.
    """
    own, theirs = set(person.identifiers.values()), set(identifiers)
    together = own | theirs
    if len(together) > THREADS_PER_PERSON_MAX:
        return f"one person may have {THREADS_PER_PERSON_MAX} identifiers"
    for kind in sorted({identifier.kind for identifier in theirs}):
        limit, count = rules.kind(kind).limit, _of_kind(rules, kind, together)
        # A person joined by force has too many already; other kinds may still be added.
        if count > limit and count > max(_of_kind(rules, kind, own), _of_kind(rules, kind, theirs)):
            return f"one person may have {limit} {kind}, together they have {count}"
    if other is not None and (
        set(person.never_merge) & other.heads.keys() or set(other.never_merge) & person.heads.keys()
    ):
        return NEVER_MERGED
    return ""


def _of_kind(rules: IdentityRules, kind: str, identifiers: Iterable[Identifier]) -> int:
    own = [identifier for identifier in identifiers if identifier.kind == kind]
    if rules.kind(kind).normalise == "strip" or len(own) <= rules.kind(kind).limit:
        return len(own)
    # Two forms of one address count once: one of them is of an earlier version.
    return len({rules.normalise(identifier) or identifier for identifier in own})


def _against(attempt: Attempt, person: Person, named: ResolvedIdentifier, owner: Person | None) -> str:
    """Why an event must not give the person an identifier that is ``owner``'s or nobody's; "" if it may."""
    rules = attempt.catalogue.rules
    if owner is not None:
        too_many = TOO_MANY_TO_JOIN if attempt.changes.position in attempt.isolation.unjoined else ""
        return too_many or objections(rules, person, owner.identifiers.values(), owner)
    return objections(rules, person, [named.identifier], None) or (
        NEVER_MERGED if named.thread in person.never_merge else ""
    )


def resolve(
    attempt: Attempt, workspace: str, named: Sequence[ResolvedIdentifier], id: str, why: Why
) -> tuple[Person, str]:
    """The person and the thread of an event. First contact creates, further identifiers link and join, for the reason
    of the event.

    The thread is that of the strongest identifier, whatever arrived before, so that arrival order never
    decides where an event is kept.
    """
    first = named[0]
    person = attempt.people.owner(first.thread)
    quarantined: list[Put] = []
    if person is None:
        person = _first_contact(attempt, workspace, named, id, quarantined)
    for other in named[1:]:
        owner = attempt.people.owner(other.thread)
        is_new = owner is None
        if is_new and other.former:
            owner = owner_of(attempt, other)
        if owner is person:
            if is_new:
                link(attempt, person, other)
            continue
        if against := _against(attempt, person, other, owner):
            quarantined += _quarantine(attempt, workspace, first, other, owner, against, id)
        elif owner is None:
            link(attempt, person, other)
        else:
            for part in (person, owner) if attempt.unfilled else ():
                look_first(attempt, part, MERGED, id)
            person = join(attempt, person, owner, Grounds(id, "identifiers in one event", why=why))
            if is_new:
                link(attempt, person, other)
    # In the batch of the event: sent again, it is a duplicate and quarantines nothing.
    for put in quarantined:
        attempt.changes.of(person, 1).writes[put.key] = put
    return person, first.thread


def owner_of(attempt: Attempt, named: ResolvedIdentifier) -> Person | None:
    """The person who has an identifier, or is known by a former form of it; None if nobody does.

    Today's form comes first: people who have one form each are joined by `threadline migrate`, with a preview.
    """
    owner = attempt.people.owner(named.thread)
    if owner is None and named.former:
        owners = (attempt.people.owner(thread) for thread in named.former)
        return next((owner for owner in owners if owner is not None), None)
    return owner


def _first_contact(
    attempt: Attempt, workspace: str, named: Sequence[ResolvedIdentifier], id: str, quarantined: list[Put]
) -> Person:
    first = named[0]
    for other in named:
        known = owner_of(attempt, other)
        if known is None:
            continue
        against = _against(attempt, known, first, None)
        if not against:
            link(attempt, known, first)
            return known
        if other is first:
            continue  # the person of a former form, who was set apart from it
        quarantined += _quarantine(attempt, workspace, first, other, known, against, id)
    # A person's id is the id of the founding thread: nothing is random, so two first contacts agree.
    person = Person(first.thread, workspace, attempt.now, States(attempt.catalogue))
    person.begins = begins_of(id)
    attempt.people.add(person)
    link(attempt, person, first)
    return person


def link(attempt: Attempt, person: Person, named: ResolvedIdentifier) -> None:
    """Give a person an identifier that was nobody's."""
    key = thread_key(named.thread)
    attempt.changes.of(person, 2).writes[key] = Put(key, person.id.encode(), 0)
    person.add_thread(named.thread, named.identifier)
    attempt.people.claim(named.thread, person)


def review_alias(attempt: Attempt, person: Person, validated: ValidatedEvent) -> None:
    """Let the join of two user ids wait for review where an alias names a second one that is somebody's.

    Its identifiers join nobody then: the name of before counts as an anonymous id, of which nothing is known.
    """
    workspace = person.workspace
    former = attempt.catalogue.rules.normalise(Identifier("user_id", validated.event.object_ref))
    if former is None:
        return
    other = ResolvedIdentifier(former, thread_id(workspace, former), 0, identifies=True)
    owner = attempt.people.owner(other.thread)
    if owner is not None and owner is not person:
        for put in _quarantine(attempt, workspace, validated.names[0], other, owner, ALIAS_OF_USERS, validated.id):
            attempt.changes.of(person, 1).writes[put.key] = put


def _quarantine(
    attempt: Attempt,
    workspace: str,
    resolved: ResolvedIdentifier,
    other: ResolvedIdentifier,
    owner: Person | None,
    why: str,
    id: str,
) -> list[Put]:
    """The write that quarantines a join, if it is not yet; ``owner`` has the other identifier."""
    if owner is not None:
        attempt.people.confirm(owner)
    pair = "-".join(sorted((resolved.thread, other.thread)))
    key = Key(QUARANTINE, workspace, pair)
    if key in attempt.quarantined or attempt.store.get([key])[0] is not None:
        return []  # reviewed or waiting for review already; the first event that raised it stands
    value = {
        "id": pair, "identifiers": [str(resolved.identifier), str(other.identifier)],
        "threads": [resolved.thread, other.thread], "reason": why, "event": id, "at": attempt.now, "status": "open",
    }  # fmt: skip
    attempt.quarantined.add(key)
    return [Put(key, msgspec.json.encode(value), 0)]


def join(attempt: Attempt, person: Person, other: Person, grounds: Grounds) -> Person:
    """Merge two people. The older survives and keeps its id; events stay where they are.

    The survivor's state becomes the fold of the union of both threads' events.
    """
    survivor, merged = sorted((person, other), key=lambda p: (p.created_at, p.id))
    if survivor.heads.keys() & merged.heads.keys():
        raise ConcurrencyConflict(f"threads of person {merged.id} were those of {survivor.id} already")
    change = attempt.changes.joined(survivor, merged)
    change.note_rows(survivor, attempt.catalogue)
    change.note_rows(merged, attempt.catalogue)
    _fold_union(attempt, survivor, merged)
    for thread, identifier in merged.identifiers.items():
        survivor.add_thread(thread, identifier, merged.heads[thread])
        key = thread_key(thread)
        # A thread that this very batch creates must still be absent; one that exists is guarded by the
        # version of the person it is taken from.
        created = change.writes.get(key)
        expected = created.expected if isinstance(created, Put) else None
        change.writes[key] = Put(key, survivor.id.encode(), expected)
        attempt.people.claim(thread, survivor)
    survivor.timers = survivor.timers | merged.timers
    survivor.pending += merged.pending
    survivor.never_merge = sorted((set(survivor.never_merge) | set(merged.never_merge)) - survivor.heads.keys())
    change.people.pop(merged.id, None)
    change.take(alias_writes(merged, survivor.id))
    attempt.people.departed[merged.id] = survivor
    properties = {
        "survivor": survivor.id, "merged": merged.id, "threads": sorted(merged.heads), "reason": grounds.reason,
        "by": grounds.by, "merged_created_at": merged.created_at,
    }  # fmt: skip
    change.count_rows(attempt.catalogue)
    merge = _note(attempt, survivor, MERGED, f"merge/{grounds.cause}/{merged.id}", properties, grounds)
    react(attempt, survivor, merge)
    return survivor


def _fold_union(attempt: Attempt, survivor: Person, merged: Person) -> None:
    """Make the survivor's states those of the union of both people's events."""
    catalogue = attempt.catalogue
    larger, smaller = sorted((survivor, merged), key=lambda p: p.position, reverse=True)
    outdated = larger.states.outdated | smaller.states.outdated
    states: list[State] = []
    commuting: list[int] = []
    by_log: list[int] = []
    for index, projection in enumerate(catalogue.projections):
        state = None
        if index not in outdated and (merge := projection.faster.merge) is not None:
            state = merge(larger.states[index], smaller.states[index])
        if state is None and (index in outdated or projection.ordered):
            by_log.append(index)
            state = projection.empty()
        elif state is None:
            commuting.append(index)
            state = larger.states[index]
        states.append(state)
    if commuting and smaller.position:
        fewer = chain(thread_events(attempt.store, smaller.stored_heads()), smaller.pending)
        fold_events(catalogue, fewer, states, only=commuting)
    union = Person(survivor.id, survivor.workspace, survivor.created_at, States(catalogue, states))
    if by_log:
        union.heads = {**survivor.stored_heads(), **merged.stored_heads()}
        pending = [*survivor.pending, *merged.pending]
        refold_person(attempt.store, catalogue, union, only=by_log, extra=pending)
    survivor.states, survivor.provisional, survivor.tail = union.states, None, None
    survivor.latest = max(survivor.latest, merged.latest)


def split(attempt: Attempt, person: Person, threads: list[str], id: str, created_at: int, grounds: Grounds) -> Person:
    """Take threads out of a person into one of this id, exactly as if they had never been joined.

    The founding thread (whose id is the person's) must not be among them.
    """
    change = attempt.changes.of(person, len(threads) + 6 + 2 * attempt.plans.of(person.workspace, SPLIT).room)
    change.note_rows(person, attempt.catalogue)
    alias = attempt.store.get([person_key(id)])[0]
    new = Person(id, person.workspace, created_at, States(attempt.catalogue))
    new.version = alias.version if alias is not None else 0
    new.begins = begins_of(grounds.cause)
    new.snapshot_item = None
    for thread in threads:
        new.add_thread(thread, *person.remove_thread(thread))
        key = thread_key(thread)
        change.writes[key] = Put(key, new.id.encode())
        attempt.people.claim(thread, new)
    for name, due_at in list(person.timers.items()):
        if name.partition("/")[0] in new.heads:
            new.set_timer(name, due_at)
            person.drop_timer(name)
    _divide_apart(attempt, person, new)
    refold_person(attempt.store, attempt.catalogue, person)
    refold_person(attempt.store, attempt.catalogue, new)
    attempt.people.add(new)
    attempt.changes.share(change, new)
    change.rows_of[new.id] = set(attempt.catalogue.with_rows)
    properties = {
        "person": person.id, "split": new.id, "threads": sorted(threads), "reason": grounds.reason, "by": grounds.by,
    }  # fmt: skip
    change.count_rows(attempt.catalogue)
    # An event in a thread of each, so that policies react for both people.
    name = f"split/{grounds.cause}/{new.id}"
    own_event = _note(attempt, person, SPLIT, name, properties, grounds)
    new_event = _note(attempt, new, SPLIT, f"{name}/new", properties, grounds)
    react(attempt, person, own_event)
    react(attempt, new, new_event)
    return new


def set_apart(person: Person, other: Person) -> None:
    """Prevent events from joining these two. They commit together: each lists the threads of the other."""
    person.never_merge, other.never_merge = (
        sorted({*person.never_merge, *other.heads}),
        sorted({*other.never_merge, *person.heads}),
    )


def _divide_apart(attempt: Attempt, person: Person, new: Person) -> None:
    """Divide `never_merge` between two people who are split, and add each to the other's."""
    separate: dict[str, set[str]] = {person.id: set(), new.id: set()}
    for thread in person.never_merge:
        other = attempt.people.owner(thread)
        for part in (person, new):
            if other is None or part.heads.keys() & set(other.never_merge):
                separate[part.id].add(thread)
    person.never_merge, new.never_merge = sorted(separate[person.id]), sorted(separate[new.id])
    set_apart(person, new)


def link_reviewed(attempt: Attempt, person: Person, named: ResolvedIdentifier, grounds: Grounds) -> None:
    """Give the person a refused identifier after review, with an event like a merge's, so that it can be undone."""
    link(attempt, person, named)
    person.never_merge = [thread for thread in person.never_merge if thread != named.thread]
    properties = {
        "survivor": person.id, "merged": named.thread, "threads": [named.thread], "reason": grounds.reason,
        "by": grounds.by, "merged_created_at": attempt.now,
    }  # fmt: skip
    link_event = _note(attempt, person, MERGED, f"merge/{grounds.cause}/{named.thread}", properties, grounds)
    react(attempt, person, link_event)


def _note(
    attempt: Attempt, person: Person, type: str, key: str, properties: dict[str, Any], grounds: Grounds
) -> Recorded:
    if attempt.store.seen([event_id(person.workspace, "threadline", key)]):
        raise Conflict("this request was carried out before; give a new one its own request key")
    event = Event(
        type=type,
        identifiers=(person.identifiers[person.id],),
        occurred_at=attempt.now,
        key=key,
        source="threadline",
        source_type="internal",
        workspace=person.workspace,
        properties=properties,
        received_at=attempt.now,
        marks=marks_of(grounds.why),
    )
    return attempt.append_own(person, person.id, attempt.own(event, grounds.cause))
