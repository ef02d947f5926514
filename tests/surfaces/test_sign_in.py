"""Signing in: limited by address before a password is hashed, and noted in the audit log, right or wrong."""

from __future__ import annotations

import base64
import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, unsafe
from tests.surfaces.conftest import Clock, Keys, client_of
from threadline.engine.engine import Engine
from threadline.engine.one_time_codes import RECOVERY_CODES, STEP, code_at
from threadline.engine.passwords import Hasher
from threadline.kernel.limits import SIGN_IN_FAILURES_MAX, SIGN_IN_NOTES_MAX, SIGN_INS_PER_MINUTE
from threadline.kernel.time import HOUR, MINUTE
from threadline.settings import Settings

PASSWORD = "four words that rhyme"


@pytest.fixture
def hashed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every password that is hashed; cheaper than in earnest."""
    made: list[str] = []
    engine.accounts.hasher.cost, engine.accounts.hasher.rounds = 16, 1
    engine.accounts.create("default", "ada", PASSWORD, "admin")
    matches = Hasher.matches

    def noting(hasher: Hasher, password: str, hashed: str) -> bool:
        made.append(password)
        return matches(hasher, password, hashed)

    monkeypatch.setattr(Hasher, "matches", noting)
    return made


@pytest.fixture
def behind_proxy(engine: Engine) -> TestClient:
    """Clients of any address, as a trusted proxy names it."""
    return client_of(engine, Settings(access_log=False, forwarded_allow_ips="*"))


def sign_in(client: TestClient, name: str, password: str, address: str = "192.0.2.1") -> Any:
    form = {"name": name, "password": password}
    return client.post("/sign-in", data=form, headers={"x-forwarded-for": address}, follow_redirects=False)


def entries(client: TestClient, keys: Keys) -> list[dict[str, Any]]:
    listed = client.get("/v1/audit-log?operation=sign_in&limit=500", headers=keys.bearer("admin")).json()["entries"]
    return [{name: each[name] for name in ("who", "credential", "object", "given", "outcome")} for each in listed]


def test_an_address_that_tries_too_often_is_told_when_to_come_again_and_no_password_is_hashed(
    behind_proxy: TestClient, hashed: list[str], clock: Clock
) -> None:
    for number in range(SIGN_INS_PER_MINUTE):
        assert sign_in(behind_proxy, f"n{number}", "wrong words here").status_code == 401
    assert len(hashed) == SIGN_INS_PER_MINUTE
    refused = sign_in(behind_proxy, "ada", PASSWORD)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert "too many attempts to sign in from here" in refused.text
    assert len(hashed) == SIGN_INS_PER_MINUTE
    assert sign_in(behind_proxy, "ada", PASSWORD, "192.0.2.2").status_code == 303
    clock.now += MINUTE
    assert sign_in(behind_proxy, "ada", PASSWORD).status_code == 303


def test_an_ipv6_network_counts_as_one_address(behind_proxy: TestClient, hashed: list[str]) -> None:
    for number in range(SIGN_INS_PER_MINUTE):
        assert sign_in(behind_proxy, "n", "wrong words here", f"2001:db8::{number + 1:x}").status_code in (401, 429)
    assert sign_in(behind_proxy, "ada", PASSWORD, "2001:db8::ffff").status_code == 429
    assert sign_in(behind_proxy, "ada", PASSWORD, "2001:db8:0:1::1").status_code == 303


def test_a_stranger_keeps_nobody_out_who_signs_in_from_elsewhere(behind_proxy: TestClient, hashed: list[str]) -> None:
    for _ in range(SIGN_IN_FAILURES_MAX):
        assert sign_in(behind_proxy, "ada", "wrong words here").status_code == 401
    assert sign_in(behind_proxy, "ada", PASSWORD).status_code == 429
    assert sign_in(behind_proxy, "ada", PASSWORD, "198.51.100.7").status_code == 303


def test_sign_ins_are_in_the_audit_log_with_their_address_and_without_secrets(
    behind_proxy: TestClient, engine: Engine, keys: Keys, hashed: list[str]
) -> None:
    sign_in(behind_proxy, "ada", PASSWORD)
    sign_in(behind_proxy, "ada", "wrong words here")
    sign_in(behind_proxy, "my password, typed in the wrong field", "x")
    sign_in(behind_proxy, "", keys.admin)
    sign_in(behind_proxy, "", "no token")
    given = {"address": "192.0.2.1"}
    assert entries(behind_proxy, keys) == [
        {"who": "", "credential": "token", "object": {}, "given": given, "outcome": "unauthorized"},
        {"who": "admin", "credential": "token", "object": {}, "given": given, "outcome": "done"},
        {"who": "", "credential": "account", "object": {}, "given": given, "outcome": "unauthorized"},
        {"who": "", "credential": "account", "object": {"name": "ada"}, "given": given, "outcome": "unauthorized"},
        {"who": "ada", "credential": "account", "object": {}, "given": given, "outcome": "done"},
    ]
    stored = b"".join(item.value for item in engine.store.scan("audit_log", limit=100))
    assert not [
        secret for secret in (PASSWORD, "wrong words", "typed", keys.admin, "no token") if secret.encode() in stored
    ]


def test_failures_to_sign_in_do_not_fill_the_audit_log(
    behind_proxy: TestClient, keys: Keys, hashed: list[str], clock: Clock
) -> None:
    for number in range(SIGN_IN_NOTES_MAX + 30):
        sign_in(behind_proxy, f"n{number}", "wrong words here", f"192.0.{number // 200}.{number % 200}")
    assert len(entries(behind_proxy, keys)) == SIGN_IN_NOTES_MAX
    sign_in(behind_proxy, "ada", PASSWORD)
    assert len(entries(behind_proxy, keys)) == SIGN_IN_NOTES_MAX + 1, "who does sign in is always noted"
    clock.now += HOUR
    sign_in(behind_proxy, "n", "wrong words here")
    assert entries(behind_proxy, keys)[0]["given"] == {"address": "192.0.2.1", "left_out": 30}


# --- the second factor ----------------------------------------------------------------------------


def field(page: str, name: str) -> str:
    """The value of a field of a page."""
    match = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert match is not None, name
    return html.unescape(match[1])


def app_of(page: str) -> bytes:
    """The secret that a page shows to be typed into an app."""
    match = re.search(r'<pre class="secret">([A-Z2-7]+)</pre>', page)
    assert match is not None
    return base64.b32decode(match[1])


def code_of(secret: bytes, clock: Clock) -> str:
    return code_at(secret, clock.now // STEP)


def turned_on(client: TestClient, clock: Clock) -> tuple[bytes, list[str]]:
    """Sign in, turn the second factor on, sign out: the secret of the app, and the recovery codes."""
    sign_in(client, "ada", PASSWORD)
    csrf = field(client.get("/account").text, "_csrf")
    page = client.post("/account/second-factor", data={"_csrf": csrf}).text
    secret = app_of(page)
    form = {"_csrf": csrf, "ticket": field(page, "ticket"), "code": code_of(secret, clock)}
    shown = client.post("/account/second-factor/enrol", data=form)
    recovery_codes = re.findall(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", shown.text)
    assert len(recovery_codes) == RECOVERY_CODES
    assert f"{RECOVERY_CODES} recovery codes are left" in client.get("/account").text
    client.post("/sign-out")
    clock.now += 2 * STEP
    return secret, recovery_codes


def test_a_password_is_followed_by_a_code_and_then_by_the_page_that_was_wanted(
    behind_proxy: TestClient, hashed: list[str], clock: Clock
) -> None:
    secret, recovery_codes = turned_on(behind_proxy, clock)
    form = {"name": "ada", "password": PASSWORD, "next": "/health?a=1"}
    page = behind_proxy.post("/sign-in", data=form, follow_redirects=False)
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    assert behind_proxy.get("/", follow_redirects=False).status_code == 303
    second = {"ticket": field(page.text, "ticket"), "next": field(page.text, "next"), "code": "000000"}
    wrong = behind_proxy.post("/sign-in/code", data=second, follow_redirects=False)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert "the code is wrong" in wrong.text
    right = behind_proxy.post("/sign-in/code", data={**second, "code": code_of(secret, clock)}, follow_redirects=False)
    assert (right.status_code, right.headers["location"]) == (303, "/health?a=1")
    assert behind_proxy.get("/account").status_code == 200
    behind_proxy.post("/sign-out")
    again = behind_proxy.post("/sign-in/code", data={**second, "code": recovery_codes[0]}, follow_redirects=False)
    assert again.status_code == 303
    assert f"{RECOVERY_CODES - 1} recovery codes are left" in behind_proxy.get("/account").text


def test_a_role_that_must_have_a_second_factor_sets_it_up_before_it_sees_anything(
    engine: Engine, hashed: list[str], clock: Clock
) -> None:
    engine.accounts.second_factor_roles = frozenset({"admin"})
    client = client_of(engine, Settings(access_log=False))
    page = sign_in(client, "ada", PASSWORD)
    assert (page.status_code, "set-cookie" in page.headers) == (200, False)
    form = {"ticket": field(page.text, "ticket"), "code": "000000"}
    wrong = client.post("/sign-in/app", data=form)
    assert wrong.status_code == 401
    assert app_of(wrong.text) == app_of(page.text), "the app that was scanned is still the one"
    done = client.post("/sign-in/app", data={**form, "code": code_of(app_of(page.text), clock)})
    assert (done.status_code, "set-cookie" in done.headers) == (200, True)
    account = client.get("/account").text
    assert "Your role must have one" in account
    assert "second-factor/drop" not in account
    refused = client.post("/account/second-factor/drop", data={"_csrf": field(account, "_csrf"), "password": PASSWORD})
    assert refused.status_code == 403


def test_what_somebody_does_about_their_account_is_in_the_audit_log_without_secrets(
    behind_proxy: TestClient, engine: Engine, keys: Keys, hashed: list[str], clock: Clock
) -> None:
    secret, recovery_codes = turned_on(behind_proxy, clock)
    admin = keys.bearer("admin")
    link = behind_proxy.post("/v1/accounts/ada/password-link", headers=admin).json()["link"]
    path = link[link.index("/set-password") :]
    page = behind_proxy.get(path)
    form = {"link": field(page.text, "link"), "password": "four other words here"}
    assert "The password is set" in behind_proxy.post("/set-password", data=form).text
    assert behind_proxy.get(path).status_code == 401
    behind_proxy.delete("/v1/accounts/ada/second-factor", headers=admin)
    entries_ = behind_proxy.get("/v1/audit-log?limit=100", headers=admin).json()["entries"]
    assert [(entry["operation"], entry["who"]) for entry in reversed(entries_)] == [
        ("sign_in", "ada"),
        ("second_factor_enrol", "ada"),
        ("accounts_password_link", "admin"),
        ("password_set", "ada"),
        ("accounts_reset_second_factor", "admin"),
    ]
    stored = b"".join(item.value for item in engine.store.scan("audit_log", limit=100))
    for plain in (base64.b32encode(secret).decode(), *recovery_codes, form["link"], form["password"]):
        assert plain.encode() not in stored


@pytest.mark.parametrize("path", ["password", "second-factor", "second-factor/drop", "recovery-codes"])
def test_a_form_of_another_session_or_site_changes_nothing_of_an_account(
    behind_proxy: TestClient, hashed: list[str], path: str
) -> None:
    assert behind_proxy.post(f"/account/{path}", follow_redirects=False).headers["location"] == "/sign-in"
    sign_in(behind_proxy, "ada", PASSWORD)
    form = {"_csrf": "0" * 32, "password": PASSWORD, "new": "four other words here"}
    assert behind_proxy.post(f"/account/{path}", data=form).status_code == 403
    form["_csrf"] = field(behind_proxy.get("/account").text, "_csrf")
    foreign = {"sec-fetch-site": "cross-site"}
    assert behind_proxy.post(f"/account/{path}", data=form, headers=foreign).status_code == 403


def test_who_signs_in_with_a_token_has_no_account_of_their_own(behind_proxy: TestClient, keys: Keys) -> None:
    sign_in(behind_proxy, "", keys.admin)
    page = behind_proxy.get("/account")
    assert "A token has no password" in page.text
    csrf = re.search(r'data-csrf="(\w+)"', page.text)
    assert csrf is not None
    assert behind_proxy.post("/account/second-factor", data={"_csrf": csrf[1]}).status_code == 403


@pytest.mark.parametrize("text", HOSTILE[::9])
def test_hostile_texts_in_the_steps_of_signing_in_are_refused_in_words(
    behind_proxy: TestClient, hashed: list[str], text: str
) -> None:
    sent = dict.fromkeys(("name", "password", "next", "ticket", "code", "link", "new", "_csrf"), text)
    body = urlencode(sent, errors="surrogatepass").encode("utf-8", "surrogatepass")
    for path in ("/sign-in", "/sign-in/code", "/sign-in/app", "/set-password"):
        answer = behind_proxy.post(
            path, content=body, headers={"content-type": "application/x-www-form-urlencoded"}, follow_redirects=False
        )
        assert answer.status_code in (401, 422, 429), (path, answer.status_code)
        assert unsafe(answer.text) == []
    assert unsafe(behind_proxy.get("/set-password", params={"link": text[:500]}).text) == []


def test_the_first_page_has_one_button_that_stands_out(behind_proxy: TestClient) -> None:
    assert '<button class="primary">Sign in</button>' in behind_proxy.get("/sign-in").text
