"""Law: who was erased has never been, for anybody but a ledger of hashes; killed anywhere, an erasure goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.laws import staging
from tests.laws.erasure_stage import DEFINITIONS, MARKER, Stage, contents, crowded, found, ids_of, person
from threadline.engine.engine import Engine
from threadline.engine.erasure.removal import erased_events
from threadline.engine.folding.person import PERSON, SNAPSHOT
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.erasure import ERASED_LOG, ERASURE, ERASURE_IDS, ERASURE_OPEN, LEDGER_HEAD, Certificate
from threadline.kernel.errors import BeingErased, Conflict, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.pseudonym import PSEUDONYM_KEY
from threadline.kernel.store import Key, Store, feed_pages, is_erased
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

ADA = f"ada-{MARKER}"
SALTED = {ERASURE, LEDGER_HEAD, PSEUDONYM_KEY}
LEDGER = SALTED | {ERASED_LOG, ERASURE_IDS, "job", "job_created"}


def certificate(stage: Stage, id: str) -> Certificate:
    return msgspec.json.decode(stage.engine.erasures.find("default", id).certificate, type=Certificate)


def assert_right(engine: Engine) -> None:
    result = refold_everybody(engine.store, engine.catalogue, write=False)
    assert (result.differing, result.rows_amiss) == ((), ())
    assert engine.store.integrity() == []


def test_no_marker_of_an_erased_person_is_left_and_others_are_byte_equal() -> None:
    stage = Stage()
    ada = crowded(stage)
    needles = [MARKER.encode(), *ids_of(stage, f"user_id:{ADA}")]
    before, feed = contents(stage.store), list(feed_pages(stage.store))
    tables = {key.table for key in before}
    assert {
        "outbox",
        "postponed",
        "parked",
        "unknown",
        "quarantine",
        "rejected",
        "inbox",
        "timer",
        "journey",
        "broadcast_recipient",
        "broadcast_status",
        "suppression",
        "consent",
        "mail_event",
        "board",
    } <= tables
    assert len(list(found(stage.store, needles))) > 50
    preview = stage.engine.erasures.preview("default", f"email:{ada['email']}")
    assert contents(stage.store) == before
    done = stage.erase(f"email:{ada['email']}", by="ops", reason="asked for")
    assert list(found(stage.store, needles)) == []
    after = contents(stage.store)
    others = [key for key in after if key in before and key.table != "audit_log"]
    changed = [key for key in others if after[key] != before[key]]
    assert {key.table for key in changed} <= {PERSON, SNAPSHOT}
    [other] = {key.partition for key in changed}  # only whoever was set apart from the person
    assert other in (person_key_of(stage, "bob").partition, person_key_of(stage, "carol").partition)
    assert {key.table for key in after if key not in before} == LEDGER | {"consent_remaining"}
    assert_right(stage.engine)
    made = certificate(stage, done.id)
    assert made.before == preview.removed
    assert {table: len(rows) for table, rows in made.remaining.items()} == preview.remaining == {"consent_remaining": 2}
    assert set(made.after.values()) == {0}
    assert made.events == done.events == preview.removed["events"]
    now = list(feed_pages(stage.store))
    assert [each.cursor for each in now] == [each.cursor for each in feed]
    gone = {old.entry.id for old, new in zip(feed, now, strict=True) if is_erased(new.entry)}
    assert [new for new in now if new.entry.id not in gone] == [old for old in feed if old.entry.id not in gone]
    assert sorted(gone) == stage.engine.erasures.ids("default", done.id)
    with pytest.raises(NotFound):
        stage.engine.reader.person("default", f"user_id:{ADA}")


def person_key_of(stage: Stage, name: str) -> Key:
    return Key(PERSON, stage.engine.reader.person("default", f"user_id:{name}").id)


@given(scenarios.randoms)
def test_erased_is_never_having_been(random: Random) -> None:
    history = scenarios.history(random, people=3, count=random.randrange(3, 40))
    first = [each for each in history if of_first(each)]
    stores = [MemoryStore(), MemoryStore()]
    both, others = (
        staging.tell(store, [events]) for store, events in zip(stores, (history, without(history)), strict=True)
    )
    while (ref := next(filter(None, (of_whom(both, each) for each in first)), "")) != "":
        both.erasures.run("default", both.erasures.begin("default", ref).id)
    assert comparable(stores[0]) == comparable(stores[1])
    left = [each.entry for each in feed_pages(stores[0]) if not is_erased(each.entry)]
    assert [entry._replace(body=b"") for entry in left] == [
        each.entry._replace(body=b"") for each in feed_pages(stores[1])
    ]
    assert dump(both.store, both.catalogue) == dump(others.store, others.catalogue)


@given(scenarios.randoms)
def test_who_comes_back_has_only_what_came_after(random: Random) -> None:
    history = scenarios.history(random, people=3, count=random.randrange(3, 40))
    cut = random.randrange(len(history) + 1)
    before, after = history[:cut], history[cut:]
    stores = [MemoryStore(), MemoryStore()]
    on = staging.tell(stores[0], [before] if before else [])
    while (ref := next(filter(None, (of_whom(on, each) for each in before if of_first(each))), "")) != "":
        on.erasures.run("default", on.erasures.begin("default", ref).id)
    again = [each for each in before if of_first(each)]
    # What was erased is sent again, and stays erased.
    staging.tell(stores[0], [call for call in (random.sample(again, len(again)), after) if call])
    other = staging.tell(stores[1], [call for call in (without(before), after) if call])
    assert comparable(stores[0]) == comparable(stores[1])
    assert dump(on.store, on.catalogue) == dump(other.store, other.catalogue)


def of_first(event: Event) -> bool:
    plain = [each.value.strip().lower().replace(" ", "") for each in event.identifiers]
    return any(each.startswith(("user-0", "anonymous-0", "p0@")) or each.endswith("0550000") for each in plain)


def without(events: Sequence[Event]) -> list[Event]:
    return [each for each in events if not of_first(each)]


def of_whom(engine: Engine, event: Event) -> str:
    for each in event.identifiers:
        try:
            return engine.reader.person("default", str(each)).id
        except NotFound:
            continue
    return ""


def comparable(store: Store) -> dict[Key, bytes]:
    """Every item but those of erasing. What stands in the items of people is compared by `dump`: how much of it is in a
    tail of events depends on when which process has read them."""
    items = {key: value for key, value in contents(store).items() if key.table not in LEDGER | {"source", "cache"}}
    return {key: b"" if key.table in (PERSON, SNAPSHOT) else value for key, value in items.items()}


# --- while it goes on ---------------------------------------------------------------------------


def sealed() -> tuple[Stage, str]:
    stage = Stage()
    person(stage, ADA, "vip")
    person(stage, "bob", "vip")
    return stage, stage.engine.erasures.begin("default", f"user_id:{ADA}", request="r").id


def test_an_event_of_somebody_who_is_being_erased_is_refused_alone() -> None:
    stage, id = sealed()
    events = [
        Event(type="page", identifiers=(Identifier("user_id", name),), occurred_at=stage.now, key=f"now-{name}")
        for name in ("bob", ADA, "carol")
    ]
    rejected = len(stage.engine.rejected.page("default"))
    receipts = stage.engine.recorder.record_checked(stage.engine.recorder.check(events))
    assert staging.statuses(receipts) == ["accepted", "being_erased", "accepted"]
    with pytest.raises(BeingErased):
        stage.engine.recorder.record(events)
    assert len(stage.engine.rejected.page("default")) == rejected
    with pytest.raises(NotFound):
        stage.engine.reader.person("default", f"user_id:{ADA}")
    assert_right(stage.engine)
    assert stage.engine.erasures.begin("default", f"user_id:{ADA}").id == id
    stage.engine.erasures.run("default", id)
    assert stage.engine.erasures.unfinished() == []
    assert staging.statuses(stage.engine.recorder.record(events)) == ["duplicate", "accepted", "duplicate"]
    assert stage.engine.reader.person("default", f"user_id:{ADA}").position == 1
    assert_right(stage.engine)


def test_an_event_that_names_a_person_beside_one_who_is_being_erased_is_refused() -> None:
    stage, _ = sealed()
    with pytest.raises(BeingErased):
        stage.tell("page", {"user_id": "bob", "anonymous_id": f"device-{ADA}"})
    assert stage.engine.identity.quarantined("default") == []


def test_the_same_request_erases_once_even_if_the_person_came_back() -> None:
    stage, id = sealed()
    stage.engine.erasures.run("default", id)
    assert stage.tell("page", {"user_id": ADA}) == "accepted"
    again = stage.engine.erasures.begin("default", f"user_id:{ADA}", request="r")
    assert (again.id, again.state) == (id, "done")
    assert stage.engine.reader.person("default", f"user_id:{ADA}").position == 1
    other = stage.engine.erasures.begin("default", f"user_id:{ADA}", request="another")
    assert stage.engine.erasures.run("default", other.id).events == 1
    first, second = certificate(stage, id), certificate(stage, other.id)
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.threads != []
    assert set(second.threads) < set(first.threads)


def test_a_person_with_more_rows_than_a_batch_holds_is_erased() -> None:
    stage = Stage()
    for number in range(150):
        stage.tell("tag_added", {"user_id": ADA}, properties={"tag": f"tag {number} {MARKER}"})
    stage.erase(f"user_id:{ADA}")
    assert list(found(stage.store, [MARKER.encode()])) == []
    assert_right(stage.engine)


def test_erased_while_others_record_merge_and_split_nothing_of_theirs_is_lost() -> None:
    stage = Stage()
    person(stage, ADA, "vip")
    for number in range(4):
        stage.tell("page", {"user_id": f"other-{number}"})
    accepted: dict[str, list[str]] = {}
    ends = threading.Event()
    started = threading.Barrier(4)

    def tell(name: str) -> None:
        started.wait()
        for number in range(150):
            who = {"user_id": name} if number % 3 else {"user_id": name, "anonymous_id": f"{name}-{number % 2}"}
            named = tuple(Identifier(kind, value) for kind, value in who.items())
            event = Event(type="page", identifiers=named, occurred_at=stage.now, key=f"{name}-{number}")
            try:
                [receipt] = stage.engine.recorder.record([event])
                accepted.setdefault(name, []).append(receipt.id)
            except BeingErased:
                pass

    def join_and_part() -> None:
        started.wait()
        number = 0
        while not ends.is_set():
            number += 1
            names = ("user_id:other-0", "user_id:other-1")
            with suppress(Conflict):
                stage.engine.identity.merge("default", *names, request=f"m{number}", force=True)
                stage.engine.identity.split("default", names[0], [names[1]], request=f"s{number}")

    threads = [threading.Thread(target=tell, args=(name,)) for name in (ADA, "other-0")]
    threads.append(threading.Thread(target=join_and_part))
    for thread in threads:
        thread.start()
    started.wait()
    done = [stage.erase(f"user_id:{ADA}", request=str(number)) for number in range(3) if is_known(stage, number)]
    for thread in threads[:2]:
        thread.join()
    ends.set()
    threads[2].join()
    assert done
    erased = {id for each in done for id in stage.engine.erasures.ids("default", each.id)}
    found = set(stage.engine.store.find([id for ids in accepted.values() for id in ids]))
    assert found & erased == set()
    assert set(accepted["other-0"]) <= found
    assert set(accepted.get(ADA, ())) <= found | erased
    assert_right(stage.engine)


def is_known(stage: Stage, number: int) -> bool:
    deadline = 200
    while deadline := deadline - 1:
        try:
            return bool(stage.engine.reader.person("default", f"user_id:{ADA}"))
        except NotFound:
            time.sleep(0.005)
    return number == 0


# --- kills --------------------------------------------------------------------------------------


@pytest.mark.parametrize("touched", [False, True], ids=["as they were", "after another event"])
def test_rows_of_former_definitions_go_as_well(touched: bool) -> None:
    stage = Stage()
    person(stage, ADA, "vip")
    person(stage, "bob", "vip")
    stage.reopen(definitions=DEFINITIONS.replace("pros:", "rich:").replace("points: {score", "purse: {score"))
    if touched:
        stage.tell("page", {"user_id": ADA})
    id = stage.engine.reader.person("default", f"user_id:{ADA}").id
    rows = [
        key for key in contents(stage.store) if id in key.sort and key.table == "segment" and "pros" in key.partition
    ]
    # Whoever is recorded of has been looked at by the new definitions, and has no row of the former ones.
    assert bool(rows) is not touched
    stage.erase(f"user_id:{ADA}")
    assert list(found(stage.store, [id.encode(), MARKER.encode()])) == []
    refold_everybody(stage.engine.store, stage.engine.catalogue)
    assert_right(stage.engine)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_job_goes_on_where_a_process_was_killed(steps: int) -> None:
    stage, id = sealed()
    for _ in range(steps):
        assert stage.engine.erasures.advance("default", id).state == "running"
    stage.reopen()
    stage.work()
    assert stage.engine.erasures.find("default", id).state == "done"
    assert stage.engine.erasures.unfinished() == []
    assert stage.engine.jobs.get("default", f"erasure.{id}").state == "done"
    assert list(found(stage.store, [MARKER.encode()])) == []


def test_a_process_that_remembers_the_person_finds_out() -> None:
    stage = Stage()
    person(stage, ADA, "vip")
    person(stage, "bob", "vip")
    other = Engine(stage.store, stage.engine.catalogue, lambda: stage.now)

    def tell(key: str) -> list[str]:
        event = Event(type="page", identifiers=(Identifier("user_id", ADA),), occurred_at=stage.now, key=key)
        return staging.statuses(other.recorder.record_checked(other.recorder.check([event])))

    assert tell("1") == ["accepted"]
    other.reader.person("default", f"user_id:{ADA}")
    begun = stage.engine.erasures.begin("default", f"user_id:{ADA}")
    assert tell("2") == ["being_erased"]
    with pytest.raises(NotFound):
        other.reader.person("default", f"user_id:{ADA}")
    stage.engine.erasures.run("default", begun.id)
    assert tell("1") == ["erased"]
    with pytest.raises(NotFound):
        other.reader.person("default", f"user_id:{ADA}")
    assert tell("2") == ["accepted"]
    for engine in (other, stage.engine):
        back = engine.reader.person("default", f"user_id:{ADA}")
        assert (back.position, [each.event.key for each in engine.reader.events(back)]) == (1, ["2"])
    # As often as the former item was written, its versions never meet those of the new one.
    for number in range(40):
        assert tell(f"more {number}") == ["accepted"]
        stage.tell("page", {"user_id": ADA})
    assert_right(stage.engine)


def test_two_processes_at_the_same_erasure_make_one_certificate() -> None:
    stage = Stage()
    person(stage, ADA, "vip")
    person(stage, "bob", "vip")
    engines = [Engine(stage.store, stage.engine.catalogue, lambda: stage.now) for _ in range(3)]
    begun = stage.engine.erasures.begin("default", f"user_id:{ADA}")
    failures: list[BaseException] = []

    def run(engine: Engine) -> None:
        try:
            engine.erasures.run("default", begun.id)
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert certificate(stage, begun.id).sequence == 1
    assert list(found(stage.store, [MARKER.encode()])) == []
    assert stage.engine.erasures.unfinished() == []
    assert_right(stage.engine)


class Killed(BaseException):
    pass


class Mortal:
    """A store that dies at one of its writing calls: before it, after it, or when half of a commit is through."""

    def __init__(self, store: Store, at: int, when: str) -> None:
        self.store, self.at, self.when, self.calls = store, at, when, 0

    def _call(self, work: Callable[..., Any], given: Sequence[Any]) -> Any:
        self.calls += 1
        if self.calls != self.at:
            return work(given)
        if self.when != "before":
            work(given if self.when == "after" else given[: len(given) // 2])
        raise Killed

    def commit(self, batches: Sequence[Any]) -> Any:
        return self._call(self.store.commit, batches)

    def erase(self, ids: Sequence[str]) -> Any:
        return self._call(self.store.erase, ids)

    def purge(self) -> None:
        self._call(lambda given: self.store.purge(), ())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def killed_everywhere(made: Callable[[], Store], when: str) -> None:
    """Erase with a kill at each writing call; whoever resumes ends with the store of an erasure without kills."""
    calm = Stage(made())
    crowded(calm)
    calm.erase(f"user_id:{ADA}", request="r")
    expected = timeless(calm.store)
    # On other stores the stage alone takes seconds.
    every = 1 if calm.store.__class__.__module__.endswith(".memory") else 15
    at = 0
    while True:
        at += every
        stage = Stage(made())
        crowded(stage)
        mortal = Mortal(stage.store, at, when)
        calm_store = stage.store
        stage.reopen(mortal)  # type: ignore[arg-type]
        try:
            stage.erase(f"user_id:{ADA}", request="r")
            assert at > 5, "it was killed nowhere"
            return
        except Killed:
            pass
        stage.reopen(calm_store)
        for workspace, id in stage.engine.erasures.unfinished():
            stage.engine.erasures.run(workspace, id)
        stage.engine.erasures.run("default", stage.engine.erasures.begin("default", f"user_id:{ADA}", request="r").id)
        assert timeless(stage.store) == expected
        assert list(found(stage.store, [MARKER.encode()])) == []
        assert_right(stage.engine)
        stage.store.close()


def timeless(store: Store) -> dict[Key, bytes]:
    """Everything but the pseudonyms, which have a random key; ids of events in whatever pages."""
    items = contents(store)
    ids = {
        part
        for key in items
        if key.table == ERASURE_IDS
        for part in erased_events(store, *key.partition.split("/")).ids
    }
    left = {key: value for key, value in items.items() if key.table not in (*LEDGER, "consent_remaining", "cache")}
    return left | {Key(ERASURE_IDS, "all"): "".join(sorted(ids)).encode()}


@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_killed_at_every_writing_call_it_is_resumed(when: str) -> None:
    killed_everywhere(MemoryStore, when)


def test_killed_at_any_writing_call_an_erasure_has_a_job_that_goes_on_as_long_as_it_is_open() -> None:
    for at in range(1, 7):
        stage = Stage()
        person(stage, ADA, "vip")
        store = stage.store
        stage.reopen(Mortal(store, at, "before"))  # type: ignore[arg-type]
        with pytest.raises(Killed):
            stage.erase(f"user_id:{ADA}", request="r")
        stage.reopen(store)
        jobs = [each for each in stage.engine.jobs.page("default")[0] if not each.has_ended]
        assert [each.params["erasure"] for each in jobs] == [id for _, id in stage.engine.erasures.unfinished()]


def test_an_open_erasure_names_the_person_and_a_closed_one_nobody() -> None:
    stage, id = sealed()
    assert any(MARKER.encode() in value for key, value in contents(stage.store).items() if key.table == ERASURE_OPEN)
    while stage.engine.erasures.advance("default", id).state == "running":
        pass
    assert [key for key in contents(stage.store) if key.table == ERASURE_OPEN] == []
