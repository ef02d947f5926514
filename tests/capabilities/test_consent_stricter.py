"""Where it is not clear what somebody wants they get less mail: unknown topics, joins, addresses of others, imports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.event import CLAIMED_HISTORY, Event, Identifier
from threadline.kernel.time import HOUR

DEFINITIONS = """
consent: {topics: {letter: {}, offers: {default: opted_in}, club: {confirm: welcome}}}
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {welcome: {subject: Confirm, text: "{{ confirm_url }}", transactional: true}}
"""


def asked(*said: tuple[str, str, dict[str, Any]], **fields: Any) -> Asked:
    """Somebody with these words, an hour apart: (user, type, properties)."""
    on = Asked(definitions=DEFINITIONS)
    for number, (user, type, properties) in enumerate(said):
        event = Event(
            type=type,
            identifiers=(Identifier("user_id", user),),
            occurred_at=STARTS_AT + number * HOUR,
            key=str(number),
            source_type="external",
            properties=properties,
            **fields,
        )
        assert on.engine.recorder.record([event])[0].status == "accepted"
    return on


def subscribed(on: Asked, user: str = "ann") -> list[str]:
    person = on.engine.reader.person("default", f"user_id:{user}")
    topics = on.engine.reader.views(person, STARTS_AT + 100 * HOUR)["consent"]["topics"]
    return [name for name, topic in topics.items() if topic["subscribed"]]


@pytest.mark.parametrize("topic", ["leter", "Letter", 5, ["letter"], "a b", {"letter": True}])
def test_leaving_a_topic_that_does_not_exist_leaves_everything(topic: object) -> None:
    on = asked(("ann", "subscribed", {"topic": "letter"}), ("ann", "unsubscribed", {"topic": topic}))
    assert subscribed(on) == []


def test_leaving_a_topic_that_does_not_exist_is_an_event_with_the_reason() -> None:
    on = asked(("ann", "unsubscribed", {"topic": "leter"}))
    person = on.engine.reader.person("default", "user_id:ann")
    [(type, properties)] = [
        (each.event.type, each.event.properties) for each in on.engine.reader.events(person) if each.cause
    ]
    assert (type, properties) == ("unsubscribed", {"reason": "there is no topic leter"})


def test_leaving_a_declared_topic_leaves_that_one() -> None:
    assert subscribed(asked(("ann", "unsubscribed", {"topic": "letter"}))) == ["offers"]


def test_a_subscription_without_an_address_does_not_outlive_a_join_with_somebody_who_left() -> None:
    on = asked(("ann", "unsubscribed", {"topic": "letter"}), ("bea", "subscribed", {"topic": "letter"}))
    assert subscribed(on, "bea") == ["letter", "offers"]
    on.engine.identity.merge("default", "user_id:ann", "user_id:bea", request="1", force=True)
    assert subscribed(on) == ["offers"]
    on.engine.identity.split("default", "user_id:bea", ["user_id:bea"], request="2")
    assert subscribed(on, "bea") == ["letter", "offers"]


def test_a_subscription_with_an_address_is_the_last_word_after_a_join_too() -> None:
    on = asked(
        ("ann", "unsubscribed", {"topic": "letter"}),
        ("bea", "subscribed", {"topic": "letter", "address": "bea@example.com"}),
    )
    on.engine.identity.merge("default", "user_id:ann", "user_id:bea", request="1", force=True)
    assert subscribed(on) == ["letter", "offers"]


def test_an_import_opens_nothing_that_somebody_has_closed_themselves() -> None:
    on = asked(("ann", "unsubscribed", {"topic": "letter"}))
    for key, more in (("later", {}), ("asked", {"reopens": True})):
        event = Event(
            type="subscribed",
            identifiers=(Identifier("user_id", "ann"),),
            occurred_at=STARTS_AT + 5 * HOUR,
            key=key,
            source_type="external",
            historical=True,
            properties={"topic": "letter", **more},
        )
        on.engine.recorder.record([event])
        assert ("letter" in subscribed(on)) is bool(more)


@pytest.mark.parametrize(
    ("historical", "marks", "confirms"),
    [(True, (), True), (True, (CLAIMED_HISTORY,), False), (False, (), False)],
    ids=["history that is vouched for", "history that came with a write key", "news"],
)
def test_a_confirmation_from_elsewhere_counts_as_history_that_is_vouched_for(
    historical: bool, marks: tuple[str, ...], confirms: bool
) -> None:
    on = asked()
    event = Event(
        type="subscribed",
        identifiers=(Identifier("user_id", "ann"), Identifier("email", "ann@example.com")),
        occurred_at=STARTS_AT - HOUR,
        key="from-elsewhere",
        source_type="external",
        historical=historical,
        marks=marks,
        properties={"topic": "club", "confirmed": True},
    )
    on.engine.recorder.record([event])
    assert ("club" in subscribed(on)) is confirms


def test_an_imported_history_of_words_counts_in_its_own_order() -> None:
    words = [("ann", type, {"topic": "letter"}) for type in ("subscribed", "unsubscribed", "subscribed")]
    assert subscribed(asked(*words, historical=True)) == ["letter", "offers"]
    assert subscribed(asked(*words[:2], historical=True)) == ["offers"]
