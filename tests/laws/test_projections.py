"""Law: every projection that ships keeps the projection laws, whatever its events hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.staging import CATALOGUE
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.view_parts import VALUE, Parts, values
from threadline.testing import projection_laws, scenarios
from threadline.testing.probing import Asked, asked_of, events_for
from threadline.testing.projection_laws import LAWS, Law, lacking

FIELDS = ("tag", "total", "currency", "campaign_id", "action", "channel", "category", "score", "left", "message_count",
          "topic", "scopes", "application_id", "url", "type", "key", "value", "products", "answers", "form",
          "expires_at", "derived_from", "recalled", "confidence", "product_id", "points", "rule", "cooldown",
          "streak", "kind", "of", "board", "turn", "journey", "run", "n", "step", "entered_at", "until", "template",
          "variables", "mails", "reason", "bounce", "address", "machine", "message", "broadcast")  # fmt: skip
NAUGHTY = Path(__file__).parents[1] / "data" / "naughty_strings" / "strings.json"

every_projection = pytest.mark.parametrize("projection", CATALOGUE.projections, ids=lambda each: each.name)


def storable(event: Event) -> bool:
    """Whether the recorder would let it through: what cannot be packed never meets a projection."""
    try:
        return bool(msgspec.msgpack.encode((event.properties, event.context)) and msgspec.json.encode(event))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


def as_read(event: Event) -> Event:
    """The event as a projection meets it, which is as the log holds it."""
    return msgspec.json.decode(msgspec.json.encode(event), type=Event)


@cache
def asked(name: str) -> Asked:
    """What a projection asks of events: types and fields that no list here can know of."""
    return asked_of(CATALOGUE.projections[CATALOGUE.index[name]])


@every_projection
@given(history=scenarios.histories(people=1), random=scenarios.randoms)
def test_plausible_events(projection: Projection, history: list[Event], random: Random) -> None:
    own = events_for(asked(projection.name), random, random.randrange(9))
    for law in LAWS:
        law(projection, scenarios.recorded([*history, *own]), random)


def _key(event: Event) -> str:
    # Two events of one id never reach a projection: the engine records the first of them.
    return event.key


@cache
def hostile_events(name: str) -> st.SearchStrategy[list[Event]]:
    """A few events in which the fields that a projection of this name reads hold what nobody expects."""
    own = asked(name)
    event = st.builds(
        lambda type, properties, context, at, key, ref, name: Event(
            type=type,
            identifiers=(Identifier("user_id", name),),
            occurred_at=at,
            key=str(key),
            properties=properties,
            context=context,
            object_ref=ref,
        ),
        st.sampled_from([*sorted({*scenarios.TYPES, *own.types}), "campaign_ignored", "x" * 200]),
        scenarios.hostile_payloads(sorted({*FIELDS, *own.properties})),
        scenarios.hostile_payloads(sorted({"timezone", "ip", "campaign", "page", *own.context})),
        st.sampled_from([-62_135_596_800_000_000, 253_402_300_799_999_999, 0, scenarios.NOW, scenarios.NOW + 1]),
        st.integers(0, 10**9),
        st.sampled_from(["", "acme", "é" * 600]),
        st.sampled_from(["u", "é" * 512]),
    )
    return st.lists(event, max_size=6, unique_by=_key)


def met_by(projection: Projection, events: list[Event], random: Random) -> None:
    met = scenarios.recorded([as_read(event) for event in events if storable(event)])
    for law in LAWS:
        law(projection, met, random)


@every_projection
@settings(max_examples=150)
@given(data=st.data(), random=scenarios.randoms)
def test_hostile_events(projection: Projection, data: st.DataObject, random: Random) -> None:
    met_by(projection, data.draw(hostile_events(projection.name)), random)


@every_projection
@pytest.mark.slow
def test_naughty_strings(projection: Projection, seed: int) -> None:
    texts: list[str] = json.loads(NAUGHTY.read_text(encoding="utf-8"))
    own = asked(projection.name)
    types = sorted({*scenarios.TYPES, *own.types})
    events = [
        Event(
            type=type,
            identifiers=(Identifier("user_id", text or "u"),),
            occurred_at=scenarios.NOW - number,
            key=f"{type}-{number}",
            properties=dict.fromkeys((*FIELDS, *own.properties), text) | {text: text},
            context=dict.fromkeys(("timezone", *own.context), text),
            object_ref=text,
        )
        for number, text in enumerate(texts)
        for type in (types[number % len(types)], "tag_added", "group")
    ]
    assert len(events) >= 300
    met_by(projection, events, Random(seed))


def steps(parts: Parts, to: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path to each part of a view that has a name of its own."""
    for name, inside in parts.known.items():
        yield (*to, name)
        yield from steps(inside, (*to, name)) if inside is not None else ()
    if parts.named is not None and parts.inside is not None:
        yield from steps(parts.inside, (*to, "any-one"))


@every_projection
def test_a_step_that_is_nearly_one_of_a_view_is_a_mistake_with_the_near_one(projection: Projection) -> None:
    depends = projection.depends
    assert depends.parts or depends.feeds or depends.lacks, "any condition on it passes: say what stands in its view"
    for *to, name in steps(depends.parts) if depends.parts else ():
        assert lacking(projection, (*to, name)) == ""
        inside = within(depends.parts, to)
        misspelt = f"{name[:-1]}q"
        if inside.named is None and misspelt not in inside.known:
            problem = lacking(projection, (*to, misspelt))
            assert misspelt in problem
            assert "did you mean" in problem or "choose from" in problem, problem


def within(parts: Parts | None, to: Sequence[str]) -> Parts:
    for step in to:
        assert parts is not None
        parts = parts.known.get(step, parts.inside)
    assert parts is not None
    return parts


# --- the laws themselves can fail -------------------------------------------------------------


def broken(**changes: Any) -> Projection:
    """A projection that counts, broken in one way."""

    def fold(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
        state["n"] = state.get("n", 0) + 1
        return state

    given: dict[str, Any] = {
        "name": "broken",
        "version": 1,
        "handles": None,
        "empty": dict,
        "fold": fold,
        "view": lambda state, now, edges: 0,
    }
    return Projection(**{**given, **changes})


def indexed(rows: Any, **changes: Any) -> Projection:
    """The same with index rows, which it says stand in the table ``t``."""
    return broken(index=Index(rows, tables=("t",)), **changes)


def _last_wins(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    return {"last": recorded.id}


def _keeps_tuples(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    # A tuple comes back as a list, which equals no tuple any more: every second event starts anew.
    return {"pair": (0, 1), "n": state.get("n", 0) + (0 if state.get("pair") == [0, 1] else 1)}


def _notes_the_type(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    return {"newest": {"type": recorded.event.type}}


def _counts_in_a_plain_dict(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    return {"n": state.get("n", 0) + 1} if type(state) is dict else state


def _marks_the_event(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    recorded.event.properties["seen"] = True
    return state


def _views_and_counts(state: dict[str, Any], now: int, edges: Sequence[Recorded]) -> int:
    state["views"] = state.get("views", 0) + 1
    return int(state["views"])


def _first_of_both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return one if one else other


def _gives_up_late(one: dict[str, Any], other: dict[str, Any]) -> None:
    one["n"] = one.get("n", 0) + other.get("n", 0)


def _counts_untouched(state: dict[str, Any], recorded: Recorded) -> None:
    state["n"] = state.get("n", 0) + 1


_SHARED: dict[str, Any] = {}

BREAKS = [
    (projection_laws.any_order_gives_an_equal_state, broken(fold=_last_wins)),
    (projection_laws.any_order_gives_an_equal_state, broken(fold=_last_wins, ordered=True, in_place=lambda s, r: True)),
    (projection_laws.a_refold_equals_the_incremental_state, broken(fold=_keeps_tuples)),
    (projection_laws.a_state_in_parts_does_as_the_plain_one, broken(fold=_counts_in_a_plain_dict, in_parts=True)),
    (
        projection_laws.a_state_in_parts_does_as_the_plain_one,
        broken(fold=_notes_the_type, view=lambda state, now, edges: state["newest"], in_parts=True),
    ),
    (projection_laws.the_compiled_fold_equals_the_plain_one, broken(faster=Faster(lambda type: _last_wins))),
    (
        projection_laws.an_event_that_touches_nothing_changes_nothing_that_is_seen,
        broken(fold=_counts_untouched, view=lambda state, now, edges: state.get("n")),
    ),
    (
        projection_laws.an_event_that_touches_nothing_changes_nothing_that_is_seen,
        broken(fold=_counts_untouched, depends=Depends(due=lambda state, now: now + state.get("n", 0))),
    ),
    (
        projection_laws.an_event_that_touches_nothing_changes_nothing_that_is_seen,
        indexed(lambda state, workspace, person: [Row("t", workspace, str(state.get("n")))], fold=_counts_untouched),
    ),
    (projection_laws.merging_two_states_equals_folding_the_union, broken(faster=Faster(merge=_first_of_both))),
    (projection_laws.merging_two_states_equals_folding_the_union, broken(faster=Faster(merge=_gives_up_late))),
    (projection_laws.an_empty_state_is_new_every_time, broken(empty=lambda: _SHARED)),
    (projection_laws.a_fold_leaves_the_event_alone, broken(fold=_marks_the_event)),
    (projection_laws.a_view_changes_nothing, broken(view=_views_and_counts)),
    (projection_laws.a_view_changes_nothing, broken(depends=Depends(due=lambda state, now: now))),
    (projection_laws.of_nobody_the_same_is_shown_at_all_times, broken(view=lambda state, now, edges: now)),
    (projection_laws.of_nobody_the_same_is_shown_at_all_times, broken(depends=Depends(due=lambda state, now: now + 1))),
    (projection_laws.rows_fit_the_store, indexed(lambda state, workspace, person: [Row("t", f"{workspace}/", "")])),
    (projection_laws.rows_fit_the_store, indexed(lambda state, workspace, person: [Row("t", "everybody", person)])),
    (projection_laws.rows_fit_the_store, indexed(lambda state, workspace, person: [Row("u", workspace, person)])),
    (
        projection_laws.a_view_has_what_it_may_have,
        broken(view=lambda state, now, edges: {"n": 1, "m": 2}, depends=Depends(parts=Parts(values("n")))),
    ),
    (
        projection_laws.a_view_has_what_it_may_have,
        broken(view=lambda state, now, edges: {"n": {"of": 1}}, depends=Depends(parts=Parts({"n": VALUE}))),
    ),
    (
        projection_laws.a_view_has_what_it_may_have,
        broken(view=lambda state, now, edges: {"n": 1}, depends=Depends(lacks=lambda path: "no n")),
    ),
    (
        projection_laws.a_view_has_what_it_may_have,
        broken(view=lambda state, now, edges: {"n": 1}, depends=Depends(feeds=lambda path: frozenset())),
    ),
]


@pytest.mark.parametrize(("law", "projection"), BREAKS)
def test_each_law_is_broken_by_what_it_forbids(law: Law, projection: Projection) -> None:
    events = scenarios.recorded(scenarios.history(Random(7), people=1, count=9))
    with pytest.raises(AssertionError):
        law(projection, events, Random(7))


def test_every_law_has_something_that_breaks_it() -> None:
    assert {law for law, _ in BREAKS} == set(LAWS)


# --- they reach what no list knows of ---------------------------------------------------------


def _last_seat(state: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    booked = recorded.event.properties
    return {"seat": booked["seat"]} if booked.get("row") == 1 and "hall" in recorded.event.context else state


def test_a_projection_of_types_and_fields_of_its_own_is_met() -> None:
    seats = broken(handles=frozenset({"seminar_booked", "seminar_left"}), fold=_last_seat)
    own = asked_of(seats)
    assert own == Asked(("seminar_booked", "seminar_left"), ("row", "seat"), ("hall",))
    events = [events_for(own, Random(seed), 9) for seed in range(20)]
    with pytest.raises((AssertionError, KeyError)):
        met_by_each(seats, events)


def met_by_each(projection: Projection, histories: list[list[Event]]) -> None:
    for seed, events in enumerate(histories):
        met_by(projection, events, Random(seed))
