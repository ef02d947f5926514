"""Web tokens: what is taken, what is refused, and how the issuer's keys are kept and rotate."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
import urllib.request
from codecs import BOM_UTF8
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwk, jws, jwt

from tests.surfaces import web_tokens
from tests.surfaces.conftest import NOW
from tests.surfaces.web_tokens import SECRET, Issuer, published, token
from threadline.kernel.errors import InvalidSetting, ThreadlineError, Unauthorized, Unavailable
from threadline.kernel.time import SECOND
from threadline.outgoing import fetching
from threadline.settings import Settings
from threadline.surfaces.http.callers import jwt_keys
from threadline.surfaces.http.callers.jwt import User, WebTokens

PRESENT = NOW // SECOND
GOOD = {"sub": "42", "exp": PRESENT + 60}
BOTH = (("RS256", "first"), ("ES256", "first"))
ES256 = token(GOOD, "ES256")
LONG = jws.JWSRegistry()
LONG.max_header_length = 10_000


class Time:
    """Seconds that are moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served() -> Iterator[Issuer]:
    with web_tokens.issuer() as made:
        made.body = published(*BOTH)
        yield made


def checker(seconds: Time | None = None, **settings: Any) -> WebTokens:
    return WebTokens(Settings(**settings), lambda: NOW, seconds=seconds or Time())


def user(tokens: WebTokens, text: str) -> User:
    return asyncio.run(tokens.user(text))


def refusal(tokens: WebTokens, text: str, kind: type[ThreadlineError] = Unauthorized) -> str:
    with pytest.raises(kind) as caught:
        user(tokens, text)
    return str(caught.value)


# --- what is taken ------------------------------------------------------------------------------


def test_a_secret_checks_hs256() -> None:
    assert user(checker(jwt_secret=SECRET), token(GOOD)) == User("42")


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("names_key", [True, False])
def test_the_keys_of_the_issuer_check_their_own_algorithm(served: Issuer, algorithm: str, names_key: bool) -> None:
    assert user(checker(jwt_keys=served.url), token(GOOD, algorithm, names_key=names_key)) == User("42")


def test_keys_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_bytes(published(*BOTH))
    assert user(checker(jwt_keys=str(tmp_path / "jwks.json")), token(GOOD, "ES256")) == User("42")


def test_a_user_may_be_named_by_another_claim() -> None:
    tokens = checker(jwt_secret=SECRET, jwt_user_claim="uid")
    assert user(tokens, token({"uid": 42, "exp": PRESENT + 60})) == User("42")
    assert "uid" in refusal(tokens, token(GOOD))
    assert "names nobody" in refusal(tokens, token({"uid": " ", "exp": PRESENT + 60}))


def test_only_a_verified_address_is_an_identifier() -> None:
    tokens = checker(jwt_secret=SECRET)
    address = {"email": "ana@example.com"}
    assert user(tokens, token({**GOOD, **address, "email_verified": True})).email == "ana@example.com"
    for verified in ({}, {"email_verified": False}, {"email_verified": "true"}):
        assert user(tokens, token({**GOOD, **address, **verified})).email == ""


def test_a_header_may_hold_certificates() -> None:
    signed = jwt.encode({"alg": "HS256", "x5c": ["A" * 2_000] * 3}, GOOD, web_tokens.key("HS256"), registry=LONG)
    assert user(checker(jwt_secret=SECRET), signed) == User("42")
    assert "16384 characters" in refusal(checker(jwt_secret=SECRET), token({**GOOD, "groups": "x" * 16_384}))


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"exp": PRESENT}, "expired"),
        ({"exp": 0}, "expired"),
        ({"exp": "tomorrow"}, "exp"),
        ({"exp": None}, "exp"),
        ({"nbf": PRESENT + 1}, "not yet valid"),
        ({"iat": PRESENT + 1}, "issued in the future"),
        ({"sub": ""}, "sub"),
        ({"sub": 42}, "sub"),
        ({"sub": None}, "sub"),
        ({"iss": "https://other.example"}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "other"}, "aud"),
        ({"aud": ["other", "another"]}, "aud"),
        ({"aud": None}, "aud"),
    ],
)
def test_claims_are_checked(claims: dict[str, Any], message: str) -> None:
    tokens = checker(jwt_secret=SECRET, jwt_issuer="https://login.example", jwt_audience="shop")
    good = {**GOOD, "iss": "https://login.example", "aud": ["shop", "other"]}
    assert user(tokens, token(good)) == User("42")
    told = {name: value for name, value in {**good, **claims}.items() if value is not None}
    assert message in refusal(tokens, token(told))


def test_what_is_wrong_with_a_token_is_not_that_other_keys_do_not_fit_it(served: Issuer) -> None:
    served.body = published(("RS256", "first"), ("RS256", "second"))
    tokens = checker(jwt_keys=served.url, jwt_audience="shop")
    for kid in ("first", "second"):
        assert "'aud'" in refusal(tokens, token({**GOOD, "aud": "other"}, "RS256", kid, names_key=False))


def test_leeway_is_given_as_far_as_it_is_set() -> None:
    tokens = checker(jwt_secret=SECRET, jwt_leeway_seconds=30)
    assert user(tokens, token({"sub": "42", "exp": PRESENT - 29, "nbf": PRESENT + 30}))
    assert "expired" in refusal(tokens, token({"sub": "42", "exp": PRESENT - 30}))


def test_another_secret_does_not_open() -> None:
    assert "bad_signature" in refusal(checker(jwt_secret="b" * 40), token(GOOD))


def test_a_payload_that_was_changed_does_not_open() -> None:
    head, _, signature = token(GOOD).split(".")
    assert "bad_signature" in refusal(checker(jwt_secret=SECRET), f"{head}.{_part({**GOOD, 'sub': '1'})}.{signature}")


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _signed_with_public_key(algorithm: str) -> str:
    """The classic: the issuer's public key, which anybody has, used as the secret of an HMAC."""
    import hashlib
    import hmac

    pem = web_tokens.key(algorithm).as_pem(private=False)
    said = f"{_part({'alg': 'HS256', 'kid': 'first'})}.{_part(GOOD)}"
    signature = hmac.new(pem, said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_public_key_is_never_a_secret(served: Issuer, algorithm: str) -> None:
    forged = _signed_with_public_key(algorithm)
    assert "no key" in refusal(checker(jwt_keys=served.url), forged)
    assert "bad_signature" in refusal(checker(jwt_keys=served.url, jwt_secret=SECRET), forged)


def test_a_public_key_cannot_be_set_as_the_secret() -> None:
    with pytest.raises(InvalidSetting, match="jwt_secret"):
        checker(jwt_secret=web_tokens.key("RS256").as_pem(private=False).decode())


@pytest.mark.parametrize(("secret", "size"), [("x" * 31, 31), ("ü" * 15, 30)])
def test_a_secret_that_can_be_guessed_is_refused(secret: str, size: int) -> None:
    with pytest.raises(InvalidSetting, match=f"jwt_secret has {size} bytes and needs 32"):
        checker(jwt_secret=secret)


def test_a_secret_of_just_enough_bytes_is_taken() -> None:
    assert refusal(checker(jwt_secret="ü" * 16), token(GOOD))  # it is another one, but a good one


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_a_key_that_is_too_short_is_not_trusted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    short = jwk.RSAKey.generate_key(1_024, {"kid": "first"})
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [short.as_dict(private=False)]}))
    signed = jwt.encode({"alg": "RS256", "kid": "first"}, GOOD, short, ["RS256"])
    assert "no key" in refusal(checker(jwt_keys=str(file)), signed)
    assert "it has 1024 bits, RS256 needs 2048" in caplog.text
    file.write_bytes(published(("RS256", "first")))
    assert user(checker(jwt_keys=str(file)), token(GOOD, "RS256")) == User("42")


def test_a_secret_among_the_published_keys_is_passed_over(tmp_path: Path) -> None:
    """Whoever could publish one could as well publish a key; but nobody should find out by being let in."""
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="), "kid": "first"}
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [secret]}))
    tokens = checker(jwt_keys=str(tmp_path / "jwks.json"))
    assert "no key" in refusal(tokens, token(GOOD, kid="first"))


def test_a_key_serves_for_its_own_algorithm_only(served: Issuer) -> None:
    head, body, signature = token(GOOD, "RS256").split(".")
    for algorithm in ("ES256", "PS256", "RS512", "none", "", "HS256"):
        changed = f"{_part({'alg': algorithm, 'kid': 'first'})}.{body}.{signature}"
        assert refusal(checker(jwt_keys=served.url), changed)
    assert head


def test_a_token_without_signature_does_not_open() -> None:
    tokens = checker(jwt_secret=SECRET)
    for algorithm in ("none", "None", "HS256"):
        assert refusal(tokens, f"{_part({'alg': algorithm})}.{_part(GOOD)}.")


@pytest.mark.parametrize(
    "change", [{"use": "enc"}, {"alg": "RS512"}, {"kty": "EC"}, {"n": "!"}, {"n": 3}, {"kid": "other"}]
)
def test_keys_that_are_for_something_else_are_passed_over(tmp_path: Path, change: dict[str, Any]) -> None:
    (found,) = json.loads(published(("RS256", "first")))["keys"]
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [3, {**found, **change}]}))
    tokens = checker(jwt_keys=str(tmp_path / "jwks.json"))
    assert "no key" in refusal(tokens, token(GOOD, "RS256"))


NONSENSE = (
    "",
    ".",
    "..",
    "a.b.c",
    "a.b.c.d.e",
    "é.é.é",
    "e30.e30.e30",
    "W10.e30.",
    "x" * 20_000,
    "[" * 10_000 + ".e30.",
    f"{_part({'alg': 1})}.e30.",
    f"{_part({'alg': 'HS256', 'kid': 1})}.e30.",
    f"{_part({'alg': 'HS256', 'crit': ['exp']})}.{_part(GOOD)}.",
    f"{_part({'alg': 'HS256'})}.{'x' * 9_000}.",
)


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: text[:20])
def test_nonsense_is_refused(text: str) -> None:
    assert refusal(checker(jwt_secret=SECRET), text)


# --- keys ---------------------------------------------------------------------------------------


def test_keys_are_kept_and_looked_up_again(served: Issuer) -> None:
    seconds = Time()
    tokens = checker(seconds, jwt_keys=served.url, jwt_keys_cache_seconds=300)
    for _ in range(3):
        user(tokens, token(GOOD, "ES256"))
    assert served.asked == 1
    seconds.now = 300
    user(tokens, token(GOOD, "ES256"))
    assert served.asked == 2


def test_a_new_key_is_found_at_once_and_an_old_one_goes(served: Issuer) -> None:
    seconds = Time()
    tokens = checker(seconds, jwt_keys=served.url)
    user(tokens, token(GOOD, "ES256"))
    served.body = published(("ES256", "second"))
    seconds.now = 11
    assert user(tokens, token(GOOD, "ES256", "second")) == User("42")
    assert served.asked == 2
    seconds.now = 22
    assert "no key of this server fits a token of algorithm 'ES256' with the key id 'first'" in refusal(tokens, ES256)


def test_invented_key_ids_do_not_press_the_issuer(served: Issuer) -> None:
    seconds = Time()
    tokens = checker(seconds, jwt_keys=served.url)
    for number in range(50):
        seconds.now = number / 5
        forged = f"{_part({'alg': 'ES256', 'kid': f'invented {number}'})}.{_part(GOOD)}.AAAA"
        assert "no key" in refusal(tokens, forged)
    assert served.asked == 1


def test_while_the_issuer_is_away_the_keys_of_before_stay_good(served: Issuer) -> None:
    seconds = Time()
    tokens = checker(seconds, jwt_keys=served.url, jwt_keys_cache_seconds=60)
    user(tokens, token(GOOD, "RS256"))
    for body in (None, b"{", b"[]", b'{"keys": 3}', b'{"keys": ' + b"[" * 100_000):
        served.body = body
        seconds.now += 61
        assert user(tokens, token(GOOD, "RS256")) == User("42")
    assert served.asked == 6


def test_without_any_key_a_client_is_told_to_come_again(served: Issuer) -> None:
    seconds = Time()
    tokens = checker(seconds, jwt_keys=served.url)
    served.body = None
    assert "cannot be fetched now" in refusal(tokens, token(GOOD, "RS256"), Unavailable)
    served.body = published(*BOTH)
    seconds.now = 11
    assert user(tokens, token(GOOD, "RS256")) == User("42")


def test_many_at_once_ask_the_issuer_once(served: Issuer) -> None:
    tokens = checker(jwt_keys=served.url)

    async def many() -> list[User]:
        return await asyncio.gather(*(tokens.user(token(GOOD, "ES256")) for _ in range(20)))

    assert asyncio.run(many()) == [User("42")] * 20
    assert served.asked == 1


def test_an_issuer_that_does_not_answer_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, answers, asked = Time(), threading.Event(), []

    def load(source: str) -> bytes:
        asked.append(source)
        assert len(asked) == 1 or answers.wait(60)
        return published(*BOTH) if len(asked) == 1 else published(("ES256", "second"))

    tokens = WebTokens(Settings(jwt_keys="keys.json"), lambda: NOW, load, seconds)

    async def scenario() -> None:
        assert await tokens.user(token(GOOD, "ES256")) == User("42")
        monkeypatch.setattr(jwt_keys, "FETCH_SECONDS_MAX", 0.01)
        for _ in range(3):
            seconds.now += 1_000
            assert await tokens.user(token(GOOD, "ES256")) == User("42")
        answers.set()
        monkeypatch.undo()
        seconds.now += 1_000
        assert await tokens.user(token(GOOD, "ES256", "second")) == User("42")

    asyncio.run(scenario())
    assert len(asked) == 2  # of those who found the keys too old, one has asked for all


def test_an_answer_that_drips_is_given_up_on() -> None:
    seconds = Time()

    def drip(size: int) -> bytes:
        seconds.now += 1
        return b"x"

    with pytest.raises(OSError, match="longer"):
        fetching.content(drip, 5, 100, seconds)
    pieces = [b"ab", b"c", b""]
    assert fetching.content(lambda size: pieces.pop(0), 5, 100, seconds) == b"abc"


def test_an_issuer_that_is_never_done_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt_keys, "FETCH_SECONDS_MAX", 0.01)
    ended, done = threading.Event(), threading.Event()

    def load(source: str) -> bytes:
        ended.wait(10)
        done.set()
        return b""

    assert "cannot be fetched" in refusal(WebTokens(Settings(jwt_keys="x"), lambda: NOW, load), ES256, Unavailable)
    assert not done.is_set()  # the loop and its threads have ended, and nobody has waited for this one
    ended.set()


@pytest.mark.parametrize(
    ("here", "there", "followed"),
    [("https", "https", True), ("http", "http", True), ("http", "https", True), ("https", "http", False)],
)
def test_keys_that_have_moved_are_never_fetched_with_less_protection(here: str, there: str, followed: bool) -> None:
    asked = urllib.request.Request(f"{here}://login.example/keys")
    redirects, body = fetching.Redirects(), io.BytesIO()
    if followed:
        assert redirects.redirect_request(asked, body, 302, "", Message(), f"{there}://keys.example/") is not None
    else:
        with pytest.raises(OSError, match="without TLS"):
            redirects.redirect_request(asked, body, 302, "", Message(), f"{there}://keys.example/")


def test_a_file_of_keys_may_begin_with_a_mark_and_has_a_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(BOM_UTF8 + published(*BOTH))
    assert user(checker(jwt_keys=str(file)), ES256) == User("42")
    file.write_bytes(published(*BOTH) + b" " * jwt_keys.KEYS_BYTES_MAX)
    refusal(checker(jwt_keys=str(file)), ES256, Unavailable)
    assert "more than 1000000 bytes" in caplog.text
