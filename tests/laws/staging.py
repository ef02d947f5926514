"""The stage of the laws: engines on stores that break when told to, and what they know in the auditor's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from threadline.app import catalogue
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.dump import dump, was_known
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.kernel.store import Batch, Item, Key, LogEntry, Refusal, Span, Store
from threadline.kernel.time import format_time
from threadline.stores.dynamodb.commit import chains
from threadline.stores.memory import MemoryStore
from threadline.testing.audits import points as audited_points
from threadline.testing.audits.streaks import FIELDS as STREAK_FIELDS
from threadline.testing.scenarios import NOW

CATALOGUE = catalogue()


def frozen() -> int:
    """A clock that stands still: for laws in which the time of recording must not make a difference."""
    return NOW


def ticking(start: int = NOW, step: int = 1_000_003) -> Callable[[], int]:
    """A clock that moves on at every look."""
    ticks = iter(range(start, start + step * 10**9, step))
    return lambda: next(ticks)


def engine(
    store: Store | None = None,
    clock: Callable[[], int] = frozen,
    values: Sequence[object] = (),
    *,
    shipped: bool = True,
) -> Engine:
    """An engine on a store; ``values`` are projections and policies beside those that ship."""
    declared = [*CATALOGUE.projections, *CATALOGUE.policies] if shipped else []
    made = Catalogue([*declared, *values], CATALOGUE.rules) if values or not shipped else CATALOGUE
    return Engine(MemoryStore() if store is None else store, made, clock)


def event(type: str, who: dict[str, str], key: str, at: int = NOW - 1, **fields: Any) -> Event:
    """One event of whoever has these identifiers."""
    named = tuple(Identifier(kind, value) for kind, value in who.items())
    return Event(type=type, identifiers=named, occurred_at=at, key=key, **fields)


def statuses(receipts: Sequence[Receipt]) -> list[str]:
    """What became of each event: its status, or the code for which it was rejected."""
    return [receipt.code or receipt.status for receipt in receipts]


class Crash(BaseException):
    """The process dies here. Not an `Exception`, so that nothing can mistake it for an error to deal with."""


class CrashingStore:
    """A store whose ``at``-th commit crashes: before it, after it, or when half of its batches are committed.

    ``apart``: the other half, as in a store that commits side by side what has nothing in common.
    """

    def __init__(self, store: Store, at: int, when: str) -> None:
        self.store = store
        self.at = at
        self.when = when
        self.commits = 0

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """Commit, or crash."""
        self.commits += 1
        if self.commits != self.at:
            return self.store.commit(batches)
        if self.when == "after":
            self.store.commit(batches)
        elif self.when == "half" and len(batches) > 1:
            self.store.commit(batches[: len(batches) // 2])
        elif self.when == "apart":
            apart = chains(batches, range(len(batches)))
            for chain in apart[(len(apart) + 1) // 2 :]:
                places = {number: place for place, number in enumerate(chain)}
                self.store.commit(
                    [batches[n]._replace(builds_on=[places[each] for each in batches[n].builds_on]) for n in chain]
                )
        raise Crash

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class CountingStore:
    """A store that counts the entries of the log that are read by thread, and the readings of items and of events."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.entries = self.gets = self.finds = 0

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """As the store."""
        self.gets += 1
        return self.store.get(keys)

    def find(self, ids: Sequence[str]) -> dict[str, LogEntry]:
        """As the store."""
        self.finds += 1
        return self.store.find(ids)

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        """As the store."""
        return self._counted(self.store.spans(threads, span))

    def histories(self, threads: Sequence[str], wanted: Any = None) -> dict[str, list[LogEntry]]:
        """As the store."""
        return self._counted(self.store.histories(threads, wanted))

    def _counted(self, found: dict[str, list[LogEntry]]) -> dict[str, list[LogEntry]]:
        self.entries += sum(map(len, found.values()))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class LaggingStore:
    """A store that forgets what it was told lately when it need not be certain: each id is missing as often as not."""

    def __init__(self, store: Store, random: Random) -> None:
        self.store = store
        self.random = random

    def seen(self, ids: Sequence[str], *, certain: bool = True) -> dict[str, int]:
        """As a copy that has not caught up answers."""
        found = self.store.seen(ids)
        return found if certain else {id: digest for id, digest in found.items() if self.random.random() < 0.5}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def tell(store: Store, calls: Sequence[Sequence[Event]], clock: Callable[[], int] = frozen) -> Engine:
    """Record call after call; every event must be accepted or known."""
    on = engine(store, clock)
    for call in calls:
        receipts = on.recorder.record(call)
        assert [each for each in receipts if each.status not in ("accepted", "duplicate")] == []
    return on


def tell_through_crashes(
    store: Store, calls: Sequence[Sequence[Event]], random: Random, clock: Callable[[], int] = frozen
) -> Engine:
    """The same by a client that sends a call again whenever the engine died over it; every few commits it dies."""
    engine(store, clock)  # to open a new store is to mark it; what is to break is what comes after
    on = engine(_fragile(store, random), clock)
    for call in calls:
        while True:
            try:
                on.recorder.record(call)
                break
            except Crash:
                on = engine(_fragile(store, random), clock)
    return engine(store, clock)


def _fragile(store: Store, random: Random) -> Any:
    return CrashingStore(store, random.randint(1, 4), random.choice(("before", "after", "half", "apart")))


# --- what is known --------------------------------------------------------------------------


def timeless(on: Engine) -> list[str]:
    """The dump without what depends on arrival by intent."""
    return dump(on.store, on.catalogue, arrival=False)


def whole(on: Engine) -> list[str]:
    """The dump with everything, sequences, times of recording, timers and outbox included."""
    return dump(on.store, on.catalogue)


def pictures(on: Engine, workspaces: Sequence[str] = ("default",), now: int = NOW) -> list[dict[str, Any]]:
    """What the engine knows, in the form in which `threadline.testing.auditor.audit` tells it."""
    found = [_picture(on, person, now) for workspace in workspaces for person in on.reader.all_people(workspace)]
    return sorted(found, key=lambda person: (person["workspace"], person["identifiers"]))


def _picture(on: Engine, person: Any, now: int) -> dict[str, Any]:
    views = on.reader.views(person, now)
    profile, activity, features = views["profile"], views["activity"], views["features"]
    return {
        "workspace": person.workspace,
        "identifiers": sorted(str(identifier) for identifier in person.identifiers.values()),
        "events": [recorded.id for recorded in _told(on, person)],
        "traits": profile["traits"],
        "tags": profile["tags"],
        "groups": profile["groups"],
        "first_seen_at": activity["first_seen_at"],
        "last_seen_at": activity["last_seen_at"],
        "events_by_type": dict(Counter(activity["events_by_type"]) - Counter(_appended(on, person))),
        "features": {name: (each["value"], each["status"] != "NOT_FOUND") for name, each in features.items()},
        "interests": {topic: _interest(view) for topic, view in views["interests"].items()},
        "attribution": [_touch(views["attribution"][name]) for name in ("first_touch", "last_touch")],
        "streaks": {name: views["streaks"]["daily"][name] for name in STREAK_FIELDS},
        "memory": views["memory"],
    }


def _interest(view: dict[str, Any]) -> dict[str, Any]:
    return {
        scope: {value: (each["weight"], each["current"], each["previous"]) for value, each in values.items()}
        for scope, values in view["scopes"].items()
    }


def _touch(view: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if view is None else {name: text for name, text in view.items() if name not in ("at", "event")}


def _told(on: Engine, person: Any) -> Iterator[Any]:
    return (recorded for recorded in _events(on, person) if was_known(recorded))


def _appended(on: Engine, person: Any) -> Iterator[str]:
    """The types of what policies added: it depends on the order of arrival, and the auditor is not told of it."""
    return (recorded.event.type for recorded in _events(on, person) if not was_known(recorded))


def _events(on: Engine, person: Any) -> Iterator[Any]:
    after = None
    while page := on.reader.events(person, after=after, limit=500):
        yield from page
        after = (page[-1].event.occurred_at, page[-1].id)


def readable(audited: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The auditor's answer with times as text, as views tell them."""
    for person in audited:
        for name in ("first_seen_at", "last_seen_at"):
            person[name] = format_time(person[name])
    return audited


def assert_refold_changes_nothing(on: Engine) -> None:
    """Every stored person is, byte for byte of its content, what a refold from the log makes of it."""
    people = 0
    for one in refold_shard(on.store, on.catalogue):
        assert not one.differs, one.item.key
        people += 1
    assert people


def assert_points_are_true(on: Engine, now: int = NOW) -> None:
    """Every line of every ledger was right to be written, and the views are the sums of the lines."""
    for person in on.reader.all_people("default"):
        lines = [_line(recorded) for recorded in _events(on, person)]
        assert audited_points.problems(lines) == []
        view = on.reader.views(person, now, names=["points"])["points"]
        expected = audited_points.points(lines, now)
        assert {name: view[name] for name in expected} == expected


def _line(recorded: Any) -> dict[str, Any]:
    event = recorded.event
    names = ("type", "source_type", "occurred_at", "marks", "historical", "properties")
    own = {"id": recorded.id, "cause": recorded.cause, "thread": recorded.thread, "recorded_at": recorded.recorded_at}
    return own | {name: getattr(event, name) for name in names}


def assert_log_is_whole(on: Engine) -> None:
    """Sequences run 1, 2, 3 … in every thread, every thread is one person's, and every id stands once.

    Whoever a thread has founded is who has it now.
    """
    sequences: dict[str, list[int]] = {}
    ids: list[str] = []
    cursor = ""
    while page := on.log.feed(cursor):
        for each in page:
            sequences.setdefault(each.entry.thread, []).append(each.entry.sequence)
            ids.append(each.entry.id)
        cursor = page[-1].cursor
    assert len(set(ids)) == len(ids)
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in sequences.values())
    for thread, found in sequences.items():
        person = on.reader.by_thread(thread)
        assert person is not None
        assert person.heads[thread] == len(found)
        founded = on.reader.by_id(thread)
        assert founded is None or founded.id == person.id
