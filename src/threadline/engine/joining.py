"""Joining and splitting people on request: preview, merge, split, unmerge, and the review of doubtful joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from threadline.engine import identity
from threadline.engine.ask import Asker
from threadline.engine.group import Group
from threadline.engine.identity import QUARANTINE, objections
from threadline.engine.person import Person, person_key, unpack_person
from threadline.engine.record import Recorder
from threadline.engine.refold import refold_person, thread_events
from threadline.engine.states import States
from threadline.kernel.errors import Conflict, InvalidValue, MergeRefused, NotFound
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.identity import MERGED
from threadline.kernel.store import Key, Put, beyond


def merge(
    recorder: Recorder, workspace: str, one: str, other: str, *, request: str, reason: str, by: str, force: bool = False
) -> tuple[str, str]:
    """Join two people for good reason; answers the survivor's and the merged person's id.

    ``request`` identifies this wish: the same one again changes nothing. ``force`` joins across identity limits.
    """

    def work(group: Group) -> tuple[str, str]:
        first, second = _two(group, workspace, one, other)
        against = objections(group.catalogue.rules, first, second.identifiers.values(), None)
        if against and not force:
            raise MergeRefused(f"{against}; pass force to join them all the same")
        survivor = identity.join(group, first, second, cause=request, reason=reason, by=by)
        return survivor.id, (second if survivor is first else first).id

    return recorder.change(work)


def _two(group: Group, workspace: str, one: str, other: str) -> tuple[Person, Person]:
    asker = Asker(group.store, group.catalogue)
    first, second = (group.person(asker.person(workspace, ref).id) for ref in (one, other))
    if first is second:
        raise Conflict("they are one person already")
    return first, second


def preview_merge(asker: Asker, workspace: str, one: str, other: str) -> tuple[Person, Person, str]:
    """The person the two would become (in memory only), the one merged away, and what speaks against it."""
    first, second = asker.person(workspace, one), asker.person(workspace, other)
    if first.id == second.id:
        raise Conflict("they are one person already")
    survivor, merged = sorted((first, second), key=lambda p: (p.created_at, p.id))
    union = Person(survivor.id, workspace, survivor.created_at, States(asker.catalogue))
    for part in (survivor, merged):
        for thread, known in part.identifiers.items():
            union.add_thread(thread, known, part.heads[thread])
    refold_person(asker.store, asker.catalogue, union)
    return union, merged, objections(asker.catalogue.rules, survivor, merged.identifiers.values(), merged)


def preview_split(asker: Asker, workspace: str, ref: str, identifiers: Sequence[str]) -> tuple[Person, Person]:
    """The two people a split would leave (in memory only): the one who keeps the id, and the new one."""
    person = asker.person(workspace, ref)
    threads = _chosen(asker, person, identifiers)
    parts = []
    for chosen in (set(person.heads) - set(threads), set(threads)):
        part = Person(
            person.id if person.id in chosen else min(chosen), workspace, person.created_at, States(asker.catalogue)
        )
        for thread in chosen:
            part.add_thread(thread, person.identifiers[thread], person.heads[thread])
        refold_person(asker.store, asker.catalogue, part)
        parts.append(part)
    return parts[0], parts[1]


def split(
    recorder: Recorder, workspace: str, ref: str, identifiers: Sequence[str], *, request: str, reason: str, by: str
) -> tuple[str, str]:
    """Take identifiers, with the events of their threads, out of a person; answers both ids.

    The person keeps its id; where the founding identifier is among those to be taken out, the others move instead.
    """

    def work(group: Group) -> tuple[str, str]:
        asker = Asker(group.store, group.catalogue)
        person = group.person(asker.person(workspace, ref).id)
        threads = _chosen(asker, person, identifiers)
        id = _oldest_thread(group, person, threads)
        began = _began(group, threads, person.created_at)
        new = identity.split(group, person, threads, id=id, created_at=began, cause=request, reason=reason, by=by)
        return person.id, new.id

    return recorder.change(work)


def unmerge(recorder: Recorder, workspace: str, event: str, *, request: str, reason: str, by: str) -> tuple[str, str]:
    """Undo one merge, named by its event: the person merged away is there again, as if never merged."""

    def work(group: Group) -> tuple[str, str]:
        asker = Asker(group.store, group.catalogue)
        merged = asker.event(workspace, event)
        if merged.event.type != MERGED:
            raise InvalidValue(f"event {event} is a {merged.event.type}, not a merge")
        properties = merged.event.properties
        person = group.person(asker.person(workspace, properties["survivor"]).id)
        threads = [t for t in properties["threads"] if t in person.heads]
        if not threads or not _is_alias(group, properties["merged"]):
            raise Conflict("this merge was undone already")
        new = identity.split(
            group, person, threads, id=properties["merged"], created_at=properties["merged_created_at"],
            cause=request, reason=reason, by=by,
        )  # fmt: skip
        return person.id, new.id

    return recorder.change(work)


def _is_alias(group: Group, id: str) -> bool:
    item = group.store.get([person_key(id)])[0]
    return item is not None and isinstance(unpack_person(item, group.catalogue), str)


def _chosen(asker: Asker, person: Person, identifiers: Sequence[str]) -> list[str]:
    threads = []
    for text in identifiers:
        kind, _, value = text.partition(":")
        identifier = asker.catalogue.rules.normalise(Identifier(kind, value))
        thread = thread_id(person.workspace, identifier) if identifier is not None else ""
        if thread not in person.heads:
            raise NotFound(f"{text!r} is not an identifier of this person")
        threads.append(thread)
    if not threads or len(set(threads)) == len(person.heads):
        raise InvalidValue("name at least one identifier to take out and leave at least one")
    if person.id in threads:
        return [t for t in person.heads if t not in threads]
    return list(dict.fromkeys(threads))


def _oldest_thread(group: Group, person: Person, threads: Sequence[str]) -> str:
    rules = group.catalogue.rules
    return min(threads, key=lambda t: (rules.kind(person.identifiers[t].kind).priority, t))


def _began(group: Group, threads: Sequence[str], default: int) -> int:
    events = thread_events(group.store, dict.fromkeys(threads, 1 << 62))
    return min((r.recorded_at for r in events if r.sequence == 1), default=default)


def quarantined(recorder: Recorder, workspace: str, after: str, limit: int) -> list[dict[str, Any]]:
    """Joins that were set aside, by their id, after one of them."""
    items = recorder.store.query(QUARANTINE, workspace, start=beyond(after), limit=limit)
    return [msgspec.json.decode(item.value) for item in items]


def review(recorder: Recorder, workspace: str, id: str, *, join: bool, by: str) -> dict[str, Any]:
    """Decide about a join that was set aside: do it across the limit, or dismiss it. What it does commits with it."""
    key = Key(QUARANTINE, workspace, id)

    def work(group: Group) -> dict[str, Any]:
        item = group.store.get([key])[0]
        if item is None:
            raise NotFound(f"nothing is set aside under {id}")
        entry: dict[str, Any] = msgspec.json.decode(item.value)
        if entry["status"] != "open":
            raise Conflict(f"it was {entry['status']} already")
        entry["status"] = "joined" if join else "dismissed"
        decided = Put(key, msgspec.json.encode(entry), item.version)
        if join:
            person = _join_reviewed(group, workspace, entry, by)
            group.draft(person, 1).writes[key] = decided
        else:
            group.loose[key] = decided
        return entry

    return recorder.change(work)


def _join_reviewed(group: Group, workspace: str, entry: dict[str, Any], by: str) -> Person:
    names = identity.Names(group.catalogue.rules)
    named = [names.of(workspace, Identifier(*text.split(":", 1))) for text in entry["identifiers"]]
    found = [(each, group.owner(each.thread)) for each in named if each is not None]
    people = [person for _, person in found if person is not None]
    if not people:
        raise NotFound(f"nobody is known any more as {' or '.join(entry['identifiers'])}")
    for each, person in found:
        if person is None:
            # It was refused as a further identifier of somebody, so that it is nobody's yet.
            identity.link(group, people[0], each)
        elif person is not people[0]:
            return identity.join(group, people[0], person, cause=f"review/{entry['id']}", reason="review", by=by)
    return people[0]
