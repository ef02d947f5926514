"""Signing in through an OpenID Connect provider: what a provider may say, and what nobody else may say for it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from joserfc import jwk, jwt
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.time import SECOND
from threadline.settings import Settings
from threadline.surfaces.http.addresses.single_sign_on import AWAY_LENGTH
from threadline.surfaces.http.callers.oidc import AGAIN_SECONDS, METADATA_SECONDS, OidcProvider
from threadline.surfaces.http.server.application import Application

ISSUER = "https://id.example.com"
SECRET = "a secret of the client, %+&="
SETTINGS = Settings(
    access_log=False,
    oidc_issuer=ISSUER,
    oidc_client_id="threadline",
    oidc_client_secret=SECRET,
    oidc_roles="staff=viewer, crm-admins=admin, team of a=b=marketer",
)
BACK = "http://testserver/sign-in/provider/return"


class FakeProvider:
    """A provider in process that does as a good one does, until a test changes something."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.key = jwk.RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        self.published = [self.key]
        self.document: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "userinfo_endpoint": f"{ISSUER}/me",
            "jwks_uri": f"{ISSUER}/keys",
            "authorization_response_iss_parameter_supported": True,
        }
        self.claims: dict[str, Any] = {"sub": "7", "email": "ada@example.com", "groups": ["staff"]}
        self.info: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = lambda claims: jwt.encode(
            {"alg": "RS256", "kid": self.key.kid}, claims, self.key
        )
        self.asked: dict[str, str] = {}
        self.codes: set[str] = set()
        self.away = False
        self.loads: list[str] = []

    def load(self, url: str) -> bytes:
        self.loads.append(url)
        if self.away:
            raise OSError("no route to host")
        if url == f"{ISSUER}/keys":
            return json.dumps({"keys": [key.as_dict(private=False) for key in self.published]}).encode()
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        return json.dumps(self.document).encode()

    def ask(self, url: str, headers: Mapping[str, str], form: bytes | None) -> tuple[int, bytes]:
        if url == f"{ISSUER}/me":
            assert headers["authorization"] == "Bearer access"
            return 200, json.dumps(self.info).encode()
        sent = dict(parse_qsl((form or b"").decode()))
        pair = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
        assert pair == "threadline:a%20secret%20of%20the%20client%2C%20%25%2B%26%3D"
        challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=")
        if sent["code"] not in self.codes or challenge.decode() != self.asked["code_challenge"]:
            return 400, b'{"error": "invalid_grant"}'
        self.codes.discard(sent["code"])
        now = self.clock.now // SECOND
        claims = {"iss": ISSUER, "aud": "threadline", "iat": now, "exp": now + 60, "nonce": self.asked["nonce"]}
        return 200, json.dumps({"id_token": self.sign({**claims, **self.claims}), "access_token": "access"}).encode()

    def answer(self, address: str) -> dict[str, str]:
        """What the browser brings back after it was sent to an address of the provider."""
        assert address.startswith(f"{ISSUER}/authorize?")
        self.asked = dict(parse_qsl(urlsplit(address).query))
        assert self.asked["redirect_uri"] == BACK
        assert self.asked["code_challenge_method"] == "S256"
        self.codes.add("c0de")
        return {"code": "c0de", "state": self.asked["state"], "iss": ISSUER}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def provider(clock: Clock) -> FakeProvider:
    return FakeProvider(clock)


@pytest.fixture
def seconds() -> list[float]:
    """The clock of the event loop, as it were."""
    return [1_000.0]


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    made = open_engine("memory:", SETTINGS, clock)
    yield made
    made.close()


@pytest.fixture
def browser(
    engine: Engine, provider: FakeProvider, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> TestClient:
    made = OidcProvider(SETTINGS, engine.clock, provider.load, provider.ask, lambda: seconds[0])
    monkeypatch.setattr("threadline.surfaces.http.server.application.provider_of", lambda settings, clock: made)
    return TestClient(Application(engine, SETTINGS), follow_redirects=False)


def leave(browser: TestClient, next_: str = "") -> str:
    """To the provider: the address."""
    gone = browser.get("/sign-in/provider", params={"next": next_})
    assert gone.status_code == 303, gone.text
    return str(gone.headers["location"])


def come_back(browser: TestClient, query: Mapping[str, str]) -> Any:
    return browser.get("/sign-in/provider/return", params=query)


def signed_in(browser: TestClient, provider: FakeProvider) -> Any:
    return come_back(browser, provider.answer(leave(browser)))


def refused(answer: Any, why: str, status: int = 401) -> None:
    assert answer.status_code == status, answer.text
    assert why in answer.text
    assert "threadline_session" not in answer.headers.get("set-cookie", "")


def test_who_is_in_a_group_gets_its_role_and_the_page_that_was_wanted(
    browser: TestClient, provider: FakeProvider, engine: Engine
) -> None:
    assert "/sign-in/provider" in browser.get("/sign-in").text
    back = come_back(browser, provider.answer(leave(browser, "/health?a=1")))
    assert (back.status_code, back.headers["location"]) == (303, "/health?a=1")
    assert "viewer" in browser.get("/account").text
    assert "identity provider looks after" in browser.get("/account").text
    [account] = engine.accounts.entries("default")
    assert (account.name, account.role, account.by_provider) == ("ada@example.com", "viewer", True)
    entry = engine.audit_log.page("default")[0][0]
    assert (entry.operation, entry.who, entry.given["by"]) == ("sign_in", "ada@example.com", "provider")


@pytest.mark.parametrize(
    ("groups", "role"),
    [(["staff", "crm-admins"], "admin"), (["team of a=b", "staff"], "marketer"), ("staff", "viewer")],
)
def test_of_several_groups_the_one_that_may_most_counts(
    browser: TestClient, provider: FakeProvider, engine: Engine, groups: Any, role: str
) -> None:
    provider.claims["groups"] = groups
    assert signed_in(browser, provider).status_code == 303
    assert engine.accounts.entries("default")[0].role == role


@pytest.mark.parametrize("groups", [[], ["STAFF"], None, {"staff": 1}, [["staff"]], 7])
def test_who_is_in_no_group_is_refused_in_words(browser: TestClient, provider: FakeProvider, groups: Any) -> None:
    provider.claims["groups"] = groups
    refused(signed_in(browser, provider), "none of your groups may use this console", 403)


def test_who_has_left_the_groups_is_refused_and_signed_out_everywhere(
    browser: TestClient, provider: FakeProvider, engine: Engine
) -> None:
    signed_in(browser, provider)
    before = browser.cookies["threadline_session"]
    provider.claims["groups"] = []
    refused(signed_in(browser, provider), "none of your groups", 403)
    assert engine.accounts.find(before) is None


def test_groups_and_name_may_come_from_the_userinfo_endpoint(browser: TestClient, provider: FakeProvider) -> None:
    provider.claims = {"sub": "7"}
    provider.info = {"sub": "7", "email": "ada@example.com", "groups": ["crm-admins"]}
    assert signed_in(browser, provider).status_code == 303
    provider.info["sub"] = "8"
    refused(signed_in(browser, provider), "two different people")


# --- attacks --------------------------------------------------------------------------------------


def test_a_state_that_is_not_this_browsers_is_refused(browser: TestClient, provider: FakeProvider) -> None:
    answer = provider.answer(leave(browser))
    for state in ("", "x", answer["state"][:-1], answer["state"].swapcase()):
        leave_again = provider.answer(leave(browser))
        refused(come_back(browser, {**leave_again, "state": state}), "did not begin in this browser")
    # A link that somebody else's sign-in has made, in a browser that has begun none.
    browser.cookies.clear()
    refused(come_back(browser, answer), "did not begin in this browser")


def test_a_code_that_was_taken_opens_nothing_again(browser: TestClient, provider: FakeProvider) -> None:
    answer = provider.answer(leave(browser))
    cookie = browser.cookies["threadline_sign_in"]
    assert come_back(browser, answer).status_code == 303
    assert "threadline_sign_in" not in browser.cookies
    browser.cookies.set("threadline_sign_in", cookie, path="/sign-in/provider")
    refused(come_back(browser, answer), "refused the code: invalid_grant")


def test_a_code_of_another_sign_in_is_refused_by_the_verifier(browser: TestClient, provider: FakeProvider) -> None:
    victims = provider.answer(leave(browser))
    browser.cookies.clear()
    own = provider.answer(leave(browser))
    provider.asked["code_challenge"] = "of another sign-in"
    refused(come_back(browser, {**own, "code": victims["code"]}), "invalid_grant")


def test_too_long_at_the_provider_is_refused(browser: TestClient, provider: FakeProvider, clock: Clock) -> None:
    answer = provider.answer(leave(browser))
    clock.now += AWAY_LENGTH
    refused(come_back(browser, answer), "took too long")


@pytest.mark.parametrize("issuer", ["https://evil.example", None, ISSUER + "/"])
def test_an_answer_of_another_issuer_is_refused_before_the_code_is_sent_anywhere(
    browser: TestClient, provider: FakeProvider, issuer: str | None
) -> None:
    answer = provider.answer(leave(browser))
    sent = {**answer, "iss": issuer} if issuer is not None else {"code": answer["code"], "state": answer["state"]}
    refused(come_back(browser, sent), "another provider")
    assert provider.codes == {"c0de"}


def _unsigned(claims: dict[str, Any]) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}."


def _by_client_secret(claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "HS256"}, claims, jwk.OctKey.import_key(SECRET * 2))


def _by_public_key(claims: dict[str, Any], key: jwk.RSAKey) -> str:
    """As if the public key were a shared secret; by hand, because no library does it any more."""
    parts = (json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "1"}, claims))
    signed = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
    tag = hmac.digest(key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(tag).rstrip(b'=').decode()}"


def _by_another_key(claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "RS256", "kid": "1"}, claims, jwk.RSAKey.generate_key(2048, {"kid": "1"}))


@pytest.mark.parametrize("attack", ["none", "secret", "public", "other"])
def test_a_token_that_the_provider_has_not_signed_is_refused(
    browser: TestClient, provider: FakeProvider, attack: str
) -> None:
    provider.sign = {
        "none": _unsigned,
        "secret": _by_client_secret,
        "public": lambda claims: _by_public_key(claims, provider.key),
        "other": _by_another_key,
    }[attack]
    refused(signed_in(browser, provider), "token")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "another"}, "aud"),
        ({"aud": ["threadline", "another"]}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"iss": "https://evil.example"}, "iss"),
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "nonce"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": 99_999_999_999}, "future"),
        ({"sub": ""}, "sub"),
    ],
)
def test_a_token_for_another_place_or_time_is_refused(
    browser: TestClient, provider: FakeProvider, claims: dict[str, Any], why: str
) -> None:
    provider.claims |= claims
    refused(signed_in(browser, provider), why)


def test_a_clock_that_is_off_by_less_than_the_leeway_is_taken(
    browser: TestClient, provider: FakeProvider, clock: Clock
) -> None:
    now = clock.now // SECOND
    for iat, exp, status in ((now + 50, now + 110, 303), (now - 110, now - 50, 303), (now - 130, now - 70, 401)):
        provider.claims |= {"iat": iat, "exp": exp}
        assert signed_in(browser, provider).status_code == status


def test_keys_rotate_without_a_pause(browser: TestClient, provider: FakeProvider, seconds: list[float]) -> None:
    assert signed_in(browser, provider).status_code == 303
    former = provider.key
    provider.key = jwk.RSAKey.generate_key(2048, {"kid": "2", "use": "sig", "alg": "RS256"})
    provider.published = [provider.key]
    seconds[0] += AGAIN_SECONDS
    assert signed_in(browser, provider).status_code == 303
    provider.key = former
    refused(signed_in(browser, provider), "no key of this server fits")


def test_a_name_that_somebody_has_chosen_at_the_provider_takes_over_no_account(
    browser: TestClient, provider: FakeProvider, engine: Engine
) -> None:
    engine.accounts.hasher.cost, engine.accounts.hasher.rounds = 16, 1
    engine.accounts.create("default", "Ada@Example.com", "four words that rhyme", "admin")
    refused(signed_in(browser, provider), "exists already", 403)
    provider.claims |= {"email": "eve@example.com", "email_verified": False}
    refused(signed_in(browser, provider), "has not verified", 403)
    provider.claims |= {"email": "two words@example.com", "email_verified": True}
    refused(signed_in(browser, provider), "printable", 400)


def test_what_the_provider_refuses_is_shown_as_text(browser: TestClient, provider: FakeProvider) -> None:
    answer = provider.answer(leave(browser))
    shown = come_back(browser, {**answer, "error": "access_denied", "error_description": "<script>alert(1)</script>"})
    refused(shown, "access_denied")
    assert "<script>alert" not in shown.text


def test_a_provider_that_is_away_is_a_503_and_what_was_read_before_stays_good(
    browser: TestClient, provider: FakeProvider, seconds: list[float]
) -> None:
    provider.away = True
    assert browser.get("/sign-in/provider").status_code == 503
    provider.away = False
    assert signed_in(browser, provider).status_code == 303
    provider.away = True
    seconds[0] += METADATA_SECONDS
    assert browser.get("/sign-in/provider").status_code == 303


def test_a_provider_that_names_another_issuer_or_an_open_address_is_not_asked(
    browser: TestClient, provider: FakeProvider
) -> None:
    open_address, file = "http://id.example.com/token", "file:///etc/passwd"
    for change in ({"issuer": "https://evil.example"}, {"token_endpoint": open_address}, {"jwks_uri": file}):
        provider.document = {**FakeProvider(provider.clock).document, **change}
        assert browser.get("/sign-in/provider").status_code == 503
    assert all(url.startswith("https://id.example.com/.well-known") for url in provider.loads)


@pytest.mark.parametrize(
    "changes",
    [
        {"oidc_issuer": "http://id.example.com"},
        {"oidc_issuer": "id.example.com"},
        {"oidc_client_id": ""},
        {"oidc_roles": ""},
        {"oidc_roles": "staff"},
        {"oidc_roles": "staff=root"},
        {"oidc_roles": "=admin"},
        {"oidc_scopes": "email"},
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(changes: dict[str, str], clock: Clock) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(changes))):
        OidcProvider(msgspec.structs.replace(SETTINGS, **changes), clock)
