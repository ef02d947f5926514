"""The frame of the console: who may look, what may be sent, where it leads, and what never gets into a page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, NOW, ORIGIN, close_up, csrf_of, elements, opened, record, signed_in, unsafe
from threadline.engine.engine import Engine
from threadline.kernel.roles import ROLES, Role
from threadline.kernel.time import DAY
from threadline.settings import Settings
from threadline.surfaces.console.frame import FILTERS, static
from threadline.surfaces.console.screens import screens
from threadline.surfaces.http.addresses.sign_in import COOKIE
from threadline.surfaces.http.server.application import Application

LISTS = tuple(each for each in screens() if "{" not in each.path)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with opened() as made:
        record(made, *((f"user-{n}", "page_viewed", {"title": text}) for n, text in enumerate(HOSTILE)))
        yield made


def stranger(engine: Engine) -> TestClient:
    return TestClient(Application(engine, Settings(access_log=False)), follow_redirects=False)


# --- who may look -------------------------------------------------------------------------------


@pytest.mark.parametrize("screen", screens(), ids=lambda each: each.name)
def test_without_a_session_every_screen_leads_to_the_sign_in(engine: Engine, screen: object) -> None:
    path = re.sub(r"\{\w+\}", "x", getattr(screen, "path"))  # noqa: B009 — parametrize hands on an object
    answer = stranger(engine).get(f"{path}?q=1")
    assert (answer.status_code, answer.headers["location"][:14]) == (303, "/sign-in?next=")
    assert "page_viewed" not in answer.text


@pytest.mark.parametrize("role", ROLES)
def test_every_list_answers_every_role_with_the_page_or_why_not(engine: Engine, role: Role) -> None:
    client = signed_in(engine, role)
    navigation = {each.get("href") for _, each in elements(client.get("/find").text.partition("</nav>")[0])}
    for screen in LISTS:
        answer = client.get(screen.path)
        assert answer.status_code in (200, 403), (screen.name, answer.text[-600:])
        assert unsafe(answer.text) == [], screen.name
        if screen.in_navigation:
            assert (screen.path in navigation) == (answer.status_code == 200), screen.name


def test_a_command_that_an_empty_screen_shows_names_the_address_under_which_the_server_was_asked() -> None:
    with opened() as empty:
        client = signed_in(empty)
        client.headers["host"] = "shop.example:9999"
        shown = [
            address
            for screen in LISTS
            for page in (screen.path, *(f"{screen.path}?part={part}" for part in screen.parts))
            for address in re.findall(r"https?://[\w.:-]+(?=/v1/)", html.unescape(client.get(page).text))
        ]
    assert set(shown) == {"http://shop.example:9999"}
    assert len(shown) > 2


def test_the_navigation_is_short_and_open_where_somebody_is(engine: Engine) -> None:
    client = signed_in(engine)
    for path, opened_group in (("/", []), ("/people", []), ("/journeys", ["Messages"]), ("/keys", ["Administration"])):
        navigation = close_up(client.get(path).text).partition("<nav")[2].partition("</nav>")[0]
        groups = re.findall(r"<details( open)?><summary>([^<]*)", navigation)
        assert [name for is_open, name in groups if is_open] == opened_group, path
        above = navigation.partition("<details")[0].count("<li>")
        assert above + len(groups) <= 9, "who looks for something reads all of it"


@pytest.mark.parametrize("role", ROLES)
def test_every_screen_that_may_be_opened_is_found_by_its_title(engine: Engine, role: Role) -> None:
    client = signed_in(engine, role)
    for screen in LISTS:
        found = {
            each.get("href")
            for _, each in elements(client.get("/find", params={"q": screen.title, "part": "list"}).text)
        }
        if screen.name != "find" and client.get(screen.path).status_code == 200:
            assert screen.path in found, screen.name


@pytest.mark.parametrize("role", ROLES)
def test_parts_of_lists_answer(engine: Engine, role: Role) -> None:
    client = signed_in(engine, role)
    for screen in LISTS:
        for part in screen.parts:
            answer = client.get(f"{screen.path}?part={part}")
            assert answer.status_code < 500, (screen.name, part, answer.text)
            assert "<html" not in answer.text or screen.parts[part].is_document
            assert unsafe(answer.text) == [], (screen.name, part)


def test_a_screen_of_something_that_is_not_there_says_so(engine: Engine) -> None:
    client = signed_in(engine)
    for screen in screens():
        if "{" in screen.path:
            answer = client.get(re.sub(r"\{\w+\}", "%3Cscript%3E", screen.path))
            assert answer.status_code < 500, (screen.name, answer.text)
            assert unsafe(answer.text) == [], screen.name


# --- signing in ---------------------------------------------------------------------------------


def test_a_password_opens_a_session_whose_cookie_scripts_cannot_read(engine: Engine) -> None:
    engine.accounts.create("default", "ada", "a long password", "marketer")
    client = stranger(engine)
    answer = client.post("/sign-in", data={"name": "ada", "password": "a long password", "next": "/events?type=a"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/events?type=a")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "marketer" in client.get("/").text


def test_a_token_opens_a_session(engine: Engine) -> None:
    token = engine.credentials.create("default", "token", "reader", ["read"])[1]
    client = stranger(engine)
    assert client.post("/sign-in", data={"password": token}).status_code == 303
    assert "viewer" in client.get("/").text


def test_a_wrong_password_is_told_and_opens_nothing(engine: Engine) -> None:
    engine.accounts.create("default", "ada", "a long password", "admin")
    answer = stranger(engine).post("/sign-in", data={"name": "ada", "password": "<b>wrong</b>"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "<b>wrong" not in answer.text


@pytest.mark.parametrize(
    "address", ["https://evil.example", "//evil.example/x", "/\\evil.example", "javascript:alert(1)", "evil", ""]
)
def test_nobody_is_sent_to_another_site_after_signing_in(engine: Engine, address: str) -> None:
    token = engine.credentials.create("default", "token", "reader", ["read"])[1]
    answer = stranger(engine).post("/sign-in", data={"password": token, "next": address})
    assert answer.headers["location"] == "/"


def test_signing_out_ends_the_session_and_not_only_the_cookie(engine: Engine) -> None:
    client = signed_in(engine)
    secret = client.cookies[COOKIE]
    assert client.post("/sign-out").status_code == 303
    client.cookies.set(COOKIE, secret)
    assert client.get("/").status_code == 303


# --- what may be sent ---------------------------------------------------------------------------


def tag(client: TestClient, csrf: str, **headers: str) -> int:
    form = {"_csrf": csrf, "_back": "/", "id": "user-1", "add:list": "vip"}
    return client.post("/do/people_tag", data=form, headers=headers).status_code


def test_a_form_changes_something_only_with_the_secret_of_its_session(engine: Engine) -> None:
    client, other = signed_in(engine), signed_in(engine, "operator")
    assert tag(client, "") == 403
    assert tag(client, csrf_of(other, engine)) == 403
    assert tag(client, csrf_of(client, engine)) == 303


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}]
)
def test_a_form_of_another_site_changes_nothing(engine: Engine, headers: dict[str, str]) -> None:
    client = signed_in(engine)
    assert tag(client, csrf_of(client, engine), **headers) == 403
    assert tag(client, csrf_of(client, engine), Origin=ORIGIN) == 303


def test_a_proxy_that_names_another_host_is_no_other_site(engine: Engine) -> None:
    client = signed_in(engine)
    behind = {"Origin": "https://crm.example", "Sec-Fetch-Site": "same-origin", "Host": "backend:8000"}
    assert tag(client, csrf_of(client, engine), **behind) == 303


@pytest.mark.parametrize(("scheme", "is_secure"), [("https", True), ("http", False)])
def test_the_cookie_is_for_https_alone_where_the_browser_came_by_it(
    engine: Engine, scheme: str, is_secure: bool
) -> None:
    token = engine.credentials.create("default", "token", "reader", ["read"])[1]
    headers = {"X-Forwarded-Proto": scheme}
    answer = stranger(engine).post("/sign-in", data={"password": token}, headers=headers)
    assert ("secure" in answer.headers["set-cookie"].lower()) == is_secure


def test_an_error_is_a_page_to_who_opens_an_address_and_a_document_to_programs(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(engine)
    opens = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path, headers, is_page in (
        ("/nothing-here", opens, True),
        ("/nothing-here", {"accept": "application/json"}, False),
        ("/v1/nothing", opens, False),
    ):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.headers["content-type"].startswith("text/html")) == (404, is_page), path
        assert ("nothing at this address" in answer.text, unsafe(answer.text) if is_page else []) == (True, [])

    def fail(*args: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr("threadline.surfaces.http.addresses.console.Console._page", fail)
    broken = client.get("/people", headers=opens)
    assert (broken.status_code, broken.headers["content-type"].startswith("text/html")) == (500, True)
    assert "its log tells more" in broken.text
    assert "secret" not in broken.text


def test_looking_at_a_page_changes_nothing_and_is_not_in_the_audit_log(engine: Engine) -> None:
    client = signed_in(engine)
    assert tag(client, csrf_of(client, engine)) == 303
    before = len(engine.audit_log.page("default")[0])
    for path in ("/people/user-1?tab=identity&take=user_id:user-1", "/people/user-1?tab=privacy&erase=preview"):
        assert client.get(path).status_code == 200
    assert len(engine.audit_log.page("default")[0]) == before > 0


def test_an_action_is_refused_to_a_role_that_does_not_include_it(engine: Engine) -> None:
    viewer = signed_in(engine, "viewer")
    assert tag(viewer, csrf_of(viewer, engine)) == 403
    marketer = signed_in(engine, "marketer")
    form = {"_csrf": csrf_of(marketer, engine), "id": "user-1"}
    assert marketer.post("/do/people_erase", data=form).status_code == 403


def test_an_action_is_in_the_audit_log_with_who_did_it(engine: Engine) -> None:
    client = signed_in(engine, "marketer")
    assert tag(client, csrf_of(client, engine)) == 303
    token = engine.credentials.create("default", "token", "auditor", ["admin"])[1]
    entries = stranger(engine).get("/v1/audit-log", headers={"Authorization": f"Bearer {token}"}).json()["entries"]
    assert ("marketer", "people_tag", "console") in {(e["who"], e["operation"], e["surface"]) for e in entries}


def test_an_action_leads_back_here_and_nowhere_else(engine: Engine) -> None:
    client = signed_in(engine)
    form = {"_csrf": csrf_of(client, engine), "id": "user-1", "add:list": "vip", "_back": "//evil.example"}
    assert client.post("/do/people_tag", data=form).headers["location"] == "/"
    answer = client.post("/do/people_tag", data={**form, "_then": "/people/{id}"})
    assert answer.headers["location"].startswith("/people/")


def test_what_a_form_says_wrongly_is_told_to_the_script_with_its_parameter(engine: Engine) -> None:
    client = signed_in(engine)
    form = {"_csrf": csrf_of(client, engine), "id": "user-1", "event": "x", "payload:json": "{", "nope": "1"}
    answer = client.post("/do/rejected_resubmit", data=form, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["param"]) == (422, "payload") or answer.status_code == 400
    del form["payload:json"]
    assert client.post("/do/people_tag", data=form, headers={"Accept": "application/json"}).json()["param"] == "event"


def test_names_with_dots_reach_members_and_entries(engine: Engine) -> None:
    from threadline.surfaces.console.actions import read_form

    body = b"audience.segment=vip&arms.0.name=a&arms.2.name=b&arms.2.weight=3&tags%3Alist=x%0D%0Ay&empty=&_csrf=s"
    form = read_form(body)
    assert form.values == {
        "audience": {"segment": "vip"},
        "arms": [{"name": "a"}, {"name": "b", "weight": "3"}],
        "tags": ["x", "y"],
    }
    assert form.csrf == "s"


# --- what is in a page --------------------------------------------------------------------------


def test_no_value_becomes_markup(engine: Engine) -> None:
    client = signed_in(engine)
    for path in (
        "/",
        "/events",
        "/events?text=user",
        "/find?q=user-1",
        *(f"/find?part=list&q={t}" for t in ("<b>", '"')),
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert unsafe(answer.text) == [], path
    assert "{{ 7 * 7 }}" in client.get("/events").text


def test_every_page_forbids_what_it_does_not_need(engine: Engine) -> None:
    for answer in (signed_in(engine).get("/"), stranger(engine).get("/sign-in")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"


def test_a_first_page_is_less_than_two_hundred_kilobytes(engine: Engine) -> None:
    whole = len(signed_in(engine).get("/").content)
    for name in ("console.css", "console.js", "mark.svg"):
        found = static(name)
        assert found is not None
        whole += len(found[0])
    assert whole < 200_000


def test_files_may_be_kept_for_ever_under_the_address_of_their_content(engine: Engine) -> None:
    client = stranger(engine)
    found = static("console.js")
    assert found is not None
    assert "immutable" in client.get(f"/assets/console.js?v={found[2]}").headers["cache-control"]
    assert client.get("/assets/console.js?v=old").headers["cache-control"] == "no-cache"
    for name in ("nope.js", "..%2fframe.py", "console", "frame.py"):
        assert client.get(f"/assets/{name}").status_code == 404


def test_what_was_asked_stands_beside_the_page_at_the_other_doors(engine: Engine) -> None:
    text = html.unescape(signed_in(engine).get("/events?text=user-1").text)
    assert "threadline search find --text user-1" in text
    assert "/v1/search?" in text
    assert "shop.search.find(" in text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "now"), (59, "59 s ago"), (-90, "in 1 min"), (3_600, "1 h ago"), (400 * 86_400, "1 y ago")],
)
def test_how_long_ago_is_in_the_largest_unit(seconds: int, shown: str) -> None:
    from threadline.kernel.time import format_time

    assert FILTERS["ago"](format_time(NOW - seconds * DAY // 86_400), NOW) == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("share_of_first", 0.8621, "86.2%"),
        ("seconds_p50", 180_855.26, "2\u202fd 2\u202fh"),
        ("seconds_p50", 3_605, "1\u202fh"),
        ("seconds_p25", 0.2, "0\u202fs"),
        ("people", 1_234, "1,234"),
        ("seconds_p90", None, "–"),
    ],
)
def test_a_number_of_an_answer_is_shown_as_its_name_says(name: str, value: float | None, shown: str) -> None:
    assert FILTERS["measured"](value, name) == shown


@pytest.mark.parametrize(
    ("text", "day", "time"),
    [
        ("2026-03-01", "2026-03-01", "2026-03-01T00:00"),
        ("2026-03-01T10:30:15Z", "2026-03-01", "2026-03-01T10:30:15"),
        ("2026-03-01T00:30:00+02:00", "2026-02-28", "2026-02-28T22:30"),
        ("yesterday", "", ""),
        ("", "", ""),
    ],
)
def test_fields_for_days_and_times_take_any_text_of_one(text: str, day: str, time: str) -> None:
    assert (FILTERS["day_field"](text), FILTERS["time_field"](text)) == (day, time)


def test_instants_are_asked_for_by_fields_for_them_and_arrive(engine: Engine) -> None:
    client = signed_in(engine)
    types = {a.get("name"): a.get("type") for tag, a in elements(client.get("/alerts/new").text) if tag == "input"}
    assert (types["start"], types["stop"]) == ("datetime-local", "datetime-local")
    form = {"id": "sale", "title": "Sale", "start": "2026-03-02T10:30", "_csrf": csrf_of(client, engine)}
    written = client.post("/do/alerts_write", data=form, headers={"Accept": "application/json"})
    assert written.status_code == 200, written.text
    assert "2026-03-02 10:30:00 UTC" in client.get("/alerts").text
    asked = html.unescape(client.get("/events?start=2026-03-01T10:30:00Z").text)
    assert 'name="start" type="datetime-local" value="2026-03-01T10:30"' in asked


def test_a_text_shows_each_instant_as_pages_show_instants() -> None:
    text = "recorded at 2026-11-27T16:11:59.173899Z, not 2026-11-27"
    assert FILTERS["timed"](text) == "recorded at 2026-11-27 16:11:59 UTC, not 2026-11-27"


def test_a_live_list_begins_with_what_is_recorded_from_now_on(engine: Engine) -> None:
    from threadline.engine.accounts import Session
    from threadline.surfaces.console.asking import Asking
    from threadline.surfaces.operation_calls import shown

    operations = shown(engine.catalogue.operations, "http")
    session = engine.accounts.find(signed_in(engine).cookies[COOKIE])
    assert isinstance(session, Session)
    asking = Asking(engine, operations, session, engine.now())
    live = next(each.live for each in screens() if each.name == "events")
    assert live is not None
    began = live.load(asking, "")
    assert (began.items, began.seen) == ([], 0)
    record(engine, *((f"late-{n}", "late", {}) for n in range(20)))
    fresh = live.load(asking, began.cursor)
    assert [each["type"] for each in fresh.items] == ["late"] * 20
    assert live.load(asking, fresh.cursor).items == []


def test_the_outcome_of_an_action_is_told_to_scripts_as_json(engine: Engine) -> None:
    client = signed_in(engine)
    form = {"_csrf": csrf_of(client, engine), "_back": "/events", "id": "user-1", "add:list": "vip"}
    answer = client.post("/do/people_tag", data=form, headers={"Accept": "application/json"})
    assert json.loads(answer.text)["go"] == "/events"
