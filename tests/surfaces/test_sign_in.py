"""Signing in: limited by address before a password is hashed, and noted in the audit log, right or wrong."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, Keys, client_of
from threadline.engine.engine import Engine
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
