"""The seeded world: the same for the same seed, in the shape that the engine and Segment's clients speak."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from threadline.kernel.event import Event
from threadline.kernel.limits import EVENT_BYTES_MAX, EVENT_KEY_LENGTH_MAX
from threadline.kernel.time import DAY, parse_time
from threadline.testing.world import ANONYMOUS_MIX, DEVICES_MAX, KNOWN_MIX, World, segment_message

COUNT = 6_000


def small(seed: int = 7, **changes: object) -> World:
    """A world of few people, so that each of them lives long enough to do everything."""
    settings = {"people": 200, "history": COUNT, **changes}
    return World(seed, **settings)  # type: ignore[arg-type]  # the keys are World's own


def identifiers(event: Event) -> dict[str, str]:
    """Identifiers of an event by kind."""
    return {identifier.kind: identifier.value for identifier in event.identifiers}


def test_the_same_seed_tells_the_same_events_and_another_seed_does_not() -> None:
    told = list(small(late=0.1, duplicates=0.1).events(COUNT))
    assert told == list(small(late=0.1, duplicates=0.1).events(COUNT))
    assert told != list(small(seed=8, late=0.1, duplicates=0.1).events(COUNT))


def test_fewer_events_are_a_prefix_of_more() -> None:
    assert list(small().events(500)) == list(small().events(COUNT))[:500]


def test_batches_cut_the_same_stream() -> None:
    batches = list(small().batches(1_050, 100))
    assert [len(batch) for batch in batches] == [100] * 10 + [50]
    assert [event for batch in batches for event in batch] == list(small().events(1_050))


def test_time_rises_evenly_and_fills_the_days() -> None:
    world = small()
    told = list(world.events(COUNT))
    assert all(earlier.occurred_at < later.occurred_at for earlier, later in pairwise(told))
    assert all(world.starts_at <= event.occurred_at < event.received_at < world.ends_at(COUNT) for event in told)
    assert 89 * DAY < told[-1].occurred_at - told[0].occurred_at < 91 * DAY


def test_beyond_its_history_a_world_is_live() -> None:
    world = small(history=COUNT // 2)
    told = list(world.events(COUNT))
    history, live = told[: COUNT // 2], told[COUNT // 2 :]
    assert 89 * DAY < history[-1].received_at - history[0].received_at < 91 * DAY
    assert all(later.received_at - earlier.received_at == 1_000 for earlier, later in pairwise(live))
    assert history[-1].received_at < live[0].received_at <= live[-1].received_at < world.ends_at(COUNT)


def test_late_events_are_the_asked_fraction_and_change_nothing_else() -> None:
    punctual = list(small().events(COUNT))
    told = list(small(late=0.2, late_days_max=3).events(COUNT))
    late = [event for event, on_time in zip(told, punctual, strict=True) if event.occurred_at < on_time.occurred_at]
    assert 0.15 < len(late) / COUNT < 0.25
    assert all(0 <= event.received_at - event.occurred_at <= 3 * DAY + 1_000_000 for event in told)
    moved_back = [
        msgspec.structs.replace(event, occurred_at=on_time.occurred_at)
        for event, on_time in zip(told, punctual, strict=True)
    ]
    assert moved_back == punctual


def test_duplicates_are_the_asked_fraction_and_equal_in_every_field() -> None:
    told = list(small(duplicates=0.2).events(COUNT))
    first: dict[str, Event] = {}
    for event in told:
        assert first.setdefault(event.key, event) == event
    assert 0.15 < 1 - len(first) / COUNT < 0.25
    assert list(first.values()) == list(small().events(len(first)))


def test_without_duplicates_every_key_is_new() -> None:
    keys = {event.key for event in small().events(COUNT)}
    assert len(keys) == COUNT
    assert max(map(len, keys)) < EVENT_KEY_LENGTH_MAX


def number_of(event: Event) -> int:
    """The number of the person that every identifier of this world holds."""
    first = event.identifiers[0]
    return int(first.value[:8], 16) if first.kind == "anonymous_id" else int(first.value[-6:])


def test_people_follow_zipf() -> None:
    counts = Counter(number_of(event) for event in World(3, people=1_000).events(30_000))
    harmonic = sum(1 / rank for rank in range(1, 1_001))
    for rank in (1, 2, 10):
        assert counts[rank - 1] / 30_000 == pytest.approx(1 / rank / harmonic, rel=0.1)


def test_flat_people_are_drawn_alike() -> None:
    counts = Counter(number_of(event) for event in World(3, people=10, zipf=0.0).events(5_000))
    assert len(counts) == 10
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_signing_in_joins_the_anonymous_id_that_was_used_before() -> None:
    owner: dict[str, str] = {}
    joined_later, seen_before = 0, set()
    for event in small().events(COUNT):
        names = identifiers(event)
        if event.type == "identify":
            assert set(names) == {"user_id", "anonymous_id", "email"}
            joined_later += names["anonymous_id"] in seen_before and names["anonymous_id"] not in owner
            assert owner.setdefault(names["anonymous_id"], names["user_id"]) == names["user_id"]
        elif set(names) == {"anonymous_id"}:
            assert names["anonymous_id"] not in owner, "a device is anonymous only until it is signed in on"
            seen_before.add(names["anonymous_id"])
        else:
            assert names["user_id"] in owner.values(), "a user id is known only after signing in"
    assert joined_later > 100
    devices = Counter(owner.values())
    assert 1 < max(devices.values()) <= DEVICES_MAX


def test_conversations_end_once_after_they_began_and_campaigns_are_engaged_after_delivery() -> None:
    open_conversations: set[str] = set()
    delivered: set[tuple[str, str]] = set()
    ended = engaged = 0
    for event in small().events(COUNT):
        user, properties = identifiers(event).get("user_id", ""), event.properties
        if event.type == "conversation_started":
            open_conversations.add(properties["conversation_id"])
        elif event.type == "conversation_ended":
            open_conversations.remove(properties["conversation_id"])
            ended += 1
        elif event.type == "campaign_delivered":
            delivered.add((user, properties["campaign_id"]))
        elif event.type == "campaign_engaged":
            assert (user, properties["campaign_id"]) in delivered
            engaged += 1
    assert ended > 50
    assert engaged > 50


def test_an_order_is_refunded_in_full_and_once_by_the_person_who_bought_it() -> None:
    bought: dict[str, tuple[str, float, str]] = {}
    refunded = 0
    for event in small().events(COUNT):
        if event.type in {"purchase_completed", "purchase_refunded"}:
            properties = event.properties
            purchase = (identifiers(event)["user_id"], properties["total"], properties["currency"])
            if event.type == "purchase_completed":
                bought[properties["order_id"]] = purchase
            else:
                assert bought.pop(properties["order_id"]) == purchase
                refunded += 1
    assert refunded > 10


def test_every_type_of_the_mix_occurs_and_no_other() -> None:
    kinds = {event.type for event in small().events(COUNT)}
    assert kinds == KNOWN_MIX.keys() | ANONYMOUS_MIX.keys()
    assert sum(KNOWN_MIX.values()) == sum(ANONYMOUS_MIX.values()) == 100


def test_totals_are_what_the_products_cost() -> None:
    purchases = [event.properties for event in small().events(COUNT) if event.type == "purchase_completed"]
    assert len({properties["order_id"] for properties in purchases}) == len(purchases) > 100
    for properties in purchases:
        cents = sum(round(product["price"] * 100) * product["quantity"] for product in properties["products"])
        assert round(properties["total"] * 100) == cents


def test_events_weigh_about_five_hundred_bytes() -> None:
    sizes = [len(msgspec.json.encode(segment_message(event))) for event in World(1).events(3_000)]
    assert 450 < sum(sizes) / len(sizes) < 600
    assert max(sizes) < EVENT_BYTES_MAX


def test_a_segment_message_says_what_the_event_says() -> None:
    messages = [message for body in small().segment_bodies(COUNT, 100) for message in body["batch"]]
    for event, message in zip(small().events(COUNT), messages, strict=True):
        names = identifiers(event)
        assert message["messageId"] == event.key
        assert parse_time(message["timestamp"]) == event.occurred_at
        assert message.get("userId") == names.get("user_id")
        assert message.get("anonymousId") == names.get("anonymous_id")
        assert "userId" in message or "anonymousId" in message
        assert message.get("event", message["type"]) == event.type
        payload = message["traits"] if event.type == "identify" else message["properties"]
        assert payload == event.properties
        mailed = payload if event.type == "identify" else message["context"].get("traits", {})
        assert mailed.get("email") == names.get("email")


def test_workspace_and_start_are_as_asked() -> None:
    event = next(small(workspace="north", starts_at=parse_time("2026-02-01")).events(1))
    assert event.workspace == "north"
    assert 0 < event.received_at - parse_time("2026-02-01") < DAY
