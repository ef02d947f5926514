"""What policies can rely on: which events reach them, timers that stay, what views tell, merges and splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.policy import CASCADE_CUT, Emit, Policy, PolicyView, Read, Timer, Wish
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore

NOW = 1_767_225_600_000_000
FOUND = discover(definitions=Definitions())

React = Callable[[Recorded, PolicyView], Sequence[Wish]]


def engine(react: React, **policy: Any) -> Engine:
    values = {"name": "test", "handles": None, "react": react, **policy}
    return Engine(MemoryStore(), Catalogue([*FOUND, Policy(**values)], rules()), lambda: NOW)


def tell(on: Engine, type: str, who: str = "ada", at: int = NOW, **properties: Any) -> None:
    event = Event(
        type=type,
        identifiers=(Identifier("user_id", who),),
        occurred_at=at,
        key=f"{type} {who} {at}",
        properties=properties,
    )
    assert on.recorder.record([event])[0].status == "accepted"


def test_a_timer_that_is_due_earlier_stays_where_that_is_wished() -> None:
    seen: list[int] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        due = NOW + recorded.event.properties["in"]
        type = recorded.event.type
        return (Timer(key="t", due_at=due, unless_earlier=type == "kept", unless_pending=type == "pending"),)

    on = engine(react)
    told = [("kept", 5), ("kept", 7), ("kept", 3), ("kept", 3), ("moved", 9), ("kept", 10), ("pending", 2)]
    for type, ahead in told:
        tell(on, type, at=NOW - len(seen), **{"in": ahead * HOUR})
        (due,) = on.reader.person("default", "user_id:ada").timers.values()
        seen.append((due - NOW) // HOUR)
    assert seen == [5, 5, 3, 3, 9, 9, 9]
    tell(on, "pending", "bob", **{"in": HOUR})
    assert list(on.reader.person("default", "user_id:bob").timers.values()) == [NOW + HOUR]


def test_views_can_be_asked_for_at_any_instant() -> None:
    seen: list[Any] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        days = [known.view("features", at)["recency_days"]["value"] for at in (None, known.at + 2 * DAY, NOW - 3 * DAY)]
        seen.append((days, known.due("features"), known.due("features", known.at + 2 * DAY)))
        return ()

    on = engine(react)
    tell(on, "page", at=NOW - 5 * DAY)
    tell(on, "page", at=NOW - HOUR)
    assert seen[1] == ([0, 2, 2], NOW - HOUR + DAY, NOW - HOUR + 3 * DAY)


def test_what_an_event_can_change_is_told_by_type_and_path() -> None:
    seen: dict[str, list[bool]] = {}
    asked = (
        ("features", ("monetary_total",)),
        ("features", ("recency_days", "value")),
        ("features", ()),
        ("features", ("engagement_score",)),
        ("profile", ("tags",)),
        ("nothing", ()),
    )

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        seen[recorded.event.type] = [known.touches(name, path) for name, path in asked]
        return ()

    on = engine(react)
    for type in ("purchase_completed", "page", "tag_added"):
        tell(on, type)
    assert seen == {
        "purchase_completed": [True, True, True, True, False, False],
        "page": [False, True, True, True, False, False],
        "tag_added": [False, False, False, False, True, False],
    }


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (Read("featuers", (), "here"), r"here: nothing is known under 'featuers'; did you mean 'features'\?"),
        (Read("features", ("monetary",), "here"), r"here: features has no 'monetary'; did you mean 'monetary_total'\?"),
    ],
)
def test_a_policy_that_reads_what_nothing_tells_is_refused(read: Read, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        engine(lambda recorded, known: (), reads=(read,))
    engine(lambda recorded, known: (), reads=(Read("features", ("monetary_total",)), Read("profile", ("traits", "x"))))


@pytest.mark.parametrize("named", [True, False])
def test_whoever_names_them_is_told_of_merges_and_in_both_people_of_splits(named: bool) -> None:
    seen: list[tuple[str, str, int]] = []

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        seen.append((recorded.event.type, known.person, len(known.identifiers)))
        return (Emit(type="noticed", key="n", occurred_at=NOW),) if recorded.event.type != "noticed" else ()

    on = engine(react, also=frozenset({MERGED, SPLIT}) if named else frozenset())
    for who in ("ada", "bob"):
        tell(on, "page", who)
    ada, bob = (on.reader.person("default", f"user_id:{who}").id for who in ("ada", "bob"))
    seen.clear()
    survivor, _ = on.identity.merge("default", ada, bob, request="m", force=True)
    (merged,) = on.reader.events(on.reader.person("default", ada), types=frozenset({MERGED}))
    assert seen == ([(MERGED, survivor, 2), ("noticed", survivor, 2)] if named else [])
    seen.clear()
    on.identity.unmerge("default", merged.id, request="u")
    told = [each for each in seen if each[0] == SPLIT]
    assert sorted(told) == (sorted([(SPLIT, ada, 1), (SPLIT, bob, 1)]) if named else [])
    for person in (ada, bob):
        events = on.reader.events(on.reader.person("default", person))
        assert [r.event.type for r in events].count(SPLIT) == 1
        assert [r.cause for r in events if r.event.type == "noticed"].count(merged.id) == (named and person == survivor)


@pytest.mark.parametrize("more", [0, 1])
def test_whoever_keeps_to_the_room_is_not_cut_and_a_timer_that_stays_takes_none(more: int) -> None:
    stays = Timer(key="t", due_at=NOW + HOUR, unless_earlier=True)

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        if recorded.event.type != "go":
            return [stays] * 50
        emits = [Emit(type="gone", key=f"{n}", occurred_at=NOW) for n in range(known.room - 1 + more)]
        return [stays, *emits]

    on = engine(react)
    tell(on, "go")
    types = [each.event.type for each in on.reader.events(on.reader.person("default", "user_id:ada"))]
    assert types.count("gone") == CASCADE_EVENTS_MAX - 2
    assert types.count(CASCADE_CUT) == more
