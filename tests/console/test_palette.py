"""The palette (Ctrl K) finds every definition by its name as its list shows it, in any case."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from re import findall

import pytest
from starlette.testclient import TestClient

from tests.console.stage import close_up, elements, opened, record, signed_in
from threadline.surfaces.console.screens.find import NAMED, Named

DEFINITIONS = Path(__file__).parents[2] / "release" / "tour" / "threadline.yaml"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with opened(DEFINITIONS) as made:
        record(made, ("ada", "identify", {"first_name": "Ada"}))
        token = made.credentials.create("default", "token", "palette", ["admin"])[1]
        client = signed_in(made)
        draft = {"template": "hello", "audience": {"segment": "newcomers"}}
        headers = {"Authorization": f"Bearer {token}"}
        assert client.post("/v1/broadcasts/spring_sale", json=draft, headers=headers).status_code == 200
        yield client


def _paths(client: TestClient, text: str) -> list[str]:
    page = client.get("/find", params={"q": text, "part": "list"}).text
    return [attributes.get("href") or "" for tag, attributes in elements(page) if tag == "a"]


@pytest.mark.parametrize("kind", NAMED, ids=lambda each: each.kind)
def test_a_definition_is_found_by_the_name_that_its_list_shows(client: TestClient, kind: Named) -> None:
    path = kind.path
    page = close_up(client.get(path.rstrip("/")).text)
    shown = {
        href: unescape(name)
        for href, name in findall(rf'<a [^>]*href="({path}[^"?]+)"[^>]*>(?:<h2>)?([^<]+)<', page)
        if href != f"{path}new"
    }
    assert shown, page
    for href, name in shown.items():
        for text in (name, name.lower(), name.upper(), f"  {name[:4]} "):
            assert href in _paths(client, text), (href, text)


def test_an_analysis_is_found_by_its_title_and_by_words_of_its_question(client: TestClient) -> None:
    page = client.get("/analytics").text
    tiles = findall(r'href="(/analytics/[^"?]+)"[^>]*>(?:<h2>)?([^<]+)<', close_up(page))
    assert len(tiles) > 10
    for href, title in tiles:
        assert href in _paths(client, unescape(title).upper()), title
    assert "/analytics/retention" in _paths(client, "come back in the weeks after")
