"""People are found by part of what they are called by, in any case, with an index and without one."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from tests.capabilities.search_stage import searching
from threadline.engine.stand_ins import NoIndex
from threadline.kernel.errors import InvalidValue

FIRST, LAST = ("Ada", "ÁDÁM", "Bob", "Seg", "李"), ("Lovelace", "Kovács", "One", "o'Neill")
MAILS = ("ada.l@example.com", "Seg.One@shop.example", "")
PEOPLE = st.lists(
    st.tuples(st.sampled_from(FIRST), st.sampled_from(LAST), st.sampled_from(MAILS), st.booleans()), max_size=8
)
TEXTS = st.lists(
    st.sampled_from(("ada", "ADAM", "seg", "one", "love", "kov", "exam", "李", "neil", "u3", "o", "l")), min_size=1
)


def plain(text: str) -> str:
    """A text without case and accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower()


def _known(people: list[tuple[str, str, str, bool]], *, indexed: bool = True) -> Asked:
    """People as they identify themselves; a mail is an identifier of some, and a trait of others."""
    asked = searching()
    if not indexed:
        asked.engine.search = NoIndex()
    for number, (first, last, mail, is_identifier) in enumerate(people):
        traits = {"first_name": first, "last_name": last} | ({"contact": mail} if mail and not is_identifier else {})
        own = {"user_id": f"u{number}"} | ({"email": f"{number}.{mail}"} if mail and is_identifier else {})
        asked.tell("identify", **own, properties=traits)
        asked.tell("page_viewed", **own, properties={"title": "Ada Seg Kovacs one love"})
    return asked


def _found(asked: Asked, text: str, **params: Any) -> set[str]:
    people: set[str] = set()
    cursor = ""
    while True:
        page = asked.ask("people_find", text=text, cursor=cursor, **params)
        people |= {each for person in page["people"] for each in person["identifiers"] if each.startswith("user_id")}
        cursor = page["next"]
        if not cursor:
            return people


def _expected(people: list[tuple[str, str, str, bool]], text: str) -> set[str]:
    """Whose names, identifiers and traits have each word that is asked for somewhere in them."""
    fitting = set()
    for number, (first, last, mail, is_identifier) in enumerate(people):
        own = [
            plain(each) for each in (first, last, f"{number}.{mail}" if mail and is_identifier else mail, f"u{number}")
        ]
        if all(any(plain(wanted) in each for each in own) for wanted in text.split()):
            fitting.add(f"user_id:u{number}")
    return fitting


@given(PEOPLE, TEXTS.map(" ".join), st.integers(1, 3), st.sampled_from(("last_seen", "created", "name")), st.booleans())
def test_parts_find_everybody_who_is_called_so_and_nobody_else(
    people: Any, text: str, limit: int, sort: str, reverse: bool
) -> None:
    asked = _known(people)
    assert _found(asked, text, limit=limit, sort=sort, reverse=reverse) == _expected(people, text)
    assert asked.ask("people_find", text=text, limit=limit)["total"] == len(_expected(people, text))


@given(PEOPLE, TEXTS.map(" ".join))
def test_without_an_index_the_same_people_are_found_one_by_one_and_a_note_says_so(people: Any, text: str) -> None:
    asked = _known(people, indexed=False)
    assert _found(asked, text, limit=2) == _expected(people, text)
    assert "1,000 at a time" in asked.ask("people_find", text=text)["note"]


@pytest.mark.parametrize(
    "text", ["u0", "user_id:u0", "0.seg.one@shop.example", "0.SEG.one", "seg", "SHOP.example", "ovel"]
)
def test_an_address_an_id_and_a_part_of_a_name_find_a_person_first(text: str) -> None:
    asked = _known([("Seg", "Lovelace", "Seg.One@shop.example", True), ("Bob", "Kovács", "", False)])
    page = asked.ask("people_find", text=text)
    assert page["people"][0]["name"] == "Seg Lovelace", page


def test_an_address_finds_whom_it_came_with_as_a_trait_and_as_an_identifier_alike() -> None:
    asked = _known([("Ada", "One", "ada.l@example.com", False), ("Bob", "One", "ada.l@example.com", True)])
    assert [each["name"] for each in asked.ask("people_find", text="ADA.L@example.com")["people"]] == [
        "Bob One",
        "Ada One",
    ]


def test_words_of_what_somebody_did_find_nobody() -> None:
    asked = _known([("Bob", "o'Neill", "", False)])
    assert asked.ask("people_find", text="Kovacs")["people"] == []


def test_what_matches_is_named_beside_the_person() -> None:
    [person] = _known([("Bob", "Kovács", "", False)]).ask("people_find", text="kovacs")["people"]
    assert person["because"] == {"path": "properties.last_name", "text": "Kovács", "spans": [(0, 6)]}


def test_without_a_text_those_who_were_active_last_come_first() -> None:
    asked = _known([("Ada", "One", "", False), ("Bob", "One", "", False), ("Seg", "One", "", False)])
    asked.tell("page_viewed", user_id="u1")
    page = asked.ask("people_find", limit=2)
    assert ([each["name"] for each in page["people"]], page["total"]) == (["Bob One", "Seg One"], 3)
    rest = asked.ask("people_find", limit=2, cursor=page["next"])
    assert ([each["name"] for each in rest["people"]], rest["next"]) == (["Ada One"], "")


def test_a_condition_leaves_those_for_whom_it_holds_and_a_wrong_one_is_refused() -> None:
    asked = _known([("Ada", "One", "", False), ("Ada", "Kovács", "", False)])
    when = '{"field": "traits.last_name", "equals": "One"}'
    assert [each["name"] for each in asked.ask("people_find", text="ada", when=when)["people"]] == ["Ada One"]
    with pytest.raises(InvalidValue, match="not JSON"):
        asked.ask("people_find", text="ada", when="{")


@pytest.mark.parametrize("cursor", ["zz", "7:7", "any:nothing"])
def test_a_cursor_of_another_list_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidValue, match="cursor"):
        _known([("Ada", "One", "", False)]).ask("people_find", text="ada", cursor=cursor)


def test_merged_people_are_found_once_by_either_name() -> None:
    asked = _known([("Ada", "One", "", False), ("Bob", "Kovács", "", False)])
    asked.ask("people_merge", id="user_id:u0", other="user_id:u1", reason="one person", force=True)
    for text in ("ada", "bob"):
        assert len(asked.ask("people_find", text=text)["people"]) == 1, text


@given(PEOPLE, st.sampled_from((*FIRST, *LAST, "ada", "5", "2026-01-01", "")), TEXTS.map(" ".join))
def test_a_condition_on_a_trait_leaves_those_whom_it_leaves_one_by_one(people: Any, value: str, text: str) -> None:
    asked = _known(people)
    for name in ("first_name", "last_name"):
        when = json.dumps({"all": [{"field": ["traits", name], "equals": value}]})
        listed = asked.ask("people_list", when=when, limit=100)["people"]
        everybody = {each for person in listed for each in person["identifiers"] if each.startswith("user_id")}
        assert _found(asked, "", when=when, limit=3) == everybody
        assert _found(asked, text, when=when) == everybody & _expected(people, text)


def test_a_condition_holds_for_somebody_with_more_than_an_index_has() -> None:
    asked = _known([("Bob", "One", "", False)])
    asked.tell("identify", user_id="long", properties={f"a{n:03}": "x" * 90 for n in range(100)} | {"plan": "pro"})
    when = '{"field": "traits.plan", "equals": "pro"}'
    assert _found(asked, "", when=when) == _found(asked, "long", when=when) == {"user_id:long"}
    assert _found(asked, "xxx") == {"user_id:long"}
