"""People are found by part of what they are called by, in any case, with an index and without one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from tests.capabilities.search_stage import searching, words
from threadline.kernel.errors import InvalidValue, Unavailable

FIRST, LAST = ("Ada", "ÁDÁM", "Bob", "Seg", "李"), ("Lovelace", "Kovács", "One", "o'Neill")
MAILS = ("ada.l@example.com", "Seg.One@shop.example", "")
PEOPLE = st.lists(
    st.tuples(st.sampled_from(FIRST), st.sampled_from(LAST), st.sampled_from(MAILS), st.booleans()), max_size=8
)
TEXTS = st.lists(st.sampled_from(("ada", "ADAM", "seg", "one", "love", "kov", "exam", "李", "neil", "u3")), min_size=1)


class _NoIndex:
    def search(self, query: Any) -> Any:
        raise Unavailable("there is no index")


def _known(people: list[tuple[str, str, str, bool]], *, indexed: bool = True) -> Asked:
    """People as they identify themselves; a mail is an identifier of some, and a trait of others."""
    asked = searching()
    if not indexed:
        asked.engine.search = _NoIndex()  # type: ignore[assignment]
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
    """Whose names, identifiers and traits have a word beginning so, for each word that is asked for."""
    fitting = set()
    for number, (first, last, mail, _) in enumerate(people):
        own = words(f"{first} {last} {mail} u{number}")
        if all(any(_begins(word, wanted) for word in own) for wanted in words(text)):
            fitting.add(f"user_id:u{number}")
    return fitting


def _begins(word: str, wanted: str) -> bool:
    return word.startswith(wanted) if len(wanted) >= 3 else word == wanted


@given(PEOPLE, TEXTS.map(" ".join), st.integers(1, 3))
def test_words_find_everybody_whose_names_begin_so_and_nobody_else(people: Any, text: str, limit: int) -> None:
    expected = _expected(people, text)
    found = _found(_known(people), text, limit=limit)
    # Where no word begins so, people in the middle of whose words it stands are better than nobody.
    assert found == expected or (not expected and found <= _found(_known(people, indexed=False), text))


@given(PEOPLE, TEXTS.map(" ".join))
def test_without_an_index_the_same_people_are_found_one_by_one(people: Any, text: str) -> None:
    assert _found(_known(people, indexed=False), text, limit=2) >= _expected(people, text)


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
    assert asked.ask("people_find", limit=2)["people"][0]["name"] == "Bob One"
    assert asked.ask("people_find", limit=2)["next"] == ""


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
