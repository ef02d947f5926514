"""Vectors at an instant equal what was served then; training sets are those vectors; the best are the best."""

from __future__ import annotations

import itertools
import statistics
from bisect import bisect_right
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.capabilities.profile.features.training import Label, read_labels, training_rows
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, SECOND, format_time

TYPES = ("purchase_completed", "purchase_refunded", "campaign_delivered", "conversation_started", "page")

# What happens: the clock goes on, an event arrives (so many hours late), or the vector is served.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 40 * 24)),
        st.tuples(st.just("late"), st.sampled_from([0, 0, 1, 24, 24 * 29, 24 * 31, 24 * 200])),
        st.tuples(st.just("serve"), st.just(0)),
    ),
    min_size=3,
    max_size=25,
)


@given(steps)
def test_a_vector_as_of_an_instant_is_what_was_served_then(steps: list[tuple[str, int]]) -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.now += HOUR
    served = []
    for place, (what, hours) in enumerate([*steps, ("serve", 0)]):
        if what == "wait":
            asked.now += hours * HOUR
        elif what == "late":
            properties = {"total": place + 0.5, "currency": "EUR", "campaign_id": f"c{place % 3}", "channel": "mail"}
            asked.tell(TYPES[place % 5], at=asked.now - hours * HOUR, user_id="ada", properties=properties)
        else:
            served.append(asked.ask("features_of", id="user_id:ada"))
    asked.now += DAY
    labels = [{"person": "user_id:ada", "at": then["as_of"], "label": place} for place, then in enumerate(served)]
    rows = asked.ask("features_training_set", labels=labels)["rows"]
    for then, row in zip(served, rows, strict=True):
        again = asked.ask("features_of", id="user_id:ada", as_of=then["as_of"])
        assert again["features"] == then["features"]
        assert row["values"] == {name: feature["value"] for name, feature in then["features"].items()}
        assert row["statuses"] == {name: feature["status"] for name, feature in then["features"].items()}
    assert [row["label"] for row in rows] == list(range(len(served)))


def buy(asked: Asked, who: str, total: float, at: int | None = None, **fields: Any) -> None:
    asked.tell("purchase_completed", at=at, user_id=who, properties={"total": total, "currency": "EUR"}, **fields)


def total(asked: Asked, **params: Any) -> Any:
    return asked.ask("features_of", id="user_id:ada", names="monetary_total", **params)["features"]["monetary_total"][
        "value"
    ]


def test_a_late_event_is_left_out_or_taken_in() -> None:
    asked = Asked()
    buy(asked, "ada", 10)
    then = format_time(asked.now + HOUR)
    asked.now += DAY
    buy(asked, "ada", 5, at=asked.now - DAY)
    assert total(asked) == 15
    assert total(asked, as_of=then) == 10
    assert total(asked, as_of=then, known="now") == 15


def test_history_counts_as_known_from_when_it_occurred() -> None:
    asked = Asked()
    buy(asked, "ada", 5, at=STARTS_AT - 10 * DAY, historical=True)
    buy(asked, "ada", 7, at=STARTS_AT - 10 * DAY)
    asked.now += DAY
    assert total(asked, as_of=format_time(STARTS_AT - 9 * DAY)) == 5
    assert total(asked) == 12


def test_only_what_occurred_before_the_instant_counts() -> None:
    asked = Asked()
    buy(asked, "ada", 5, at=STARTS_AT - DAY, historical=True)
    asked.now += DAY
    assert total(asked, as_of=format_time(STARTS_AT - DAY)) == 0
    assert total(asked, as_of=format_time(STARTS_AT - DAY + 1)) == 5


def test_names_choose_and_order_the_features() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    chosen = asked.ask("features_of", id="user_id:ada", names="recency_days, monetary_total")["features"]
    assert list(chosen) == ["recency_days", "monetary_total"]
    with pytest.raises(NotFound, match="monetary_totl"):
        asked.ask("features_of", id="user_id:ada", names="monetary_totl")


def test_the_future_is_refused() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    ahead = format_time(asked.now + DAY)
    with pytest.raises(InvalidValue, match="is in the future"):
        asked.ask("features_of", id="user_id:ada", as_of=ahead)
    with pytest.raises(InvalidValue, match=r"labels\[1\].*is in the future"):
        asked.ask("features_training_set", labels=[{"person": "x", "at": "2020-01-01"}, {"person": "x", "at": ahead}])


def test_times_are_text_and_money_names_its_currency() -> None:
    asked = Asked()
    buy(asked, "ada", 29.33)
    recorded_at = asked.now
    vector = asked.ask("features_of", id="user_id:ada")["features"]
    assert vector["monetary_total"]["computed_at"] == format_time(recorded_at)
    assert vector["monetary_total"]["currency"] == "EUR"
    assert vector["days_since_last_purchase"]["changes_at"] == format_time(recorded_at + DAY)
    assert vector["support_ticket_rate_30d"]["status"] == "NOT_FOUND"
    assert vector["support_ticket_rate_30d"]["computed_at"] is None


# --- training sets ----------------------------------------------------------------------------


def test_a_label_of_nobody_keeps_its_place() -> None:
    asked = Asked()
    buy(asked, "ada", 5, at=STARTS_AT - DAY, historical=True)
    at = format_time(STARTS_AT)
    labels = [{"person": who, "at": at, "label": who} for who in ("user_id:eve", "user_id:ada", "user_id:eve")]
    answer = asked.ask("features_training_set", labels=labels, names=["monetary_total", "has_purchased"])
    assert answer["columns"] == ["monetary_total", "has_purchased"]
    assert [row["status"] for row in answer["rows"]] == ["not_found", "ok", "not_found"]
    assert [row["values"] for row in answer["rows"]] == [
        {"monetary_total": None, "has_purchased": None},
        {"monetary_total": 5, "has_purchased": True},
        {"monetary_total": None, "has_purchased": None},
    ]


def test_people_are_read_one_after_the_other_and_the_same_label_once() -> None:
    calls: list[tuple[str, int]] = []

    def whom(ref: str) -> Any:
        def read(at: int) -> tuple[str, dict[str, Any]]:
            calls.append((ref, at))
            return ref, {name: {"value": f"{name} {at}", "status": "PRESENT"} for name in ("x", "y", "z")}

        return read

    labels = [Label("a", 1, "first"), Label("b", 1), Label("a", 1, "second"), Label("b", 3), Label("a", 2)]
    rows = training_rows(labels, ["x", "z"], whom)
    assert calls == [("a", 1), ("a", 2), ("b", 1), ("b", 3)]
    assert [(row.label.value, row.person) for row in rows] == [
        ("first", "a"),
        (None, "b"),
        ("second", "a"),
        (None, "b"),
        (None, "a"),
    ]
    assert [row.values for row in rows] == [{"x": f"x {at}", "z": f"z {at}"} for at in (1, 1, 1, 3, 2)]


def test_a_label_without_a_time_names_its_place() -> None:
    with pytest.raises(InvalidValue, match=r"labels\[1\]\.at"):
        read_labels([("a", "2026-01-01", None), ("a", "soon", None)], STARTS_AT)


# --- the best people --------------------------------------------------------------------------


@given(
    spent=st.dictionaries(st.integers(1, 30), st.integers(1, 5), max_size=14),
    limit=st.integers(1, 6),
    lowest=st.booleans(),
)
def test_the_top_is_the_front_of_everybody_sorted(spent: dict[int, int], limit: int, lowest: bool) -> None:
    asked = Asked()
    for who, amount in spent.items():
        buy(asked, f"{who}", amount)
        buy(asked, f"{who}", 100, workspace="theirs")
    everybody = []
    for who, amount in spent.items():
        everybody.append((amount if lowest else -amount, asked.ask("person", id=f"user_id:{who}")["id"]))
    answer = asked.ask("features_top", name="monetary_total", limit=limit, lowest=lowest)
    assert [(entry["value"] if lowest else -entry["value"], entry["person"]) for entry in answer["top"]] == sorted(
        everybody
    )[:limit]
    assert [entry["rank"] for entry in answer["top"]] == list(range(1, min(limit, len(spent)) + 1))
    assert answer["people_read"] == len(spent)


def test_people_without_a_number_are_not_ranked() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    assert asked.ask("features_top", name="monetary_avg_ticket")["top"] == []
    assert asked.ask("features_top", name="has_purchased")["top"] == []
    with pytest.raises(NotFound):
        asked.ask("features_top", name="unheard_of")


@given(spent=st.dictionaries(st.integers(1, 30), st.integers(1, 60), max_size=14))
def test_a_feature_is_spread_over_everybody(spent: dict[int, int]) -> None:
    asked = Asked()
    for who, amount in spent.items():
        buy(asked, f"{who}", amount)
        buy(asked, f"{who}", 100, workspace="theirs")
    answer = asked.ask("features_spread", name="monetary_total", seconds=30)
    assert (answer["people_read"], answer["exact"]) == (len(spent), True)
    assert answer["valued"] == dict.fromkeys(("people", "low", "high"), len(spent))
    counted = Counter(bisect_right([each["low"] for each in answer["bins"]], amount) for amount in spent.values())
    assert [each["people"] for each in answer["bins"]] == [counted[at + 1] for at in range(len(answer["bins"]))]
    if spent:
        assert (answer["least"], answer["most"]) == (min(spent.values()), max(spent.values()))
        assert answer["median"] == statistics.median(spent.values())
        assert answer["mean"] == pytest.approx(statistics.fmean(spent.values()))


def test_a_look_that_ends_early_says_of_whom_its_spread_is() -> None:
    asked = Asked()
    for who in range(450):
        buy(asked, f"{who}", 1 + who % 3)
    ticks = itertools.count(asked.now, SECOND)
    asked.engine.recorder.clock = lambda: next(ticks)
    answer = asked.ask("features_spread", name="monetary_total", seconds=1)
    assert (answer["people_read"], answer["exact"]) == (200, False)
    assert answer["valued"]["low"] <= 450 <= answer["valued"]["high"]
    assert sum(each["people"] for each in answer["bins"]) == 200


def test_definitions_are_listed() -> None:
    listed = {each["name"]: each for each in Asked().ask("features_list")["features"]}
    assert listed["frequency_purchases_90d"]["window"] == "90d"
    assert listed["frequency_purchases_90d"]["events"] == ["purchase_completed"]
    assert listed["monetary_total"]["events"] == ["purchase_completed", "purchase_refunded"]
    assert list(listed) == sorted(listed)
    assert not any("." in name for name in listed)
