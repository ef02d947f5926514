"""Law: merge then unmerge is never merged, and any order of merges is equal; a split takes what it is told to."""

from __future__ import annotations

from itertools import permutations
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import Engine, event
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.identity import MERGED
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.auditor import audit

A, B, C = ("anonymous_id:anonymous-0-0", "anonymous_id:anonymous-1-0", "anonymous_id:anonymous-2-0")


def apart(random: Random, count: int) -> list[Event]:
    """A history of three people, each known by one anonymous id only, so that nothing joins them by itself."""
    named = [({"anonymous_id": f"anonymous-{n}-0"}) for n in range(3)]
    told = [event("page", who, f"first-{n}") for n, who in enumerate(named)]
    for number, drawn in enumerate(scenarios.history(random, 3, count)):
        properties, context = dict(drawn.properties), dict(drawn.context)
        who = random.choice(named)
        told.append(event(drawn.type, who, f"k{number}", drawn.occurred_at, properties=properties, context=context))
    return told


def merged_by(on: Engine, ref: str) -> str:
    """The id of the newest merge event of a person."""
    found = on.reader.events(on.reader.person("default", ref), types=frozenset({MERGED}), reverse=True, limit=1)
    return found[0].id


def timers(on: Engine) -> list[tuple[str, dict[str, int]]]:
    return sorted((person.id, person.timers) for person in on.reader.all_people("default"))


histories = st.builds(apart, scenarios.randoms, st.integers(0, 30))


@given(histories, histories, scenarios.randoms)
def test_unmerging_is_never_having_merged(before: list[Event], later: list[Event], random: Random) -> None:
    while_merged = [told for told in later if told.key.startswith("k")]
    while_merged = [event_renamed(told, "during") for told in while_merged]
    never = staging.tell(MemoryStore(), [before, while_merged])
    on = staging.tell(MemoryStore(), scenarios.batched(random, before))
    undone = staging.timeless(on), timers(on)
    survivor, gone = on.identity.merge("default", A, B, request="m1")
    assert on.reader.person("default", A).id == on.reader.person("default", gone).id == survivor
    on.identity.unmerge("default", merged_by(on, A), request="u1")
    assert (staging.timeless(on), timers(on)) == undone
    on.identity.merge("default", B, A, request="m2")
    for call in scenarios.batched(random, while_merged):
        assert set(staging.statuses(on.recorder.record(call))) == {"accepted"}
    on.identity.unmerge("default", merged_by(on, A), request="u2")
    assert staging.timeless(on) == staging.timeless(never)
    staging.assert_refold_changes_nothing(on)
    staging.assert_log_is_whole(on)


def named_anew(random: Random, told: Event) -> Event:
    """The event by whom it was told with identifiers that nobody has told before, or by one of these alone."""
    (who,) = told.identifiers
    number = who.value.split("-")[1]
    more = (
        Identifier("email", f"new-{number}@example.com"),
        Identifier("user_id", f"new-{number}"),
        Identifier("phone", f"+39 055 {number}111111"),
    )
    chosen = random.sample(more, random.randrange(3))
    return msgspec.structs.replace(told, identifiers=(who, *chosen))


@given(histories, histories, scenarios.randoms)
def test_what_becomes_known_while_they_are_one_is_whose_it_would_have_been(
    before: list[Event], later: list[Event], random: Random
) -> None:
    meanwhile = [
        named_anew(random, event_renamed(told, "during"))
        for told in later
        if told.key.startswith("k") and not told.identifiers[0].value.startswith("anonymous-2")
    ]
    ones = [
        msgspec.structs.replace(told, identifiers=told.identifiers[-1:], key=f"alone {told.key}") for told in meanwhile
    ]
    never = staging.tell(MemoryStore(), [before, meanwhile, ones])
    on = staging.tell(MemoryStore(), [before], staging.ticking())
    # Two users are one person by an operator's will alone.
    on.identity.merge("default", random.choice((A, B)), C, request="m1")
    survivor, _ = on.identity.merge("default", A, B, request="m2")
    for call in scenarios.batched(random, [*meanwhile, *ones]):
        assert set(staging.statuses(on.recorder.record(call))) == {"accepted"}
    for wait in on.identity.quarantined("default"):
        on.identity.review("default", wait["id"], join=True)
    for merge in reversed(on.reader.events(on.reader.person("default", survivor), types=frozenset({MERGED}))):
        if merge.event.properties["reason"] != "review":
            on.identity.unmerge("default", merge.id, request=f"u{merge.id}")
    assert staging.timeless(on) == staging.timeless(never)
    staging.assert_refold_changes_nothing(on)
    staging.assert_log_is_whole(on)


def test_an_identifier_goes_with_whom_it_was_first_told_once_a_merge_is_undone() -> None:
    apart = [event("page", {"user_id": "a"}, "1"), event("page", {"anonymous_id": "b"}, "2")]
    on = staging.tell(MemoryStore(), [apart], staging.ticking())
    survivor, _ = on.identity.merge("default", "user_id:a", "anonymous_id:b", request="m")
    merge = merged_by(on, survivor)
    told = [{"anonymous_id": "b", "email": "b@example.com"}, {"email": "b@example.com", "phone": "+390551234"}]
    told += [{"user_id": "a", "email": "a@example.com"}, {"anonymous_id": "b", "email": "a@example.com"}]
    # On a machine of the other, and of nobody else.
    told += [{"user_id": "a", "phone": "+390551234"}, {"external_id": "c", "phone": "+390551234"}]
    for number, who in enumerate(told):
        on.recorder.record([event("page", who, f"during {number}")])
    on.identity.unmerge("default", merge, request="u")
    named = {str(each) for each in on.reader.person("default", "anonymous_id:b").identifiers.values()}
    assert named == {"anonymous_id:b", "email:b@example.com", "phone:+390551234", "external_id:c"}
    named = {str(each) for each in on.reader.person("default", "user_id:a").identifiers.values()}
    assert named == {"user_id:a", "email:a@example.com"}


def test_who_has_found_somebody_older_since_goes_with_them_once_a_merge_is_undone() -> None:
    apart = [event("page", {kind: f"{kind}-1"}, kind) for kind in ("external_id", "user_id", "anonymous_id")]
    on = staging.tell(MemoryStore(), [[each] for each in apart], staging.ticking())
    oldest, survivor, merged = (
        on.reader.person("default", f"{kind}:{kind}-1").id for kind in ("external_id", "user_id", "anonymous_id")
    )
    assert on.identity.merge("default", survivor, merged, request="m") == (survivor, merged)
    merge = merged_by(on, survivor)
    on.recorder.record([event("page", {"external_id": "external_id-1", "anonymous_id": "anonymous_id-1"}, "found")])
    assert on.reader.person("default", survivor).id == oldest
    assert on.identity.unmerge("default", merge, request="u") == (oldest, survivor)
    assert on.reader.person("default", merged).id == oldest
    assert (
        on.reader.person("default", survivor).created_at
        == on.reader.events(on.reader.person("default", survivor))[0].recorded_at
    )
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


def event_renamed(told: Event, prefix: str) -> Event:
    who = {identifier.kind: identifier.value for identifier in told.identifiers}
    return event(
        told.type, who, f"{prefix}-{told.key}", told.occurred_at, properties=told.properties, context=told.context
    )


def test_unmerging_twice_and_what_is_no_merge_is_refused() -> None:
    on = staging.tell(MemoryStore(), [apart(Random(1), 5)])
    on.identity.merge("default", A, B, request="m")
    with pytest.raises(Conflict):
        on.identity.merge("default", A, B, request="again")
    merge = merged_by(on, A)
    on.identity.unmerge("default", merge, request="u")
    with pytest.raises(Conflict):
        on.identity.unmerge("default", merge, request="u2")
    with pytest.raises(NotFound):
        on.identity.merge("default", A, "user_id:nobody", request="m3")


@given(histories, scenarios.randoms)
def test_merging_three_in_any_order_is_equal(told: list[Event], random: Random) -> None:
    dumps = set()
    for first, second, third in permutations((A, B, C)):
        on = staging.tell(MemoryStore(), scenarios.batched(random, told), staging.ticking())
        on.identity.merge("default", first, second, request="one")
        on.identity.merge("default", third, random.choice((first, second)), request="two")
        staging.assert_refold_changes_nothing(on)
        dumps.add(tuple(staging.timeless(on)))
    assert len(dumps) == 1
    assert len(dumps.pop()) == 1


@given(histories, st.permutations([1, 2]))
def test_merges_are_undone_in_any_order(told: list[Event], order: list[int]) -> None:
    on = staging.tell(MemoryStore(), [told])
    undone = staging.timeless(on)
    on.identity.merge("default", A, B, request="one")
    merges = {1: merged_by(on, A)}
    on.identity.merge("default", A, C, request="two")
    merges[2] = next(
        r.id for r in on.reader.events(on.reader.person("default", A), types=frozenset({MERGED})) if r.id != merges[1]
    )
    for number in order:
        on.identity.unmerge("default", merges[number], request=f"undo {number}")
        staging.assert_refold_changes_nothing(on)
    assert staging.timeless(on) == undone


def test_unmerging_takes_back_only_what_is_still_there() -> None:
    told = [
        [event("page", {"user_id": "a"}, "1")],
        # Founded by its e-mail, which is the stronger of the two.
        [
            event("page", {"anonymous_id": "b", "email": "b@example.com"}, "2"),
            event("page", {"anonymous_id": "b"}, "3"),
        ],
    ]
    on = staging.tell(MemoryStore(), told, staging.ticking())
    survivor, _ = on.identity.merge("default", "user_id:a", "anonymous_id:b", request="m")
    merge = merged_by(on, survivor)
    on.identity.split("default", survivor, ["anonymous_id:b"], request="s")
    on.identity.unmerge("default", merge, request="u")
    people = [on.reader.person("default", ref).id for ref in ("user_id:a", "email:b@example.com", "anonymous_id:b")]
    assert len(set(people)) == 3
    staging.assert_refold_changes_nothing(on)
    with pytest.raises(Conflict):
        on.identity.unmerge("default", merge, request="u2")


def test_who_was_split_off_with_others_is_not_there_to_be_unmerged() -> None:
    told = [
        [event("page", {"user_id": "a"}, "1"), event("page", {"anonymous_id": "b"}, "2")],
        [event("page", {"anonymous_id": "b", "email": "b@example.com", "phone": "+390551234"}, "3")],
    ]
    on = staging.tell(MemoryStore(), told, staging.ticking())
    founded = on.reader.person("default", "anonymous_id:b").id
    survivor, _ = on.identity.merge("default", "user_id:a", "anonymous_id:b", request="m")
    merge = merged_by(on, survivor)
    _, new = on.identity.split("default", survivor, ["anonymous_id:b", "email:b@example.com"], request="s")
    assert new != founded, "they are named after the stronger of the two"
    assert on.reader.person("default", founded).id == new, "an id leads to who has the thread that founded it"
    with pytest.raises(Conflict):
        on.identity.unmerge("default", merge, request="u")
    # Those who stay may be split as often as others come and go.
    on.identity.split("default", new, ["anonymous_id:b"], request="s2")
    assert on.reader.person("default", founded).id == on.reader.person("default", "anonymous_id:b").id
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


@given(histories, scenarios.randoms)
def test_identifying_events_join_in_any_order(told: list[Event], random: Random) -> None:
    links = [
        event("identify", {"user_id": "u", "anonymous_id": "anonymous-0-0"}, "l1", properties={"plan": "a"}),
        event("identify", {"user_id": "u", "anonymous_id": "anonymous-1-0"}, "l2", properties={"plan": "b"}),
        event("page", {"anonymous_id": "anonymous-2-0", "email": "u@example.com"}, "l3"),
        event("identify", {"user_id": "u", "email": "U@example.com "}, "l4"),
    ]
    everything = [*told, *links]
    expected = staging.readable(audit([scenarios.plain(each) for each in everything], scenarios.NOW))
    on = staging.tell(MemoryStore(), scenarios.telling(scenarios.shuffled, random, everything), staging.ticking())
    known = staging.pictures(on)
    assert len(known) == len(expected) == 1
    for name in ("identifiers", "events", "traits", "tags", "groups", "events_by_type"):
        assert known[0][name] == expected[0][name]
    staging.assert_refold_changes_nothing(on)
    staging.assert_log_is_whole(on)


# --- splitting ------------------------------------------------------------------------------


def signed_in() -> Engine:
    told = [
        event("tag_added", {"anonymous_id": "a"}, "1", properties={"tag": "anonymous"}),
        event("tag_added", {"user_id": "u"}, "2", properties={"tag": "known"}),
        event("identify", {"user_id": "u", "anonymous_id": "a"}, "3", properties={"plan": "pro"}),
        event("purchase_completed", {"anonymous_id": "a"}, "4", properties={"total": 5, "currency": "EUR"}),
    ]
    return staging.tell(MemoryStore(), [told])


@pytest.mark.parametrize("taken", ["anonymous_id:a", "user_id:u"])
def test_a_split_takes_the_thread_with_its_events(taken: str) -> None:
    on = signed_in()
    together = staging.timeless(on)
    previewed = [
        list(part.states)
        for part in on.identity.preview_split("default", on.reader.person("default", taken).id, [taken])
    ]
    person, new = on.identity.split("default", "user_id:u", [taken], request="s")
    known, anonymous = on.reader.person("default", "user_id:u"), on.reader.person("default", "anonymous_id:a")
    assert {known.id, anonymous.id} == {person, new}
    assert [list(on.reader.person("default", id).states) for id in (person, new)] == previewed
    told = {each.event.key for each in on.reader.events(anonymous) if not each.event.type.startswith("threadline.")}
    assert told == {"1", "4"}
    views = on.reader.views(known, scenarios.NOW)
    assert (views["profile"]["tags"], views["features"]["has_purchased"]["value"]) == (["known"], False)
    staging.assert_refold_changes_nothing(on)
    on.identity.merge("default", person, new, request="back")
    assert staging.timeless(on) == together


def test_after_a_split_nothing_joins_by_itself() -> None:
    on = signed_in()
    on.identity.split("default", "user_id:u", ["anonymous_id:a"], request="s")
    on.recorder.record([event("identify", {"user_id": "u", "anonymous_id": "a"}, "5")])
    assert on.reader.person("default", "user_id:u").id != on.reader.person("default", "anonymous_id:a").id
    assert [entry["status"] for entry in on.identity.quarantined("default")] == ["open"]
    on.identity.review("default", on.identity.quarantined("default")[0]["id"], join=True)
    assert on.reader.person("default", "user_id:u").id == on.reader.person("default", "anonymous_id:a").id
    assert [entry["status"] for entry in on.identity.quarantined("default")] == ["joined"]


def test_a_merge_that_is_undone_leaves_everybody_apart_from_whom_they_were() -> None:
    told = [
        [event("page", {"user_id": "a"}, "1"), event("page", {"email": "b@example.com"}, "2")],
        [event("page", {"email": "b@example.com", "anonymous_id": "c"}, "3")],
    ]
    on = staging.tell(MemoryStore(), told, staging.ticking())
    on.identity.split("default", "email:b@example.com", ["anonymous_id:c"], request="s")
    survivor, _ = on.identity.merge("default", "user_id:a", "email:b@example.com", request="m")
    on.identity.unmerge("default", merged_by(on, survivor), request="u")
    on.recorder.record([event("page", {"email": "b@example.com", "anonymous_id": "c"}, "4")])
    on.recorder.record([event("page", {"user_id": "a", "anonymous_id": "c"}, "5")])
    a, b, c = (on.reader.person("default", ref).id for ref in ("user_id:a", "email:b@example.com", "anonymous_id:c"))
    assert a == c != b
