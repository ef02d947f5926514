"""An opening: in force from the commit in which events leave, whatever happens after it, and wherever the log goes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.laws.erasure_stage import MARKER, found
from tests.laws.staging import event
from tests.laws.test_openings import DECLARED, NOW, WHO, Shop, made, written
from tests.mortal import Fate, Killed
from threadline.capabilities.ask.search.documents import document_of
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.folding.history import occurred_order
from threadline.engine.folding.person_packing import person_writes
from threadline.engine.folding.refold import fold_events, with_openings_in_place
from threadline.engine.maintenance.move import Move
from threadline.exports.spark.folding import fold_group, stored_rows
from threadline.kernel.disclosure import Shown
from threadline.kernel.erasure import EXPIRING
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.event import Event
from threadline.kernel.identity import MERGED
from threadline.kernel.opening import OPENING, opening_of
from threadline.kernel.store import Batch, Store, query_pages
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.surfaces.mcp.masking import Masker

LINES = ("points_earned", "points_spent", "purchase_completed")
ADA = WHO[0]


def line(number: int, days_ago: int, type: str = "points_earned", who: str = "user-0") -> Event:
    properties = {"points": 10, "total": 3, "currency": "EUR"}
    return event(type, {"user_id": who}, f"line-{number}", NOW - days_ago * DAY, properties=properties)


def shop_with_lines(store: Store | None = None, declared: str = DECLARED) -> Shop:
    """Ada earned ten points on each of nine days, spent thirty of them long ago, and bought three times."""
    shop = Shop(store, made(declared))
    shop.engine.recorder.record([line(number, number + 1) for number in range(9)])
    shop.engine.recorder.record([line(20 + number, 8, "points_spent") for number in range(3)])
    shop.engine.recorder.record([line(30 + number, 7 - 2 * number, "purchase_completed") for number in range(3)])
    return shop


def balance(shop: Shop) -> tuple[int, int]:
    points = shop.views(ADA)["points"]
    return points["balance"], points["earned"]


def test_thread_has_one_opening_in_place_of_the_events_that_left() -> None:
    shop = shop_with_lines()
    assert shop.expire(ADA, LINES, NOW - 5 * DAY) == 4 + 3 + 1
    (opening,) = (recorded for recorded in shop.events if recorded.event.type == OPENING)
    said = opening_of(opening)
    assert (said.events, said.types, said.before) == (8, sorted(LINES), NOW - 5 * DAY)
    assert said.until == NOW - 6 * DAY
    assert balance(shop) == (60, 90)
    shop.now += 3 * DAY
    assert shop.expire(ADA, LINES, shop.now - 5 * DAY) == 3 + 2
    (opening,) = (recorded for recorded in shop.events if recorded.event.type == OPENING)
    assert opening_of(opening).events == 13
    assert balance(shop) == (60, 90)
    shop.undamaged()


def test_opening_may_change_whatever_is_carried_and_nothing_else() -> None:
    catalogue = made()
    assert catalogue.touches(OPENING, "features", ("spent",))
    assert catalogue.touches(OPENING, "points", ("earned",))
    assert not catalogue.touches(OPENING, "streaks")
    assert not catalogue.touches(OPENING, "memory", ("preference",))


def test_late_event_counts_and_leaves_into_the_next_opening() -> None:
    shop = shop_with_lines()
    shop.expire(ADA, LINES, NOW - 5 * DAY)
    shop.engine.recorder.record([line(50, 8), line(51, 8, "points_spent")])
    assert balance(shop) == (60, 100)
    shop.undamaged()
    assert shop.expire(ADA, LINES, NOW - 5 * DAY) == 2
    assert balance(shop) == (60, 100)
    shop.undamaged()


@pytest.mark.parametrize("through", [0, 1_000])
def test_killed_at_any_commit_states_are_the_same_at_once_and_after_a_refold(through: int) -> None:
    expected, at = shop_with_lines().states(ADA), 0
    while at < 40:
        at += 1
        shop = shop_with_lines()
        fate = Fate(shop.store)
        fate.killed_at, fate.through = at, through
        try:
            shop.expire(ADA, LINES, NOW - 5 * DAY)
        except Killed:
            shop.engine = Engine(shop.store, shop.engine.catalogue, lambda shop=shop: shop.now)
        else:
            break
        assert shop.states(ADA) == shop.states_at(ADA, shop.now) == expected
        shop.engine.erasures.expiry.finish()
        assert shop.states(ADA) == shop.states_at(ADA, shop.now) == expected
        assert list(query_pages(shop.store, EXPIRING, "-")) == []
        shop.undamaged()
    assert 3 < at < 40


def test_changed_feature_does_not_count_what_left_and_others_do_until_it_comes_back() -> None:
    shop = shop_with_lines()
    shop.expire(ADA, LINES, NOW - 6 * DAY)

    def seen(types: str) -> tuple[Any, Any, Any]:
        got = f"features:\n  got: {{aggregate: sum, events: [{types}], of: points}}"
        shop.engine = Engine(shop.store, made(DECLARED.replace("features:", got)), lambda: shop.now)
        views = shop.views(ADA)
        return views["features"]["spent"]["value"], views["features"]["got"]["value"], views["points"]["earned"]

    assert seen("points_earned") == (9, 60, 90)  # what is new counts what is stored
    assert shop.expire(ADA, LINES, NOW - 4 * DAY) == 2 + 1
    assert seen("points_earned") == (9, 60, 90)
    assert seen("points_earned, paid") == (9, 40, 90)
    assert shop.engine.erasures.expiry.uncounted([shop.person(ADA)]) == {"features": 1}
    assert shop.expire(ADA, LINES, NOW - 2 * DAY) == 2 + 1
    assert seen("points_earned") == (9, 40, 90)  # but for what left under the others


def test_state_that_would_change_keeps_the_events() -> None:
    shop = shop_with_lines()
    person = shop.person(ADA)
    index = shop.engine.catalogue.index["points"]
    person.states[index]["sums"][0] += 1
    person.tail = None
    shop.store.commit([Batch(writes=person_writes(person, shop.engine.catalogue))])
    with pytest.raises(StoreDamaged, match="the state 'points' of person"):
        shop.expire(ADA, LINES, NOW - 5 * DAY)
    assert not any(recorded.event.type == OPENING for recorded in shop.events)
    assert len(list(shop.events)) == 15


def test_person_with_more_threads_than_a_commit_holds_is_killed_between_two_of_its_batches() -> None:
    shop = Shop()
    for number in range(70):
        shop.engine.recorder.record([line(number, 9, who=f"user-{number}")])
    for number in range(1, 70):
        shop.engine.identity.merge("default", ADA, f"user_id:user-{number}", request=f"join-{number}", force=True)
    expected, fate = shop.states(ADA), Fate(shop.store)
    fate.killed_at, fate.through = 1, 1
    with pytest.raises(Killed):
        shop.expire(ADA, LINES, NOW - 5 * DAY)
    shop.engine = Engine(shop.store, shop.engine.catalogue, lambda: shop.now)
    openings = sum(recorded.event.type == OPENING for recorded in shop.events)
    assert 0 < openings < 70
    assert shop.states(ADA) == shop.states_at(ADA, shop.now) == expected
    shop.engine.erasures.expiry.finish()
    assert shop.expire(ADA, LINES, NOW - 5 * DAY) == 70 - openings
    assert shop.states(ADA) == shop.states_at(ADA, shop.now) == expected
    assert {recorded.event.type for recorded in shop.events} == {OPENING, MERGED}
    shop.undamaged()


def test_openings_move_to_another_store_and_are_folded_on_spark_as_here() -> None:
    shop, target = shop_with_lines(), MemoryStore()
    shop.expire(ADA, LINES, NOW - 5 * DAY)
    catalogue = shop.engine.catalogue
    Move(shop.store, target, catalogue, "shop").run()
    assert Shop(target, catalogue).states(ADA) == shop.states(ADA)
    (row,) = fold_group(catalogue, "default", [(shop.person(ADA).id, recorded) for recorded in shop.events])
    (stored,) = stored_rows(shop.store, catalogue)
    assert row == stored._replace(events=row.events)


def test_callers_to_whom_personal_data_was_not_granted_see_nothing_of_what_is_carried() -> None:
    shop = shop_with_lines()
    shop.engine.recorder.record([event("seen", {"email": "ada@example.com"}, "seen", NOW - 9 * DAY)])
    shop.expire("email:ada@example.com", ["seen"], NOW - 5 * DAY)
    (opening,) = (recorded for recorded in shop.events if recorded.event.type == OPENING)
    catalogue = shop.engine.catalogue
    assert "ada@example.com" in str(opening.event.properties)
    schemas = {type.name: type.schema for type in catalogue.event_types.known}
    masker = Masker(Shown(catalogue.shown_properties, schemas), catalogue.rules)
    (entry,) = (o for o in catalogue.operations if o.name == "events_of")
    params = msgspec.convert({"id": "email:ada@example.com"}, entry.params)
    page = entry.run(Context(shop.engine, "default", shop.now, "shop"), params)
    masked = masker.masked(msgspec.to_builtins(page), entry.result, {})
    (shown,) = (item for item in masked["events"] if item["type"] == OPENING)
    assert shown["properties"]["types"] == ["seen"]
    assert {part["state"] for part in shown["properties"]["carried"]} == {"[masked]"}
    assert document_of(opening).text.split("\n") == ["threadline.opening", "ada@example.com"]


def test_who_folds_day_by_day_has_an_opening_on_the_day_from_which_it_is_whole() -> None:
    shop = shop_with_lines()
    fate = Fate(shop.store)
    fate.killed_at = 1
    with pytest.raises(Killed):  # the events that left are there still
        shop.expire(ADA, LINES, NOW - 5 * DAY)
    catalogue, events = shop.engine.catalogue, sorted(shop.events, key=occurred_order)
    placed = with_openings_in_place(events)
    older = [recorded.event for recorded in placed if recorded.event.occurred_at < NOW - 5 * DAY]
    assert [(event.type, (NOW - event.occurred_at) // DAY) for event in older] == [(OPENING, 6)]
    states = catalogue.empty()
    for day in range(10, -1, -1):
        of_day = [recorded for recorded in placed if (NOW - recorded.event.occurred_at) // DAY == day]
        fold_events(catalogue, of_day, states)
    index = catalogue.index["points"]
    assert written(states[index]) == shop.states(ADA)["points"]


def test_opening_goes_with_the_person_who_is_erased() -> None:
    shop = shop_with_lines()
    shop.engine.recorder.record(
        [event("seen", {"user_id": "user-0", "email": f"{MARKER}@example.com"}, "seen", NOW - 9 * DAY)]
    )
    shop.expire(ADA, [*LINES, "seen"], NOW - 5 * DAY)
    needles = [MARKER.encode()]
    assert list(found(shop.store, needles)) != []
    erasure = shop.engine.erasures.begin("default", ADA)
    while not shop.engine.erasures.advance("default", erasure.id).certificate:
        shop.now += 1
    assert [recorded for recorded in shop.events if recorded.event.type == OPENING] == []
    assert list(found(shop.store, needles)) == []
