"""Search finds what a scan of all events finds; a timeline and a network show what is linked, and nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.deciding_stage import RISK
from tests.capabilities.search_stage import find, occurs, searching, words
from threadline.exports.search import embedded
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, MILLISECOND, format_time

WORDS = [
    "red",
    "Red-shoes",
    "shoes",
    "shoe",
    "café",
    "Cafe\u0301",
    "日本語",
    "本",
    "x_y",
    "naïve",
    "O'Neill",
    "42",
    "ÅNGSTRÖM",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["page_viewed", "purchase_completed"]),
        st.sampled_from(["ada", "bob"]),
        st.sampled_from([0, 1, MILLISECOND, MILLISECOND + 1, DAY]),
        TEXTS,
        TEXTS,
    ),
    max_size=12,
)
PARTS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)), max_size=3
)


def written(parts: Any) -> str:
    """A query of parts (whether excluded, whether a beginning, words)."""
    return " ".join(f'{"-" * no}"{" ".join(some)}"{"*" * begun}' for no, begun, some in parts)


@given(
    EVENTS,
    PARTS,
    st.sampled_from(["", "page_viewed"]),
    st.sampled_from(["", "ada"]),
    st.sampled_from([1, 3, 200]),
    st.sampled_from([None, (0, 1), (1, DAY), (MILLISECOND, MILLISECOND + 1)]),
)
def test_a_search_finds_what_a_scan_finds(
    events: Any, parts: Any, type: str, person: str, limit: int, span: tuple[int, int] | None
) -> None:
    parts = [(no, begun and len(words(some[-1])[-1]) >= 3, some) for no, begun, some in parts]
    asked = searching()
    start = asked.now - 2 * DAY
    recorded: list[dict[str, Any]] = []
    for kind, user, after, title, note in events:
        at = start + after
        receipt = asked.tell(kind, at=at, user_id=user, properties={"title": title, "more": [{"note": note}]})
        text = [*words(kind), *words(user), *words(title), *words(note)]
        recorded.append({"id": receipt["id"], "type": kind, "user": user, "at": at, "text": text})
    params: dict[str, Any] = {"type": type, "limit": limit}
    # Otherwise there may be nobody of that name.
    receipt = asked.tell("signed_up", user_id="ada", at=start - DAY)
    text = ["signed", "up", "ada"]
    recorded.append({"id": receipt["id"], "type": "signed_up", "user": "ada", "at": start - DAY, "text": text})
    if person:
        params["person"] = person
    if span is not None:
        params |= {"start": format_time(start + span[0]), "stop": format_time(start + span[1])}
    expected = [
        each
        for each in recorded
        if each["type"] == (type or each["type"])
        and each["user"] == (person or each["user"])
        and (span is None or start + span[0] <= each["at"] < start + span[1])
        and all(occurs(words(" ".join(some)), each["text"], beginning=begun) != no for no, begun, some in parts)
    ]
    found = find(asked, written(parts), **params)
    assert Counter(found) == Counter(each["id"] for each in expected)
    at = {each["id"]: each["at"] // MILLISECOND for each in recorded}
    assert [at[id] for id in found] == sorted((at[id] for id in found), reverse=True)


def test_facets_count_types_rules_and_statuses_of_all_matches() -> None:
    asked = searching(RISK)
    for score in (91, 91, 5):
        asked.tell("applied", user_id="ada", properties={"score": score})
    page = asked.ask("search_find", facets=True, limit=1)
    assert page["facets"]["types"]["applied"] == 3
    assert page["facets"]["rules"] == {"risk": page["facets"]["types"]["decision_made"]}
    assert page["facets"]["statuses"]["Rejected"] == 2
    assert page["facets"]["complete"]
    assert sum(page["facets"]["types"].values()) == page["facets"]["counted"] == page["position"]


def test_decisions_are_found_by_rule_and_status() -> None:
    asked = searching(RISK)
    asked.tell("applied", user_id="ada", properties={"score": 91})
    (hit,) = asked.ask("search_find", rule="risk", status="Rejected")["hits"]
    assert (hit["rule"], hit["status"], hit["event"]["type"]) == ("risk", "Rejected", "decision_made")
    assert find(asked, kind="decision") == [hit["event"]["id"]]
    assert hit["event"]["id"] not in find(asked, kind="event")
    assert find(asked, status="Approved") == []
    with pytest.raises(NotFound, match="there is no rule 'another'"):
        find(asked, rule="another")


def test_a_highlight_marks_the_words_and_says_where_they_stand() -> None:
    asked = searching()
    asked.tell("page_viewed", user_id="ada", properties={"title": "Zwei Cafés in Köln", "seen": [{"by": "a café"}]})
    (hit,) = asked.ask("search_find", text="cafe* -paris cafes")["hits"]
    (shown,) = (each for each in hit["highlights"] if each["path"] == "properties.title")
    assert [shown["text"][start:end] for start, end in shown["spans"]] == ["Cafés"]
    assert {each["path"] for each in hit["highlights"]} == {"properties.title", "properties.seen.by"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("shoe -shoe", []),
        ("shoes -shoe*", []),
        ('"red shoe" -"red shoe"', []),
        ("shoe* -shoe", ["2"]),
        ("shoe -shoes", ["1"]),
        ('shoe -"shoe red"', ["1"]),
    ],
)
def test_a_query_that_excludes_what_it_wants_finds_nothing(text: str, found: list[str]) -> None:
    asked = searching()
    for key, title in (("1", "red shoe"), ("2", "red shoes")):
        asked.tell("page_viewed", user_id="ada", key=key, properties={"title": title})
    hits = asked.ask("search_find", text=text, facets=True)["hits"]
    assert [hit["event"]["key"] for hit in hits] == found


def test_a_person_is_found_under_every_identifier_and_after_a_merge() -> None:
    asked = searching()
    first = asked.tell("page_viewed", anonymous_id="a1")["id"]
    assert find(asked, person="anonymous_id:a1") == [first]
    second = asked.tell("signed_up", anonymous_id="a1", user_id="ada")["id"]
    assert set(find(asked, person="ada")) >= {first, second}
    assert set(find(asked, person="ada", text="a1")) >= {first}


def test_another_workspace_finds_nothing() -> None:
    asked = searching()
    asked.tell("page_viewed", user_id="ada", object_ref="x")
    assert find(asked, "ada") != []
    assert find(asked, "ada", workspace="other") == find(asked, workspace="other") == []
    asked.tell("page_viewed", user_id="bob", workspace="other")
    assert find(asked, "ada", workspace="other") == find(asked, "bob") == []


@pytest.mark.parametrize("text", ['"', "-", "***", '"" ""', "a* b", "ab*", "x " * 33, "\0"])
def test_a_query_without_a_word_or_with_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        searching().ask("search_find", text=text)


@pytest.mark.parametrize(
    "text", ['a" OR text:"b', "NEAR(a b)", "a AND", "{terms}: ke", "a\0b", "^a", "a + b", "'; x --"]
)
def test_the_language_of_the_index_is_not_spoken(text: str) -> None:
    asked = searching()
    asked.tell("page_viewed", user_id="ada")
    assert find(asked, text) == []


@pytest.mark.parametrize("cursor", ["x", "1 OR 1", "9" * 30, "--1"])
def test_a_cursor_of_another_list_is_refused(cursor: str) -> None:
    asked = searching()
    asked.tell("page_viewed", user_id="ada")
    with pytest.raises(InvalidValue):
        asked.ask("search_find", cursor=cursor)
    assert asked.ask("search_find", cursor="9" * 19)["hits"] != []


def test_a_nul_does_not_keep_an_event_from_being_found() -> None:
    asked = searching()
    id = asked.tell("page_viewed", user_id="ada", properties={"title": "red \0shoes"})["id"]
    assert find(asked, "red shoes") == [id]


def test_events_of_one_millisecond_are_all_found_whatever_their_order() -> None:
    asked = searching()
    at = asked.now - DAY
    ids = {asked.tell("tick", at=at + n % 7, user_id="ada")["id"] for n in range(60)}
    assert sorted(find(asked, type="tick", limit=7)) == sorted(ids)


def test_a_timeline_says_what_led_to_what() -> None:
    asked = searching(RISK)
    cause = asked.tell("applied", user_id="ada", properties={"score": 91})["id"]
    entries = {each["event"]["type"]: each for each in asked.ask("search_timeline", id="ada")["entries"]}
    decision = entries["decision_made"]
    assert (entries["applied"]["what"], decision["what"]) == ("event", "decision")
    assert decision["because_of"] == [cause]
    assert entries["applied"]["led_to"] == [decision["event"]["id"]]


def test_a_network_is_the_same_from_each_of_its_ends() -> None:
    asked = searching(RISK)
    cause = asked.tell("applied", user_id="ada", properties={"score": 91})["id"]
    asked.tell("applied", user_id="bob", properties={"score": 91})
    (decision,) = find(asked, rule="risk", person="ada")
    networks = [asked.ask("search_correlate", id=id)["links"] for id in (cause, decision)]
    assert [{each["event"]["id"] for each in links} for links in networks] == [{cause, decision}] * 2
    relations = [{each["event"]["id"]: each["relation"] for each in links} for links in networks]
    assert relations == [{cause: "itself", decision: "consequence"}, {cause: "cause", decision: "itself"}]
    assert len(asked.ask("search_correlate", rule="risk")["links"]) == 4


def test_events_about_one_object_are_linked_and_lead_no_further() -> None:
    asked = searching()
    ids = []
    for key in ("o-1", "o-1", "o-2"):
        events = [{"type": "order_changed", "key": f"k{len(ids)}", "identifiers": {"user_id": "ada"}, "object_id": key}]
        ids.append(asked.ask("record", events=events)["receipts"][0]["id"])
    for beginning in ("o-1", ids[0]):
        links = asked.ask("search_correlate", id=beginning)["links"]
        assert {each["event"]["id"] for each in links} == set(ids[:2])


def test_a_network_that_is_larger_than_asked_for_says_so() -> None:
    asked = searching()
    first = asked.tell("started", user_id="ada")["id"]
    for _ in range(4):
        asked.tell("followed", user_id="ada", properties={"run": first})
    assert (len((some := asked.ask("search_correlate", id=first, limit=3))["links"]), some["cut"]) == (3, True)
    assert (len((every := asked.ask("search_correlate", id=first, limit=5))["links"]), every["cut"]) == (5, False)


def test_what_nothing_names_is_not_found() -> None:
    with pytest.raises(NotFound):
        searching().ask("search_correlate", id="0" * 32)


def test_an_answer_says_how_much_of_a_log_is_searched_that_is_longer_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "SEARCH_CATCH_UP_EVENTS", 3)
    asked = searching()
    for _ in range(8):
        asked.tell("tick", user_id="ada")
    answers = [asked.ask("search_find", type="tick") for _ in range(3)]
    assert [(each["position"], len(each["hits"]), each["complete"]) for each in answers] == [
        (3, 3, False),
        (6, 6, False),
        (8, 8, True),
    ]
