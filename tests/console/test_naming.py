"""People are called the same on every screen: by their name, and never by an id where something better is known."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import close_up, opened, record, signed_in
from threadline.engine.engine import Engine
from threadline.surfaces.console.naming import called

CLEO = ("cleo", "identify", {"first_name": "Cleo", "email": "cleo@example.com"})


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with opened() as made:
        bought = {"total": 120, "currency": "EUR"}
        record(made, CLEO, ("cleo", "purchase_completed", bought), ("dora", "purchase_completed", bought))
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine)


PAGES = (
    "/people",
    "/people/cleo",
    "/events",
    "/features/monetary_total?part=top",
    "/find?part=list&q=cleo",
    "/analytics/rfm?part=answer",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_person_is_called_by_name(client: TestClient, page: str) -> None:
    text = close_up(html.unescape(client.get(page).text))
    shown = re.findall(r'href="/people/[^"?]*"[^>]*>(?:<span>)?([^<]*)<', text) + re.findall(r"<h1>([^<]*)</h1>", text)
    assert "Cleo" in shown
    assert not {"cleo", "cleo@example.com"} & set(shown)
    assert not [each for each in shown if re.fullmatch(r"[0-9a-f]{8,}…?", each)]


def test_whose_name_is_not_known_is_called_by_the_strongest_identifier(client: TestClient) -> None:
    assert ">dora</a>" in client.get("/features/monetary_total?part=top").text


def test_a_person_is_found_by_name(engine: Engine, client: TestClient) -> None:
    record(engine, ("customer-17", "identify", {"first_name": "Edda", "last_name": "Storm"}))
    found = re.findall(r"<span>([^<]*)</span>", close_up(client.get("/find?part=list&q=storm").text))
    assert found[0] == "Edda Storm"
    assert "customer-17" in client.get("/find?part=list&q=storm").text


def test_the_question_for_names_is_not_among_the_calls_of_the_page(client: TestClient) -> None:
    assert "people names" not in client.get("/people").text


def test_without_names_an_identifier_does_and_then_the_beginning_of_the_id() -> None:
    id = "0123456789abcdef" * 2
    assert called({"person": id, "identifiers": ["user_id:ada"]}) == "ada"
    assert called({"person": id, "identifiers": [{"kind": "user_id", "value": "ada"}]}, {}) == "ada"
    assert called(id, {id: {"id": id, "name": "Ada"}}) == "Ada"
    assert called(id) == "0123456789ab…"
