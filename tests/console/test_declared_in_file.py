"""Editors of what a file declares: where it stands is said once, and what can be done about it can be done."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.console.stage import close_up, csrf_of, opened, signed_in
from threadline.engine.engine import Engine

FILE = """\
segments:
  big: {when: {field: features.monetary_total, greater_than: 50}}
  big_copy: {when: {field: features.monetary_total, greater_than: 60}}
journeys:
  welcome:
    trigger: {event: signed_up}
    steps: [{wait: 1d}, {send: hello}]
points:
  tables: [{version: ours, earn: {clicked: 1}}]
mail:
  senders: {shop: {from: shop@shop.example}}
"""
MAILS = """\
mail:
  templates:
    hello: {subject: Hello, sender: shop, text: Hello, transactional: true}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "definitions"
    folder.mkdir()
    (folder / "shop.yaml").write_text(FILE)
    (folder / "hello.yaml").write_text(MAILS)
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with opened(folder) as made:
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine, "operator")


NAMED = {
    "/segments/new?name=big": ("shop.yaml:2", "big_copy2"),
    "/journeys/new?name=welcome": ("shop.yaml:5", "welcome_copy"),
    "/senders/new?name=shop": ("shop.yaml:11", "shop_copy"),
}


def shown(client: TestClient, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return close_up(answer.text)


@pytest.mark.parametrize(("address", "place", "copy"), [(address, *rest) for address, rest in NAMED.items()])
def test_what_a_file_declares_by_name_opens_as_a_draft_with_a_free_name(
    client: TestClient, folder: Path, address: str, place: str, copy: str
) -> None:
    page = shown(client, address)
    assert page.count(f"<code>{place}</code>") == 1
    assert str(folder) not in page
    assert "/do/definitions_declare" not in page
    link = re.search(r'<a class="button" href="([^"]+)">Open as draft</a>', page)
    assert link is not None
    draft = shown(client, html.unescape(link[1]))
    assert f'name="name" id="name" value="{copy}"' in draft or f'value="{copy}"' in draft
    assert "Open as draft" not in draft
    assert "/do/definitions_declare" in draft
    key = {"big": "monetary_total", "welcome": "signed_up", "shop": "shop@shop.example"}[address.rpartition("=")[2]]
    assert key in draft


def test_what_is_declared_once_shows_the_text_for_its_file(client: TestClient, folder: Path) -> None:
    page = shown(client, "/points/new?name=points")
    assert page.count("<code>shop.yaml:8</code>") == 1
    assert "Open as draft" not in page
    assert '<details class="card" open><summary>For the definition file</summary>' in page
    assert "/do/definitions_declare" not in page
    assert str(folder) not in page


def test_a_name_of_a_file_that_is_typed_is_noted_once_where_it_is_checked(client: TestClient, engine: Engine) -> None:
    text = "when: {field: features.monetary_total, greater_than: 7}"
    data = {"_csrf": csrf_of(client, engine), "text": text, "name": "big", "_by": "yaml", "_text": "text"}
    checked = close_up(client.post("/segments/new?part=checked", data=data).text)
    assert checked.count("<code>shop.yaml:2</code>") == 1
    noted = close_up(client.post("/segments/new?part=checked", data={**data, "_noted": "1"}).text)
    assert "shop.yaml" not in noted
    whole = close_up(client.post("/segments/new", data=data).text)
    assert whole.count("<code>shop.yaml:2</code>") == 1


def test_a_problem_in_another_file_names_it_below_the_folder(client: TestClient, engine: Engine, folder: Path) -> None:
    data = {"_csrf": csrf_of(client, engine), "text": "subject: Hi\nsender: nobody\ntext: Hi\n", "name": "hello"}
    page = client.post("/templates/new?part=checked", data={**data, "_by": "yaml", "_text": "text"}).text
    assert "nobody" in page
    assert str(folder) not in page


def test_what_is_new_is_declared_nowhere(client: TestClient) -> None:
    for path in ("/segments/new", "/journeys/new", "/senders/new", "/points/new"):
        if path != "/points/new":
            assert "Open as draft" not in shown(client, path)
            assert "/do/definitions_declare" in shown(client, path)
