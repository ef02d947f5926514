"""The People page: its box finds whom every other door finds; filters, columns and a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.console.stage import HOSTILE, NOW, elements, opened, signed_in, unsafe
from tests.surfaces.mcp.mcp_stage import Agent
from threadline.capabilities.ask.search.naming import plain
from threadline.engine.engine import Engine
from threadline.kernel.time import DAY, HOUR, format_time

FIRST = ("Ada", "Ádám", "Łucja", "Søren", "李雷", "Zoë")
LAST = ("Lovelace", "Kovács", "o'Neill", "Storm-Weber", "de la Cruz")
DEFINITIONS = """
segments:
  at_risk: {when: {field: traits.plan, equals: pro}}
"""


FIELDS = ("q", "tag", "group", "trait", "trait_value", "value", "seen", "sort", "column", "segment", "cursor")


class World:
    """Made-up people, and the doors at which they can be asked for."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.client = signed_in(engine)
        token = engine.credentials.create("default", "token", "box", ["admin"])[1]
        self.headers = {"Authorization": f"Bearer {token}"}
        self.agent = Agent(self.client, self.headers)
        random = Random(seed)
        self.people = [_person(random, number) for number in range(30)]
        self.record([event for number, person in enumerate(self.people) for event in _events(number, person)])

    def record(self, events: Sequence[dict[str, Any]]) -> None:
        answer = self.client.post("/v1/events", json={"events": events}, headers=self.headers)
        assert answer.status_code == 200, answer.text

    def console(self, **query: Any) -> list[str]:
        """The ids that the People page shows."""
        page = self.client.get("/people", params=query)
        assert (page.status_code, unsafe(page.text)) == (200, []), query
        return _people_in(page.text)

    def palette(self, text: str) -> list[str]:
        return _people_in(self.client.get("/find", params={"q": text, "part": "list"}).text)

    def api(self, **params: Any) -> dict[str, Any]:
        answer = self.client.get("/v1/people-found", params=params, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def agents(self, text: str) -> list[str]:
        answer = self.agent.call("find_person", among="text", text=text)["answer"]
        return [person["id"] for person in answer["people"]]

    def id_of(self, number: int) -> str:
        (person,) = self.api(text=f"user_id:{self.people[number]['user_id']}")["people"]
        return str(person["id"])

    def table(self, **query: Any) -> list[dict[str, str]]:
        """The rows of the file."""
        answer = self.client.get("/people", params={**query, "part": "csv"})
        assert answer.headers["content-disposition"] == 'attachment; filename="people.csv"', answer.text
        return list(csv.DictReader(io.StringIO(answer.text)))


def _person(random: Random, number: int) -> dict[str, Any]:
    first, last = random.choice(FIRST), random.choice(LAST)
    return {
        "user_id": f"cust-{random.randrange(10**6):06}-{number}",
        "phone": f"+4420{random.randrange(10**8):08}",
        "address": f"{random.choice('abcdefg')}{number}.{random.choice(('mail', 'post'))}@shop{number % 4}.example",
        "is_trait": number % 2 == 0,
        "first_name": first,
        "last_name": last,
        "plan": "pro" if number % 3 == 0 else "free",
        "age": 20 + number,
        "seen": NOW - number * 10 * DAY - HOUR,
    }


def _events(number: int, person: dict[str, Any]) -> list[dict[str, Any]]:
    own = {"user_id": person["user_id"], "phone": person["phone"]}
    traits = {name: person[name] for name in ("first_name", "last_name", "plan", "age")}
    (traits if person["is_trait"] else own)["email"] = person["address"]
    at = format_time(person["seen"])
    return [{"type": "identify", "key": str(number), "identifiers": own, "properties": traits, "occurred_at": at}]


def _people_in(page: str) -> list[str]:
    paths = [urlsplit(a.get("href") or "").path for tag, a in elements(page) if tag == "a"]
    return [path.removeprefix("/people/") for path in paths if path.startswith("/people/")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    file: Path = tmp_path_factory.mktemp("box") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as engine:
        yield World(engine, 11)


def _parts(random: Random, text: str) -> list[str]:
    """Parts of each word of a text, of three letters or more, in any case."""
    parts = []
    for word in text.split():
        if len(word) >= 3:
            start = random.randrange(len(word) - 2)
            part = word[start : random.randrange(start + 3, len(word) + 1)]
            parts += [part, part.upper(), part.lower(), word]
    return parts


def test_any_part_of_a_name_an_address_an_id_or_a_phone_number_finds_a_person_at_every_door(
    world: World, seed: int
) -> None:
    random = Random(seed)
    for number, person in enumerate(world.people):
        id = world.id_of(number)
        for name in ("first_name", "last_name", "address", "user_id", "phone"):
            for text in random.sample(parts := _parts(random, person[name]), min(2, len(parts))):
                found = [each["id"] for each in world.api(text=text, limit=1_000)["people"]]
                assert id in found, (text, person)
                # The first page of each door is that of the operation.
                assert world.console(q=text) == found[:25], text
                assert world.palette(text) == found[:6], text
                assert world.agents(text)[:6] == found[:6], text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (lambda person: f"020 {person['phone'][5:9]} {person['phone'][9:]}", "the way it is dialled"),
        (lambda person: person["phone"][-6:], "its last digits"),
        (lambda person: person["first_name"].replace("Ł", "l").replace("ø", "o"), "letters without their strokes"),
        (lambda person: f"{person['last_name']} {person['first_name']}", "the last name first"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_text_that_people_write_in_another_way_finds_them(world: World, written: Any, meant: str) -> None:
    for number, person in enumerate(world.people):
        ids = [each["id"] for each in world.api(text=written(person), limit=1_000)["people"]]
        assert world.id_of(number) in ids, (meant, written(person))


def test_hostile_texts_in_every_field_of_the_form_leave_a_page_and_a_file(world: World) -> None:
    for text in (*HOSTILE[::6], *HOSTILE[-3:]):
        for name in (
            "q",
            "tag",
            "group",
            "trait",
            "trait_value",
            "value",
            "seen",
            "sort",
            "column",
            "segment",
            "cursor",
        ):
            query = {name: text, **({"trait": "plan"} if name == "trait_value" else {})}
            world.console(**query)
        assert world.palette(text) is not None


def test_the_filters_leave_those_whom_they_name_and_the_file_has_the_very_same(world: World) -> None:
    filters: list[tuple[dict[str, str], Any]] = [
        ({"segment": "at_risk"}, lambda person: person["plan"] == "pro"),
        ({"trait": "plan", "trait_value": "free"}, lambda person: person["plan"] == "free"),
        ({"trait": "age", "trait_value": "25"}, lambda person: person["age"] == 25),
        ({"seen": "30"}, lambda person: person["seen"] >= NOW - 30 * DAY),
        ({"seen": "-90"}, lambda person: person["seen"] < NOW - 90 * DAY),
        ({"q": "shop1", "segment": "at_risk"}, lambda person: "shop1" in person["address"] and person["plan"] == "pro"),
        (
            {"q": "shop2", "seen": "-90"},
            lambda person: "shop2" in person["address"] and person["seen"] < NOW - 90 * DAY,
        ),
    ]
    for query, fits in filters:
        wanted = {person["user_id"] for person in world.people if fits(person)}
        assert {row["user_id"] for row in world.table(**query)} == wanted, query
        assert set(world.console(**query)) == {
            world.id_of(number) for number, person in enumerate(world.people) if person["user_id"] in wanted
        }


def test_a_list_is_sorted_as_it_says_page_by_page(world: World) -> None:
    for sort, key in (("name", lambda row: row["name"]), ("last_seen", lambda row: row["last_seen_at"])):
        rows = world.table(sort=sort)
        reverse = sort == "last_seen"
        assert [plain(key(row)) for row in rows] == sorted((plain(key(row)) for row in rows), reverse=reverse)
        assert [row["id"] for row in world.table(sort=f"-{sort}")] == [row["id"] for row in reversed(rows)]
        assert len(rows) == len(world.people)


def test_the_page_says_how_many_people_there_are_in_all(world: World) -> None:
    assert "30 people" in world.client.get("/people").text
    assert "10 people" in world.client.get("/people?segment=at_risk").text


def test_a_file_has_a_column_for_each_kind_name_address_and_chosen_value_and_no_formula(world: World) -> None:
    traits, at = {"name": "=1+1", "plan": "a"}, format_time(NOW - 900 * DAY)
    evil = {"type": "identify", "key": "evil", "identifiers": {"user_id": "evil"}, "occurred_at": at}
    world.record([{**evil, "properties": traits}])
    (row,) = world.table(q="=1+1", column="traits.plan")
    assert (row["name"], row["user_id"], row["fields.traits.plan"]) == ("'=1+1", "evil", "a")
    assert not {"identifiers", "because"} & set(row)
    addresses = {row["email"] for row in world.table(segment="at_risk")}
    assert addresses == {person["address"] for person in world.people if person["plan"] == "pro"}


def test_chosen_columns_are_shown_and_stay_on_the_next_page(world: World) -> None:
    page = world.client.get("/people?column=email&column=traits.plan&sort=name").text
    assert page.count('<th scope="col"') == 3
    (following,) = [a["href"] for tag, a in elements(page) if tag == "a" and a.get("rel") == "next"]
    query = parse_qs(urlsplit(following or "").query)
    assert (query["column"], query["sort"]) == (["email", "traits.plan"], ["name"])
    assert world.client.get(str(following)).text.count('<th scope="col"') == 3


def test_a_field_that_there_is_not_is_refused_by_its_name(world: World) -> None:
    answer = world.client.get("/v1/people-found", params={"fields": "features.zz"}, headers=world.headers)
    assert (answer.status_code, "zz" in answer.text, "fields" in answer.text) == (400, True, True), answer.text
