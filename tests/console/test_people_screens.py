"""People and one person: every tab for every role, values that are hostile, and forms that do what they say."""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, ORIGIN, csrf_of, elements, opened, record, signed_in, unsafe
from threadline.engine.engine import Engine
from threadline.kernel.roles import ROLES
from threadline.surfaces.console.screens.person import FACTS, TABS

HOSTILE_TEXTS = [each for each in HOSTILE[:40] if each.strip()] + list(HOSTILE[-3:])
JAZZ = {"topic": "Music", "scopes": [{"topic": "genre", "value": "jazz"}]}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with opened() as made:
        record(
            made,
            ("ada", "identify", {"first_name": "Ada"}),
            ("ada", "app_action", JAZZ),
            ("eve", "identify", {f"t{number}": text for number, text in enumerate(HOSTILE_TEXTS)}),
            *(("eve", "page_viewed", {"path": text}) for text in HOSTILE_TEXTS),
            *(("eve", "agent_insight", {"type": "fact", "key": "k", "value": text}) for text in HOSTILE[-3:]),
        )
        yield made


@pytest.fixture(scope="module")
def client(engine: Engine) -> TestClient:
    return signed_in(engine)


@pytest.mark.parametrize("role", ROLES)
def test_each_tab_answers_every_role_and_is_404_for_nobody(engine: Engine, role: str) -> None:
    client = signed_in(engine, role)  # type: ignore[arg-type]
    for tab, _ in TABS:
        assert client.get(f"/people/user_id:ada?tab={tab}").status_code == 200, tab
        assert client.get(f"/people/user_id:nobody?tab={tab}").status_code == 404, tab


def test_hostile_values_are_shown_as_text_on_every_tab(client: TestClient) -> None:
    pages = [client.get(f"/people/user_id:eve?tab={tab}").text for tab, _ in TABS]
    assert [unsafe(page) for page in pages] == [[]] * len(TABS)
    assert "<svg onload" in html.unescape(pages[0])


@pytest.mark.parametrize("query", ["q=<script>", "tag=</td><script>", "feature=zz&value=1", "segment=zz", "cursor=zz"])
def test_a_filter_that_fits_nobody_leaves_a_page_that_says_so(client: TestClient, query: str) -> None:
    answer = client.get(f"/people?{query}")
    assert (answer.status_code, unsafe(answer.text)) == (200, [])
    assert "/people/" not in [(attributes.get("href") or "")[:8] for _, attributes in elements(answer.text)]


def test_people_are_found_by_their_name_and_by_an_identifier(client: TestClient) -> None:
    for text in ("Ada", "user_id:ada", "ada", "aDA", "da"):
        assert ">Ada</a>" in client.get(f"/people?q={text}").text, text


def test_a_text_and_filters_leave_those_whom_both_fit(engine: Engine, client: TestClient) -> None:
    record(engine, ("dan", "identify", {"first_name": "Ada"}))
    tagged = client.post(
        "/do/people_tag",
        data={"id": "user_id:dan", "add:list": "vip", "_csrf": csrf_of(client, engine)},
        headers={"origin": ORIGIN},
    )
    assert tagged.status_code == 303, tagged.text
    for query, count in (("q=ada", 2), ("q=ada&tag=vip", 1), ("q=ada&tag=other", 0), ("q=ada&group=none", 0)):
        page = client.get(f"/people?{query}").text
        links = [a for tag, a in elements(page) if tag == "a" and (a.get("href") or "").startswith("/people/")]
        assert len(links) == count, query


def test_interests_show_each_value_with_its_weight(client: TestClient) -> None:
    page = client.get("/people/user_id:ada").text
    meters = {a["aria-label"]: float(a["value"] or 0) for tag, a in elements(page) if tag == "meter"}
    assert meters.get("Music jazz", 0) > 0


def test_of_many_facts_the_page_shows_some_and_a_link_to_all_of_them(engine: Engine, client: TestClient) -> None:
    stated = (("many", "agent_insight", {"type": "fact", "key": f"k{n:02}", "value": "v"}) for n in range(FACTS + 1))
    record(engine, *stated)

    def keys(page: str) -> int:
        hidden = [a for tag, a in elements(page) if tag == "input" and a.get("type") == "hidden"]
        return len({a.get("value") for a in hidden if a.get("name") == "key"})

    page = client.get("/people/user_id:many?tab=memory").text
    assert keys(page) == FACTS
    assert len(page.encode()) < 100_000
    [link] = [a["href"] for tag, a in elements(page) if tag == "a" and "all=1" in (a.get("href") or "")]
    whole = client.get(str(link)).text
    assert keys(whole) == FACTS + 1
    assert "all=1" not in str([a.get("href") for _, a in elements(whole)])


def test_the_form_that_adjusts_points_gives_everything_that_the_operation_asks_for(
    engine: Engine, client: TestClient
) -> None:
    page = client.get("/people/user_id:ada?tab=activity").text
    form = page[page.index('action="/do/points_adjust"') :].partition("</form>")[0]
    given = {a["name"]: a.get("value") or "" for tag, a in elements(form) if tag == "input"}
    given |= {"points": "5", "reason": "a test", "_csrf": csrf_of(client, engine)}
    answer = client.post("/do/points_adjust", data=given, headers={"accept": "application/json", "origin": ORIGIN})
    assert (answer.status_code, answer.json()["result"]["balance"]) == (200, 5)
