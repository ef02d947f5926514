"""Joining and splitting people on request: preview, merge, split, unmerge, and the review of doubtful joins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from threadline.engine.folding.history import thread_events
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import refold_person
from threadline.engine.folding.states import States
from threadline.engine.reading.event_log import find_event
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording import identity
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.identity import QUARANTINE, Grounds, objections
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.validation import IdentifierResolver, ResolvedIdentifier
from threadline.kernel import ports
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import Conflict, InvalidValue, MergeRefused, NotFound
from threadline.kernel.event import Identifier, Recorded, identifier_named
from threadline.kernel.identity import MERGED
from threadline.kernel.opening import OPENING
from threadline.kernel.store import Key, Put, beyond


class IdentityAdministration:
    """Joins and splits people of one store on request."""

    def __init__(self, recorder: Recorder, reader: PersonReader, rehearsal: Callable[[], ports.Rehearsal]) -> None:
        self._rehearsal = rehearsal
        self._recorder = recorder
        self._reader = reader

    def merge(
        self,
        workspace: str,
        first_ref: str,
        second_ref: str,
        *,
        request: str,
        reason: str = "",
        by: str = "",
        force: bool = False,
    ) -> tuple[str, str]:
        """Join two people; returns the ids of (survivor, merged). ``force`` joins across identity limits."""
        grounds = Grounds(request, reason, by)

        def work(attempt: Attempt) -> tuple[str, str]:
            first, second = _two(attempt, workspace, first_ref, second_ref)
            against = objections(attempt.catalogue.rules, first, second.identifiers.values(), None)
            if against and not force:
                raise MergeRefused(f"{against}; pass `force` to join them anyway")
            survivor = identity.join(attempt, first, second, grounds)
            return survivor.id, (second if survivor is first else first).id

        return self._recorder.change(work)

    def split(
        self, workspace: str, person: str, identifiers: Sequence[str], *, request: str, reason: str = "", by: str = ""
    ) -> tuple[str, str]:
        """Take identifiers, with the events of their threads, out of a person; returns the ids of (person, new person).

        The person keeps its id; where the founding identifier is among those to be taken out, the others move instead.
        """
        grounds = Grounds(request, reason, by)

        def work(attempt: Attempt) -> tuple[str, str]:
            reader = PersonReader(attempt.store, attempt.catalogue)
            remaining = attempt.people.person(reader.person(workspace, person).id)
            threads = _chosen(reader, remaining, identifiers)
            id, _, began = _founded(reader, remaining, threads)
            new = identity.split(attempt, remaining, threads, id, began, grounds)
            return remaining.id, new.id

        return self._recorder.change(work)

    def unmerge(self, workspace: str, event: str, *, request: str, reason: str = "", by: str = "") -> tuple[str, str]:
        """Undo one merge, named by its event: the person merged away is there again, as if never merged.

        Returns the ids of (survivor, the person who is back).
        """
        grounds = Grounds(request, reason, by)

        def work(attempt: Attempt) -> tuple[str, str]:
            reader = PersonReader(attempt.store, attempt.catalogue)
            merged = find_event(attempt.store, workspace, event)
            if merged.event.type != MERGED:
                raise InvalidValue(f"event {event} is a {merged.event.type}, not a merge")
            properties = merged.event.properties
            person = attempt.people.person(reader.person(workspace, properties["survivor"]).id)
            # The person merged away has the founding thread: split again, merged elsewhere, or the survivor itself.
            if (id := properties["merged"]) == person.id or id not in person.heads:
                raise Conflict("this merge was undone already")
            threads, created_at = _split_off(attempt, person, properties), properties["merged_created_at"]
            if person.id in threads:
                # They have found somebody older than either since, who keeps the id: the other one is apart again.
                threads, id = [thread for thread in person.heads if thread not in threads], properties["survivor"]
                created_at = _founded(reader, person, threads)[2]
            new = identity.split(attempt, person, threads, id, created_at, grounds)
            return person.id, new.id

        return self._recorder.change(work)

    def review(self, workspace: str, id: str, *, join: bool, by: str = "") -> dict[str, Any]:
        """Decide about a quarantined join: merge across the limit, or dismiss it, in one commit with the decision."""
        key = Key(QUARANTINE, workspace, id)

        def work(attempt: Attempt) -> dict[str, Any]:
            item = attempt.store.get([key])[0]
            if item is None:
                raise NotFound(f"nothing is quarantined under {id}")
            entry: dict[str, Any] = msgspec.json.decode(item.value)
            if entry["status"] != "open":
                raise Conflict(f"it was {entry['status']} already")
            entry["status"] = "joined" if join else "dismissed"
            decided = Put(key, msgspec.json.encode(entry), item.version)
            person = _join_reviewed(attempt, workspace, entry, by) if join else _leave_apart(attempt, workspace, entry)
            if person is None:
                attempt.changes.commit_apart([decided])
            else:
                attempt.changes.of(person, 1).writes[key] = decided
            return entry

        return self._recorder.change(work)

    def quarantined(self, workspace: str, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """Joins that were quarantined for review, by their id, after one of them."""
        items = self._recorder.store.query(QUARANTINE, workspace, start=beyond(after), limit=limit)
        return [msgspec.json.decode(item.value) for item in items]

    def preview_merge(self, workspace: str, first_ref: str, second_ref: str) -> tuple[Person, Person, str]:
        """The merged person (in memory only), the one merged away, and what speaks against the merge."""
        reader = self._reader
        first, second = reader.person(workspace, first_ref), reader.person(workspace, second_ref)
        if first.id == second.id:
            raise Conflict("they are already one person")
        survivor, merged = sorted((first, second), key=lambda p: (p.created_at, p.id))
        union = Person(survivor.id, workspace, survivor.created_at, States(reader.catalogue))
        for part in (survivor, merged):
            for thread, known in part.identifiers.items():
                union.add_thread(thread, known, part.heads[thread])
        refold_person(reader.store, reader.catalogue, union)
        return union, merged, objections(reader.catalogue.rules, survivor, merged.identifiers.values(), merged)

    def foretell_merge(self, workspace: str, first_ref: str, second_ref: str) -> Consequences:
        """What a merge would cause, rehearsed: nothing is written."""
        rehearsal = self._rehearsal()
        rehearsal.engine.identity.merge(workspace, first_ref, second_ref, request="rehearsal", force=True)
        return rehearsal.consequences

    def preview_split(self, workspace: str, person: str, identifiers: Sequence[str]) -> tuple[Person, Person]:
        """The two people a split would leave (in memory only): the one who keeps the id, and the new one."""
        reader = self._reader
        whole = reader.person(workspace, person)
        threads = _chosen(reader, whole, identifiers)
        remaining = Person(whole.id, workspace, whole.created_at, States(reader.catalogue))
        new = Person(*_founded(reader, whole, threads), States(reader.catalogue))
        for thread, known in whole.identifiers.items():
            (new if thread in threads else remaining).add_thread(thread, known, whole.heads[thread])
        for part in (remaining, new):
            refold_person(reader.store, reader.catalogue, part)
        return remaining, new


def _two(attempt: Attempt, workspace: str, first_ref: str, second_ref: str) -> tuple[Person, Person]:
    reader = PersonReader(attempt.store, attempt.catalogue)
    first, second = (attempt.people.person(reader.person(workspace, ref).id) for ref in (first_ref, second_ref))
    if first is second:
        raise Conflict("they are already one person")
    return first, second


def _split_off(attempt: Attempt, person: Person, merge: Mapping[str, Any]) -> list[str]:
    """The threads of the person merged away, among those of the survivor: the merged ones and those added since.

    An identifier that first occurred while they were one belongs to the person whose identifiers it occurred with. If
    these are of both, the strongest identifier of the event decides.
    """
    survivor, merged = merge["survivor"], merge["merged"]
    leads = dict.fromkeys(person.heads, "") | {thread: merged for thread in merge["threads"] if thread in person.heads}
    leads[merged] = leads[survivor] = ""

    def leader(thread: str) -> str:
        while leads[thread]:
            thread = leads[thread]
        return thread

    names = IdentifierResolver(attempt.catalogue.rules)
    events = thread_events(attempt.store, person.heads)
    for recorded in sorted(events, key=lambda event: (event.recorded_at, event.thread, event.sequence)):
        given = recorded.event.identifiers
        resolved = (form for identifier in given for form in names.forms(person.workspace, identifier))
        named = sorted((form for form in resolved if form.thread in leads), key=ResolvedIdentifier.rank)
        leaders = list(dict.fromkeys(leader(identifier.thread) for identifier in named))
        first = next((thread for thread in leaders if thread in (survivor, merged)), leaders[0] if leaders else "")
        leads |= {thread: first for thread in leaders if thread not in (first, survivor, merged)}
    return [thread for thread in person.heads if leader(thread) == merged]


def _chosen(reader: PersonReader, person: Person, identifiers: Sequence[str]) -> list[str]:
    threads = []
    for text in identifiers:
        named = reader.catalogue.rules.threads(person.workspace, identifier_named(text))
        own = [thread for thread in named if thread in person.heads]
        if not own:
            raise NotFound(f"{text!r} is not an identifier of this person")
        threads += own
    if not threads or len(set(threads)) == len(person.heads):
        raise InvalidValue("name at least one identifier to take out and leave at least one")
    if person.id in threads:
        return [t for t in person.heads if t not in threads]
    return list(dict.fromkeys(threads))


def _founded(reader: PersonReader, person: Person, threads: Sequence[str]) -> tuple[str, str, int]:
    """Id, workspace and time of creation of the person that these threads make when they are split off."""
    rules = reader.catalogue.rules
    strongest = min(threads, key=lambda t: (rules.kind(person.identifiers[t].kind).priority, t))
    events = thread_events(reader.store, dict.fromkeys(threads, 1 << 62))
    first: dict[str, Recorded] = {}
    for recorded in sorted(events, key=lambda event: event.sequence):
        # Retention may have taken out what came first: then it is the first that is left, which no opening is.
        if recorded.event.type != OPENING:
            first.setdefault(recorded.thread, recorded)
    began = min((recorded.recorded_at for recorded in first.values()), default=person.created_at)
    return strongest, person.workspace, began


def _reviewed(
    attempt: Attempt, workspace: str, entry: dict[str, Any]
) -> list[tuple[ResolvedIdentifier, Person | None]]:
    """The two identifiers of a quarantined join and their people; an identifier of nobody comes last."""
    names = IdentifierResolver(attempt.catalogue.rules)
    named = [names.of(workspace, Identifier(*text.split(":", 1))) for text in entry["identifiers"]]
    pairs = [(identifier, identity.owner_of(attempt, identifier)) for identifier in named if identifier is not None]
    return sorted(pairs, key=lambda pair: pair[1] is None)


def _join_reviewed(attempt: Attempt, workspace: str, entry: dict[str, Any], by: str) -> Person:
    pairs = _reviewed(attempt, workspace, entry)
    survivor = pairs[0][1] if pairs else None
    if survivor is None:
        raise NotFound(f"nobody is known any more as {' or '.join(entry['identifiers'])}")
    grounds = Grounds(f"review/{entry['id']}", "review", by)
    for identifier, person in pairs[1:]:
        if person is None:
            # It was refused as a further identifier, and is nobody's yet.
            identity.link_reviewed(attempt, survivor, identifier, grounds)
        elif person is not survivor:
            return identity.join(attempt, survivor, person, grounds)
    return survivor


def _leave_apart(attempt: Attempt, workspace: str, entry: dict[str, Any]) -> Person | None:
    pairs = _reviewed(attempt, workspace, entry)
    person = pairs[0][1] if pairs else None
    if person is None:
        return None
    change = attempt.changes.of(person, 1)
    for identifier, other in pairs[1:]:
        if other is None:
            person.never_merge = sorted({*person.never_merge, identifier.thread})
        elif other is not person:
            identity.set_apart(person, other)
            attempt.changes.share(change, other)
    return person
