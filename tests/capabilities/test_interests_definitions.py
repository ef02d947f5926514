"""The section `interests:`: what it may say, and what is said of a mistake."""

from __future__ import annotations

import pytest

from tests.capabilities.test_interests_laws import action, declared, folded
from threadline.capabilities.profile.interests import Interests, Topic, interests_projection
from threadline.capabilities.profile.interests.ranking import rank
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Recorded
from threadline.kernel.time import DAY, HOUR
from threadline.testing.scenarios import NOW


def test_nothing_declared_is_what_ships() -> None:
    assert declared() == Interests()
    assert set(declared().sources) == {"app_action", "interest_detected", "product_viewed"}


def test_topics_take_over_what_they_leave_out() -> None:
    known = declared(
        "interests:\n  period: 7d\n  counting: capped\n  most: 5\n  window: 6h\n"
        "  topics:\n    Course: {mode: decay, half_life: 12h}\n    Quiz: {counting: unique}\n    Book: {most: 2}\n"
    )
    assert known.default == Topic("periods", 7, 30 * DAY, "capped", 5, 6 * HOUR)
    assert known.topic("Course") == Topic("decay", 7, 12 * HOUR, "capped", 5, 6 * HOUR)
    assert known.topic("Quiz") == Topic("periods", 7, 30 * DAY, "unique", 1, 6 * HOUR)
    assert known.topic("Book").most == 2
    assert known.topic("unheard of") == known.default


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interests: 3", "threadline.yaml:1: `interests` must be a mapping"),
        ("interests:\n  perod: 30d", "threadline.yaml:2: `interests`: unknown key 'perod'; did you mean 'period'?"),
        ("interests: {mode: decy}", "`mode` cannot be 'decy'; did you mean 'decay'?"),
        ("interests: {counting: uniqe}", "did you mean 'unique'?"),
        ("interests: {period: 36h}", "must be whole days, such as 7d"),
        ("interests: {period: 365d}", "`period` must be a duration from 1d to 100d"),
        ("interests: {period: soon}", "'soon' is not a duration"),
        ("interests: {half_life: 11y}", "`half_life` must be a duration of at most 10y"),
        ("interests: {counting: capped}", "add `most: 3`"),
        ("interests: {most: 3}", "`most` belongs to `counting: capped`"),
        ("interests: {counting: capped, most: 0}", "`most` must be a whole number from 1 to 1,000,000"),
        ("interests: {counting: capped, most: 9000000}", "`most` must be a whole number from 1 to 1,000,000"),
        ("interests: {window: 7h}", "divide a day evenly"),
        ("interests: {window: 5m}", "`window` must be a duration from 10m to 4w"),
        (
            "interests:\n  topics:\n    Course: {perid: 7d}",
            "threadline.yaml:3: `interests`: `topics.Course`: unknown key 'perid'",
        ),
        ("interests:\n  topics:\n    " + "x" * 51 + ": {}", "`topics`: a key must be text of 1 to 50 characters"),
        (
            "interests:\n  events:\n    viewed: {scopes: {a: b}}",
            "`events.viewed` needs `topic` or `topic_from`",
        ),
        (
            "interests:\n  events:\n    viewed: {topic: a, topic_from: b}",
            "`events.viewed` has both `topic` and `topic_from`; keep one",
        ),
        ("interests:\n  events:\n    viewed: false", "does not ship and cannot be left out"),
        ("interests:\n  events:\n    threadline.viewed: {topic: a}", "are Threadline's own"),
        (
            "interests:\n  events:\n    viewed: {topic: a, scopes: {" + "y" * 51 + ": b}}",
            "`events.viewed.scopes`: a key must be text of 1 to 50 characters",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        declared(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("threadline.yaml:")


def test_events_of_users_tell_interests() -> None:
    known = declared(
        "interests:\n  events:\n"
        "    video_watched: {topic: video, scopes: {category: genre, tag: tags}, application_from: app}\n"
        "    search_done: {topic_from: section}\n"
        "    product_viewed: false\n"
    )
    events = [
        _event("video_watched", 1, {"genre": "drama", "tags": ["a", 7, "a", None], "app": "tv"}),
        _event("search_done", 2, {"section": "help"}),
        _event("search_done", 3, {"section": 1.5}),
        _event("product_viewed", 4, {"category": "shoes"}),
    ]
    ranked = rank(known, folded(known, events), NOW)
    assert {name: [(each.scope, each.value) for each in topic.entries] for name, topic in ranked.items()} == {
        "video": [("category", "drama"), ("tag", "7"), ("tag", "a")],
        "help": [("", "")],
    }
    assert "video" in rank(known, folded(known, events), NOW, application="tv")
    assert "video" not in rank(known, folded(known, events), NOW, application="")


def _event(type: str, number: int, properties: dict[str, object]) -> Recorded:
    event = Event(type=type, identifiers=(), occurred_at=NOW - number, key=str(number), properties=properties)
    return Recorded(event, f"{number:032x}", "t", number, NOW)


def test_only_what_shapes_the_fold_folds_again() -> None:
    before = interests_projection(declared()).fingerprint
    for text in ("{period: 7d}", "{mode: decay, half_life: 1d}", "{window: 7d}", "{topics: {A: {period: 7d}}}"):
        assert interests_projection(declared(f"interests: {text}")).fingerprint == before
    for text in ("{counting: unique}", "{window: 6h, counting: unique}", "{events: {product_viewed: false}}"):
        assert interests_projection(declared(f"interests: {text}")).fingerprint != before


def test_scopes_of_one_action_count_once_each() -> None:
    twice = action(NOW - 1, 1, scopes=[{"topic": "category", "value": "A"}] * 2 + [{"topic": "article", "value": "A"}])
    ranked = rank(Interests(), folded(Interests(), [twice]), NOW)["Article"]
    assert [(each.scope, each.value, each.actions) for each in ranked.entries] == [
        ("article", "A", 1),
        ("category", "A", 1),
    ]
