"""What must be true in the end, reckoned from what was sent, answered and taken outside, and from the plain log."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import Any

from tests.laws import staging
from tests.simulator.clients import LEAVING, QUIET, WILD, Clients, payload
from tests.simulator.definitions import NOTED, ORDERED, REMINDED
from tests.simulator.outside import Outside
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import checked_event
from threadline.engine.folding.person import Person, person_key
from threadline.engine.folding.person_packing import people_of
from threadline.engine.jobs.jobs import JOB_DUE
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.engine.scheduled import OUTBOX, PARKED, POSTPONED, TIMER
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.store import FeedEntry, feed_pages, is_erased, scan_pages
from threadline.testing import scenarios
from threadline.testing.auditor import audit

Faults = Iterator[str]


def problems(on: Engine, clients: Clients, outside: Outside, followed: Sequence[Sequence[FeedEntry]]) -> Faults:
    """Everything that is not as promised, in words."""
    feed = list(feed_pages(on.store))
    log = [checked_event(each.entry) for each in feed if not is_erased(each.entry)]
    erased = {each.entry.id for each in feed if is_erased(each.entry)}
    yield from _log(log, clients, erased)
    yield from _feed(feed, followed)
    yield from _orders(log, outside, clients, erased)
    yield from _settled(on, log)
    yield from _owners(on, log, erased)
    yield from _erased(on, clients, erased)
    yield from _derived(on)
    yield from _pictures(on, log)


def _log(log: Sequence[Recorded], clients: Clients, erased: Set[str]) -> Faults:
    """Each acknowledged event is there once, as it was sent; what nobody sent is Threadline's own."""
    found = {each.id: each for each in log}
    if len(found) != len(log):
        yield "an event is in the log twice"
    for id, event in clients.acknowledged.items():
        if id in erased and event.workspace == WILD:
            continue
        if id not in found:
            yield f"{event.key} was acknowledged and is lost"
        elif repr(payload(found[id].event)) != repr(payload(event)):
            yield f"{event.key} is not in the log as it was acknowledged"
    for id, each in found.items():
        own = each.cause or each.event.source.startswith(("threadline", "policy:"))
        if id in clients.sent:
            if not any(repr(payload(each.event)) == repr(payload(sent)) for sent in clients.sent[id]):
                yield f"{each.event.key} is not in the log as it was sent"
        elif not own:
            yield f"{each.event.type} {each.event.key} was never sent"


def _feed(feed: Sequence[FeedEntry], followed: Sequence[Sequence[FeedEntry]]) -> Faults:
    """Each thread is told in order, without a gap, and who followed has seen a beginning of the whole."""
    last: dict[str, int] = defaultdict(int)
    erased = {each.entry.id: each for each in feed if is_erased(each.entry)}
    for each in feed:
        if is_erased(each.entry) or (erased and each.entry.thread not in last):
            continue  # what came before it is erased
        if each.entry.sequence != last[each.entry.thread] + 1:
            yield f"thread {each.entry.thread} goes from {last[each.entry.thread]} to {each.entry.sequence}"
        last[each.entry.thread] = each.entry.sequence
    for seen in followed:
        if any(one != other and other != erased.get(one.entry.id) for one, other in zip(seen, feed, strict=True)):
            yield "a follower saw the feed otherwise than it is"


def _orders(log: Sequence[Recorded], outside: Outside, clients: Clients, erased: Set[str]) -> Faults:
    """Of each order: one note, one reminder, one call or more under one id, one letter; of one that is erased nothing
    more, and no second letter."""
    orders = {each.event.key: each for each in log if each.event.type == ORDERED}
    notes = Counter(each.event.properties["order"] for each in log if each.event.type == NOTED)
    reminders = Counter(each.event.properties["order"] for each in log if each.event.type == REMINDED)
    hooks: dict[str, list[str]] = defaultdict(list)
    letters: dict[str, list[str]] = defaultdict(list)
    for call in outside.taken["hook"]:
        hooks[call.order].append(call.effect)
    for call in outside.taken["letter"]:
        letters[call.order].append(call.effect)
    gone = {event.key for id in erased for event in clients.sent.get(id, ())}
    for order in gone & letters.keys():
        if len(letters[order]) > 1:
            yield f"order {order}, which is erased, has {len(letters[order])} letters"
    for order in ((notes.keys() | reminders.keys()) & gone) - orders.keys():
        yield f"order {order} is erased, and its note or reminder is not"
    for order in (notes.keys() | reminders.keys() | hooks.keys() | letters.keys()) - orders.keys() - gone:
        yield f"something was done for order {order}, which is not in the log"
    for order in orders:
        if (notes[order], reminders[order]) != (1, 1):
            yield f"order {order} has {notes[order]} notes and {reminders[order]} reminders"
        if len(set(hooks[order])) != 1:
            yield f"order {order} was called for under the ids {set(hooks[order])}"
        if len(letters[order]) != 1:
            yield f"order {order} has {len(letters[order])} letters"
    mails = Counter(call.effect for call in outside.taken["mail"])
    yield from (f"mail {effect} was sent {times} times" for effect, times in mails.items() if times > 1)


def _settled(on: Engine, log: Sequence[Recorded]) -> Faults:
    """Nothing waits that should be done, and each effect has one end."""
    for table in (OUTBOX, JOB_DUE, PARKED, POSTPONED, "unknown"):
        for item in scan_pages(on.store, table):
            yield f"{table} holds {item.key} in the end"
    now = on.clock()
    for item in scan_pages(on.store, TIMER):
        if int(item.key.sort.partition(".")[0], 16) - (1 << 62) <= now:
            yield f"a timer is due and does not fire: {item.key}"
    waits = {"threadline.effect_retried", "threadline.effect_redriven", "threadline.effect_parked"}
    ends: Counter[str] = Counter()
    effects = set()
    for each in log:
        if each.event.source == "threadline.dispatch" and "effect" in each.event.properties:
            effects.add(each.event.properties["effect"])
            if each.event.type not in waits | {"threadline.effect_unknown"}:
                ends[each.event.properties["effect"]] += 1
    for effect in effects:
        if ends[effect] != 1:
            yield f"effect {effect} has {ends[effect]} ends"


def _erased(on: Engine, clients: Clients, erased: Set[str]) -> Faults:
    """What erasures say that they have erased is erased, and nothing else; and nobody is named who was erased."""
    erasures = on.erasures.page(WILD, limit=1_000)
    listed = {id for each in erasures for id in on.erasures.ids(WILD, each.id)}
    if listed != erased:
        yield f"{len(erased - listed)} events are erased by no erasure, {len(listed - erased)} are not erased"
    whole = [item for table in on.store.tables() for item in scan_pages(on.store, table)]
    for who, is_silent in clients.leaving.items():
        if is_silent and any(each.reason == who.removeprefix(LEAVING) for each in erasures):
            name = re.compile(rb"%b\b" % who.encode())
            held = {
                item.key.table for item in whole if name.search(item.value) or name.search("".join(item.key).encode())
            }
            held |= {"log" for each in feed_pages(on.store) if name.search(each.entry.body)}
            if held:
                yield f"{who} was erased and is named in {held}"


def _owners(on: Engine, log: Sequence[Recorded], erased: Set[str]) -> Faults:
    """Each thread is whose the last join or split that names it has made it; every identifier is somebody's."""
    owners: dict[str, str] = {}
    for each in log:
        if each.event.type in (MERGED, SPLIT):
            properties = each.event.properties
            whose = properties["survivor" if each.event.type == MERGED else "split"]
            owners.update(dict.fromkeys(properties["threads"], whose))
    for thread in {each.thread for each in log}:
        person = on.reader.by_thread(thread)
        if person is None:
            yield f"thread {thread} is nobody's"
        elif thread in owners and person.id != owners[thread] and not erased:
            yield f"thread {thread} is {person.id}'s, and should be {owners[thread]}'s"


def _derived(on: Engine) -> Faults:
    """Everybody equals a fold of the log, and the index rows are those that they ask for."""
    found = refold_everybody(on.store, on.catalogue, write=False)
    items = [item for item in on.store.get([person_key(id) for id in found.differing]) if item is not None]
    for item, person in zip(items, people_of(on.store, on.catalogue, items), strict=True):
        # What a process of other definitions wrote last is folded again before anybody reads it.
        if isinstance(person, Person) and not person.stale:
            yield f"the states of {item.key.partition} are not the fold of the log"
    yield from (f"{fault.projection}: {fault.problem}" for fault in found.rows_amiss)
    if on.maintenance.stale():
        yield f"{on.maintenance.stale()} are stale in the end"
    for workspace in (QUIET, WILD):
        for person in on.reader.all_people(workspace):
            on.reader.views(person, on.now())


def _pictures(on: Engine, log: Sequence[Recorded]) -> Faults:
    """Where only producers were at work: what is known of everybody is what the auditor makes of the events."""
    now = on.now()
    staging.assert_points_are_true(on, now)
    quiet = [each for each in log if each.event.workspace == QUIET]
    told = [_plain(each) for each in quiet if staging.was_known(each)]
    # Only a timer knows that a campaign was ignored; what is told of that is told of events like those that are sent.
    ignored = [_plain(each) for each in quiet if each.event.type == "campaign_ignored"]
    expected = staging.readable(audit(told, now))
    for wanted, whole in zip(expected, audit([*told, *ignored], now), strict=True) if ignored else ():
        wanted.update(features=whole["features"], memory=whole["memory"])
    found = staging.pictures(on, (QUIET,), now)
    if len(found) != len(expected):
        yield f"{len(found)} people where {len(expected)} should be"
        return
    for person, wanted in zip(found, expected, strict=True):
        for each in (person, wanted):
            each["features"].pop("engagement_score")  # rounded; tests/laws/test_order.py compares it
        yield from (
            f"{person['identifiers'][0]}: {difference}"
            for name in wanted
            for difference in _differences(name, person[name], wanted[name])
        )


def _differences(path: str, found: Any, wanted: Any) -> Faults:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for name in sorted(found.keys() | wanted.keys(), key=str):
            yield from _differences(f"{path}.{name}", found.get(name), wanted.get(name))
    elif found != wanted:
        yield f"{path} is {found!r:.200}, and should be {wanted!r:.200}"


def _plain(recorded: Recorded) -> dict[str, Any]:
    return scenarios.plain(recorded.event) | {"recorded_at": recorded.recorded_at}
