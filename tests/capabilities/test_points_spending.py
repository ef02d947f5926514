"""A spend never overdraws and is decided once: from many threads, from several engines, through retries and merges."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.points_stage import STARTS_AT, Stage
from tests.laws.staging import Crash, CrashingStore
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.event import Identifier, Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore


def rich(points: int, definitions: str = "", store: MemoryStore | None = None) -> Stage:
    stage = Stage(definitions, store=store)
    stage.tell("conversation_started")
    stage.ask("points_adjust", id="user_id:ada", points=points - 10, request="start", reason="test")
    return stage


def spend(stage: Stage, points: int, request: str, who: str = "user_id:ada") -> str:
    return str(stage.ask("points_spend", id=who, points=points, request=request)["status"])


def test_what_is_there_can_be_spent_and_no_more() -> None:
    stage = rich(100)
    assert [spend(stage, 60, "one"), spend(stage, 60, "two"), spend(stage, 40, "three")] == [
        "spent",
        "refused",
        "spent",
    ]
    view = stage.points()
    assert (view["balance"], view["spent"], view["earned"], view["adjusted"]) == (0, 100, 10, 90)
    assert stage.types().count("points_refused") == 1


def test_a_request_sent_again_gets_the_first_answer() -> None:
    stage = rich(100)
    first = stage.ask("points_spend", id="user_id:ada", points=60, request="one")
    assert stage.ask("points_spend", id="user_id:ada", points=60, request="one") == first
    spend(stage, 40, "two")
    stage.now += DAY
    assert stage.ask("points_spend", id="user_id:ada", points=60, request="one") == first
    refused = stage.ask("points_spend", id="user_id:ada", points=1, request="three")
    stage.ask("points_adjust", id="user_id:ada", points=500, request="more", reason="test")
    assert stage.ask("points_spend", id="user_id:ada", points=1, request="three") == refused
    assert stage.points()["balance"] == 500


def test_a_request_is_the_same_wish_whoever_sends_it() -> None:
    stage = rich(100)
    first = stage.ask("points_spend", id="user_id:ada", points=60, request="one", reason="order 7")
    for source in ("shop-2027", "direct", "cli"):  # a token was changed; somebody tried again by hand
        again = stage.ask("points_spend", source=source, id="user_id:ada", points=60, request="one", reason="order 7")
        assert again == first
    stage.ask("points_adjust", id="user_id:ada", points=5, request="sorry", reason="late")
    stage.ask("points_adjust", source="direct", id="user_id:ada", points=5, request="sorry", reason="late")
    assert stage.points()["balance"] == 45
    person = stage.engine.reader.person("default", "user_id:ada")
    wished = next(each for each in stage.engine.reader.events(person) if each.event.type == "points_spend_requested")
    assert wished.event.wire == {"by": "shop"}


def test_one_request_cannot_stand_for_two_wishes() -> None:
    stage = rich(100)
    spend(stage, 10, "one")
    with pytest.raises(Conflict, match="used for something else"):
        spend(stage, 20, "one")
    with pytest.raises(NotFound):
        spend(stage, 20, "two", who="user_id:nobody")


def test_a_wish_that_came_over_a_wire_moves_nothing() -> None:
    stage = rich(100)
    stage.tell("points_spend_requested", properties={"points": 50})
    stage.tell("points_spent", properties={"points": 50})
    stage.tell("points_adjusted", properties={"points": 50})
    assert stage.points()["balance"] == 100
    stage.tell("points_spend_requested", properties={"points": 50}, source_type="direct")
    assert stage.points()["balance"] == 50


@pytest.mark.parametrize("points", [None, 0, -5, "50", 1.5, True, 10**13])
def test_a_wish_for_no_amount_is_refused(points: object) -> None:
    stage = rich(100)
    stage.tell("points_spend_requested", properties={"points": points}, source_type="direct")
    assert stage.points()["balance"] == 100
    assert stage.types().count("points_refused") == 1


def _race(stages: list[Stage], work: Callable[[Stage, int], None]) -> None:
    """Several threads on each stage, all at once."""
    barrier = threading.Barrier(len(stages) * 4)
    failed: list[BaseException] = []

    def run(stage: Stage, number: int) -> None:
        barrier.wait()
        try:
            work(stage, number)
        except BaseException as error:  # noqa: BLE001 — a thread that dies must fail the test
            failed.append(error)

    threads = [
        threading.Thread(target=run, args=(stage, 4 * index + number))
        for index, stage in enumerate(stages)
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.parametrize("engines", [1, 3])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.slow
def test_a_spend_never_overdraws_whoever_spends_at_the_same_moment(kind: str, engines: int, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "thread.db")
    stages = [rich(1_000, store=store)]  # type: ignore[arg-type]
    stages += [Stage(store=store) for _ in range(engines - 1)]
    answers: Counter[str] = Counter()
    lock = threading.Lock()

    def work(stage: Stage, number: int) -> None:
        for turn in range(25):
            # Each is asked twice, as after a time-out; 37 does not divide 1,000.
            status = [spend(stage, 37, f"{number}/{turn}") for _ in range(2)]
            assert status[0] == status[1]
            with lock:
                answers[status[0]] += 1

    _race(stages, work)
    assert answers == {"spent": 27, "refused": engines * 4 * 25 - 27}
    assert stages[-1].points()["balance"] == 1_000 - 27 * 37
    for one in refold_shard(store, stages[0].engine.catalogue):
        assert not one.differs
    store.close()


@given(st.integers(1, 6), st.sampled_from(["before", "after", "half"]))
def test_a_crash_around_the_commit_spends_once(at: int, when: str) -> None:
    store = MemoryStore()
    rich(100, store=store)
    dying = Stage(store=CrashingStore(store, at, when))  # type: ignore[arg-type]
    answers: list[str] = []
    for turn in range(6):
        while True:
            try:
                answers.append(spend(dying, 30, f"wish-{turn}"))
                break
            except Crash:
                now, dying = dying.now, Stage(store=store)
                dying.now = now
    assert answers == ["spent"] * 3 + ["refused"] * 3
    assert dying.points()["balance"] == 10


def test_who_is_merged_meanwhile_gets_the_same_answer() -> None:
    stage = rich(100)
    stage.tell("tool_used", "bob")
    first = stage.ask("points_spend", id="user_id:ada", points=60, request="one")
    other = stage.engine.reader.person("default", "user_id:bob").id
    ada = stage.engine.reader.person("default", "user_id:ada").id
    stage.engine.identity.merge("default", ada, other, request="join", force=True)
    for who in ("user_id:ada", ada):
        again = stage.ask("points_spend", id=who, points=60, request="one")
        assert (again["status"], again["event"]) == ("spent", first["event"])
    view = stage.points("bob")
    assert (view["balance"], view["earned"]) == (45, 15)


def test_a_merge_adds_and_a_split_may_leave_a_debt_that_is_earned_back() -> None:
    stage = Stage()
    for _ in range(4):
        stage.tell("tool_used", "bob")
    stage.tell("page", "ada")
    ids = [stage.engine.reader.person("default", f"user_id:{who}").id for who in ("ada", "bob")]
    stage.engine.identity.merge("default", *ids, request="join", force=True)
    assert spend(stage, 15, "one") == "spent"  # asked for by the name of ada, who earned nothing
    person = stage.engine.reader.person("default", "user_id:ada")
    stage.engine.identity.split("default", person.id, ["user_id:ada"], request="split")
    assert (stage.points("ada")["balance"], stage.points("bob")["balance"]) == (-15, 20)
    assert spend(stage, 1, "two") == "refused"
    for _ in range(4):
        stage.tell("tool_used", "ada")
    assert spend(stage, 5, "three") == "spent"


EXPIRING = "points: {expires_after: 30d, tables: [{version: 2, earn: {tool_used: 10}}]}"


def test_points_expire_at_the_end_of_their_month_and_so_much_later() -> None:
    stage = Stage(EXPIRING)
    stage.now = STARTS_AT + 10 * DAY
    stage.tell("tool_used")
    gone_at = STARTS_AT + (31 + 30) * DAY
    assert stage.points()["expires_next"] == {"at": "2026-03-03T00:00:00.000000Z", "points": 10}
    stage.now = gone_at - 3
    assert stage.points()["balance"] == 10
    stage.now = gone_at - 1
    view = stage.points()
    # No timer has fired yet: reading is exact all the same.
    assert (view["balance"], view["expired"], view["expires_next"]) == (0, 10, None)
    assert spend(stage, 1, "late") == "refused"
    stage.dispatch()
    assert stage.types().count("points_expired") == 1
    stage.dispatch()
    after = stage.points()
    assert (after["balance"], after["expired"]) == (0, 10)
    assert after["days"][0] == {"day": "2026-03-03", "earned": 0, "spent": 0, "adjusted": 0, "expired": 10}


def test_what_is_over_its_time_when_it_comes_in_is_booked_although_its_timer_has_fired() -> None:
    stage = Stage(EXPIRING)
    stage.now = STARTS_AT + 100 * DAY
    for _ in range(2):
        stage.tell("tool_used", at=STARTS_AT + DAY, historical=True, source_type="direct")
        stage.now += 1
        while stage.dispatch():
            stage.now += 1
    assert stage.types().count("points_expired") == 2
    assert stage.points()["days"][0]["expired"] == 20


@pytest.mark.parametrize("booked", [True, False], ids=["booked", "not booked yet"])
def test_a_correction_takes_nothing_that_has_expired(booked: bool) -> None:
    stage = Stage(EXPIRING)
    stage.tell("tool_used")
    stage.now = STARTS_AT + 70 * DAY
    if booked:
        stage.dispatch()
    adjusted = stage.ask("points_adjust", id="user_id:ada", points=-4, request="one", reason="a mistake")
    after = stage.points()
    assert (adjusted["balance"], after["balance"], after["expired"]) == (-4, -4, 10)


def test_the_oldest_points_are_spent_first() -> None:
    stage = Stage(EXPIRING)
    stage.tell("tool_used")
    stage.now = STARTS_AT + 40 * DAY
    stage.tell("tool_used")
    spend(stage, 7, "one")
    assert stage.points()["expires_next"]["points"] == 3
    stage.now = STARTS_AT + 65 * DAY
    # A spend books what is over its time before it takes anything.
    assert spend(stage, 10, "two") == "spent"
    assert stage.types()[-1] == "points_spent"
    assert stage.points()["balance"] == 0
    assert stage.dispatch() == 1
    assert stage.types().count("points_expired") == 1


def test_who_is_parted_again_keeps_what_expires() -> None:
    stage = Stage(EXPIRING)
    for who in ("ada", "bo"):
        stage.tell("tool_used", who)
    stage.engine.identity.merge("default", "user_id:ada", "user_id:bo", request="join", force=True)
    # Earned together, in the month that each had a timer for.
    stage.tell("tool_used", "bo")
    merged = next(each for each in stage.engine.log.feed() if each.entry.type == MERGED)
    stage.engine.identity.unmerge("default", merged.entry.id, request="part")
    stage.now = STARTS_AT + 70 * DAY
    while stage.dispatch():
        pass
    booked = {who: [each.event.properties["points"] for each in _expiries(stage, who)] for who in ("ada", "bo")}
    assert booked == {"ada": [10], "bo": [20]}


def _expiries(stage: Stage, who: str) -> list[Recorded]:
    person = stage.engine.reader.person("default", f"user_id:{who}")
    return stage.engine.reader.events(person, types=frozenset({"points_expired"}))


def test_a_longer_life_declared_later_counts_for_all_that_is_left() -> None:
    stage = Stage(EXPIRING)
    stage.tell("tool_used")
    longer = Stage(EXPIRING.replace("30d", "90d"), store=stage.engine.store)
    longer.now = STARTS_AT + 70 * DAY
    longer.dispatch()  # the timer of the shorter life fires, finds nothing due and sets itself again
    assert longer.points()["balance"] == 10
    longer.now = STARTS_AT + 130 * DAY
    longer.dispatch()
    assert longer.points()["expired"] == 10
    assert longer.types().count("points_expired") == 1


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_the_balance_is_never_below_zero_at_any_instant(seed: int) -> None:
    random = Random(seed)
    stage = Stage(EXPIRING)
    instants = []
    for turn in range(60):
        stage.now += random.choice((HOUR, DAY, 9 * DAY))
        if random.random() < 0.5:
            stage.tell("tool_used", at=stage.now - random.choice((0, HOUR, 2 * DAY)))
        elif _is_known(stage):
            spend(stage, random.randrange(1, 40), f"{turn}")
        stage.dispatch()
        instants.append(stage.now)
    if not _is_known(stage):
        return
    person = stage.engine.reader.person("default", "user_id:ada")
    for now in instants:
        view = stage.engine.reader.views(person, now + 1, known_at=now + 1, names=["points"])["points"]
        assert view["balance"] >= 0, now


def _is_known(stage: Stage) -> bool:
    try:
        return bool(stage.engine.reader.person("default", "user_id:ada"))
    except NotFound:
        return False


def test_limits_are_those_of_the_whole_person() -> None:
    stage = Stage()
    stage.tell("app_opened", "ada")
    stage.tell("identify", identifiers=(Identifier("user_id", "ada"), Identifier("anonymous_id", "phone")))
    stage.tell("app_opened", identifiers=(Identifier("anonymous_id", "phone"),))
    assert stage.points()["earned"] == 1
