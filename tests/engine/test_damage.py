"""A damaged event is named, gone past and repaired from a copy; what does not depend on it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.laws import staging
from tests.laws.staging import NOW, event, statuses
from threadline.capabilities.foundation.events.operations.feed import FeedPage, FeedParams
from threadline.capabilities.foundation.events.operations.feed import feed as feed_operation
from threadline.capabilities.profile.people.operations.person import PersonParams, person
from threadline.engine.context import Context
from threadline.engine.damage import CheckedLog, Damage, damage_of
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.engine.maintenance.repair import repair
from threadline.kernel.errors import EventDamaged
from threadline.kernel.event import Recorded
from threadline.kernel.policy import TIMER_FIRED, Emit, Policy, Timer, Wish
from threadline.kernel.projection import Projection
from threadline.kernel.store import FeedEntry, LogEntry, feed_pages
from threadline.kernel.time import DAY, MINUTE

PEOPLE = ("ada", "bob", "cy")


def react(recorded: Recorded, known: object) -> list[Wish]:
    """A timer for each page, an event when it fires."""
    if recorded.event.type == "page":
        return [Timer(key=recorded.event.key, due_at=NOW + MINUTE)]
    return [Emit(type="called", key=recorded.id, occurred_at=recorded.event.occurred_at)]


POLICY = Policy(name="care", handles=frozenset({"page", TIMER_FIRED}), react=react)


# A late event has it folded from the log again.
LAST = Projection(
    "last_page",
    1,
    frozenset({"page"}),
    dict,
    lambda state, recorded: {"n": recorded.event.properties.get("n")},
    lambda state, now, edges: state.get("n"),
    ordered=True,
)


def told(clock: Callable[[], int] = staging.frozen) -> Engine:
    """Three people with three pages each."""
    on = staging.engine(clock=clock, values=[POLICY, LAST])
    pages = [
        event("page", {"user_id": who}, f"{who}-{number}", NOW - DAY + number, properties={"n": f"f-1-{number}"})
        for number in range(3)
        for who in PEOPLE
    ]
    assert set(statuses(on.recorder.record(pages))) == {"accepted"}
    return on


def entry(on: Engine, key: str) -> FeedEntry:
    """Where the event with this key is."""
    return next(each for each in feed_pages(on.store) if f'"{key}"'.encode() in each.entry.body)


def damage(on: Engine, key: str, change: Callable[[LogEntry], LogEntry]) -> FeedEntry:
    """Damage the event with this key; it is returned as it was."""
    found = entry(on, key)
    assert on.store.mend(found, change(found.entry))
    on.recorder.clear_caches()
    return found


def unreadable(whole: LogEntry) -> LogEntry:
    """The entry with a body that is no JSON any more."""
    return whole._replace(body=whole.body.replace(b'"page"', b'"page\x02'))


def altered(whole: LogEntry) -> LogEntry:
    """The entry with a body that says something else."""
    return whole._replace(body=whole.body.replace(b"f-1-", b"f-9-"))


def digest_lost(whole: LogEntry) -> LogEntry:
    """The entry with one bit of its digest flipped."""
    return whole._replace(digest=whole.digest ^ 1 << 17)


def found(on: Engine) -> list[Damage]:
    """All damaged events of the log."""
    log = CheckedLog(on.store)
    assert sum(map(len, log.pages())) == log.entries == len(list(feed_pages(on.store)))
    return log.damaged


def feed(on: Engine, cursor: str = "", **params: bool) -> FeedPage:
    """A page of the feed."""
    page = feed_operation.run(
        Context(on, "default", on.now(), "test"), FeedParams(cursor=cursor, limit=1_000, **params)
    )
    assert isinstance(page, FeedPage)
    return page


@pytest.mark.parametrize("change", [unreadable, altered, digest_lost])
def test_a_damaged_event_is_found_and_replaced_by_its_copy(change: Callable[[LogEntry], LogEntry]) -> None:
    on, copy = told(), told()
    before = (list(feed_pages(on.store)), dump(on.store, on.catalogue))
    assert found(on) == []
    was = damage(on, "bob-1", change)
    [one] = found(on)
    assert (one.feed_entry, one.error.position) == (was._replace(entry=change(was.entry)), was.cursor)
    preview = repair(on.store, copy.store, on.catalogue, on.damage, preview=True)
    assert ([each for each, _ in preview.mended], found(on)) == ([one], [one])
    done = repair(on.store, copy.store, on.catalogue, on.damage)
    assert (done.entries, [each for each, _ in done.mended]) == (len(before[0]), [one])
    assert (done.without_copy, done.changed, done.refolded) == ([], [], 0)
    assert (found(on), list(feed_pages(on.store)), dump(on.store, on.catalogue)) == ([], *before)


def test_an_event_without_a_whole_copy_stays_as_it_is() -> None:
    on, copy = told(), told()
    damage(on, "bob-1", unreadable)
    damage(copy, "bob-1", altered)
    done = repair(on.store, copy.store, on.catalogue, on.damage)
    assert (done.mended, [each.feed_entry for each in done.without_copy]) == (
        [],
        [each.feed_entry for each in found(on)],
    )


def test_the_feed_ends_before_a_damaged_event_and_goes_past_it_on_demand() -> None:
    on = told()
    whole = feed(on)
    was = damage(on, "ada-1", altered)
    first = feed(on)
    assert (first.events, first.more) == (whole.events[: len(first.events)], True)
    assert 0 < len(first.events) < len(whole.events)
    with pytest.raises(EventDamaged, match=f"{was.entry.id} .at position {was.cursor} of the log") as refused:
        feed(on, first.next)
    assert "skip_damaged=true" in refused.value.hint
    rest = feed(on, first.next, skip_damaged=True)
    assert [each.id for each in [*first.events, *rest.events]] == [e.id for e in whole.events if e.id != was.entry.id]
    assert [(each.id, each.position) for each in rest.damaged] == [(was.entry.id, was.cursor)]
    assert [each.id for each in on.damage.known().values()] == [was.entry.id]


def test_a_person_names_their_damaged_events_and_others_are_not_marked() -> None:
    on = told()
    was = damage(on, "ada-1", altered)
    views = {}
    for who in PEOPLE:
        views[who] = person.run(Context(on, "default", on.now(), "test"), PersonParams(id=f"user_id:{who}"))
    assert {who: view.damaged_events for who, view in views.items()} == {"ada": [was.entry.id], "bob": [], "cy": []}
    assert was.entry.id not in {each.id for each in views["ada"].timeline.events}
    with pytest.raises(EventDamaged):
        on.log.event("default", was.entry.id)


def test_an_event_that_needs_a_damaged_one_is_rejected_and_its_neighbours_are_recorded() -> None:
    on = told()
    was = damage(on, "ada-1", unreadable)
    # Each is older than what is folded already, so that history is read.
    late = [event("page", {"user_id": who}, f"late-{who}", NOW - 2 * DAY) for who in PEOPLE]
    receipts = on.recorder.record(late)
    assert statuses(receipts) == ["store_damaged", "accepted", "accepted"]
    assert was.entry.id in receipts[0].message
    [(_, rejected)] = on.rejected.page("default")
    assert (rejected.code, rejected.key) == ("store_damaged", "late-ada")
    repair(on.store, told().store, on.catalogue, on.damage)
    on.recorder.clear_caches()
    assert statuses(on.recorder.record(late)) == ["accepted", "duplicate", "duplicate"]


def test_a_refold_leaves_the_person_of_a_damaged_event_as_they_are_and_names_them() -> None:
    on = told()
    was = damage(on, "ada-1", unreadable)
    done = refold_everybody(on.store, on.catalogue)
    assert (done.people, len(done.unreadable), done.differing) == (len(PEOPLE), 1, ())
    assert was.entry.id in done.unreadable[0]


def test_timers_of_a_person_who_cannot_be_read_do_not_hold_up_the_others() -> None:
    at = [NOW]
    clock = lambda: at[0]  # noqa: E731
    store = told(clock).store
    # Another definition: people are folded anew where they are next read, and Ada cannot be.
    on = staging.engine(store, clock, [POLICY, replace(LAST, version=2)])
    was = damage(on, "ada-1", unreadable)
    at[0] = NOW + DAY
    Dispatcher(on, {}, "worker").run_once()
    fired = Counter(each.entry.thread for each in feed_pages(store) if each.entry.type == TIMER_FIRED)
    assert fired == {on.reader.person("default", f"user_id:{who}").id: 3 for who in ("bob", "cy")}
    assert [each.id for each in on.damage.known().values()] == [was.entry.id]


def test_the_feed_goes_past_an_erased_event_without_a_word_and_it_is_not_damaged() -> None:
    on = told()
    whole, gone = feed(on), entry(on, "ada-1").entry.id
    assert on.store.erase([gone]) == 1
    assert ([each.id for each in feed(on).events], found(on)) == ([e.id for e in whole.events if e.id != gone], [])


def test_an_event_that_is_erased_between_the_page_and_the_look_for_it_is_not_damaged() -> None:
    on = told()
    page = on.store.feed()
    assert on.store.erase([page[0].entry.id]) == 1
    assert damage_of(on.store, page) == []
