"""Accounts and sessions: a session lives as long as its account or token, and no longer than it says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from threadline.engine import passwords
from threadline.engine.accounts import ACCOUNT, SESSION, SESSION_LENGTH, Accounts
from threadline.engine.credentials import Credential, Credentials, fixed_credentials
from threadline.engine.passwords import FAILURES_WITHIN, SIGN_IN_FAILURES, Hasher
from threadline.engine.signer import Signer
from threadline.kernel.errors import Conflict, InvalidValue, NotFound, TooManyRequests, Unauthorized
from threadline.kernel.limits import SESSIONS_MAX, SIGN_IN_FAILURES_MAX
from threadline.kernel.store import Store, scan_pages
from threadline.kernel.time import MINUTE
from threadline.stores.memory import MemoryStore

PASSWORD = "correct horse battery"


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock, store: Store | None = None, fixed: Sequence[Credential] = ()) -> Accounts:
    """The accounts of a store, with a cheap hash."""
    store = store or MemoryStore()
    made = Accounts(store, clock, Credentials(store, clock, fixed), Signer(store))
    made.hasher.cost, made.hasher.rounds = 16, 1
    return made


def test_a_password_opens_a_session_of_its_account(clock):
    accounts = opened(clock)
    accounts.create("shop", "Ada@example.com", PASSWORD, "marketer")
    session, secret = accounts.sign_in("ada@EXAMPLE.com", PASSWORD)
    assert (session.workspace, session.name, session.role) == ("shop", "Ada@example.com", "marketer")
    assert session.token_scopes == ()
    assert opened(clock, accounts.store).find(secret) == session
    assert session.expires_at == clock.now + SESSION_LENGTH
    assert accounts.find(secret + "x") is None


def test_neither_a_secret_nor_a_password_is_stored(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    session, secret = accounts.sign_in("ada", PASSWORD)
    for table in accounts.store.tables():
        for item in scan_pages(accounts.store, table):
            stored = "\0".join(item.key).encode() + item.value
            for hidden in (PASSWORD, secret, session.csrf):
                assert hidden.encode() not in stored


@pytest.mark.parametrize("name", ["ada", "nobody", "", "a b", "\0", "x" * 5_000])
def test_a_wrong_password_and_an_unknown_name_have_the_same_answer(clock, name):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    with pytest.raises(Unauthorized, match=r"^the name or the password is wrong$"):
        accounts.sign_in(name, "something else entirely")


def test_an_unknown_name_costs_a_hash_as_a_known_one_does(clock, monkeypatch):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    made = []
    real = passwords._scrypt
    monkeypatch.setattr(passwords, "_scrypt", lambda *given: made.append(given[2:]) or real(*given))
    for name in ("ada", "nobody"):
        with pytest.raises(Unauthorized):
            accounts.sign_in(name, "something else entirely")
    assert made == [(16, 1), (16, 1)]


def test_failures_from_one_address_do_not_keep_the_right_password_out_from_another(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    for _ in range(SIGN_IN_FAILURES_MAX):
        with pytest.raises(Unauthorized):
            accounts.sign_in("ada", "something else entirely", "192.0.2.1")
    with pytest.raises(TooManyRequests):
        accounts.sign_in("ADA", PASSWORD, "192.0.2.1")
    assert accounts.sign_in("ada", PASSWORD, "192.0.2.2")


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_after_ten_failures_nobody_signs_in_with_a_name_from_there_for_15_minutes(clock, name):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    accounts.create("shop", "bob", PASSWORD, "admin")
    for _ in range(SIGN_IN_FAILURES_MAX):
        with pytest.raises(Unauthorized):
            accounts.sign_in(name, "something else entirely")
        clock.now += MINUTE // 10
    elsewhere = opened(clock, accounts.store)
    for each in (accounts, elsewhere):
        with pytest.raises(TooManyRequests, match="try again in 14 min"):
            each.sign_in(name, PASSWORD)
    assert accounts.sign_in("bob", PASSWORD)
    clock.now += FAILURES_WITHIN
    if name == "ada":
        assert accounts.sign_in(name, PASSWORD)
    else:
        with pytest.raises(Unauthorized):
            accounts.sign_in(name, PASSWORD)


def test_a_sign_in_and_a_new_password_begin_the_count_of_failures_again(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    for new in ("", "another long password"):
        for _ in range(SIGN_IN_FAILURES_MAX - 1):
            with pytest.raises(Unauthorized):
                accounts.sign_in("ada", "something else entirely")
        if new:
            accounts.set_password("shop", "ada", new)
        else:
            accounts.sign_in("ada", PASSWORD)
    with pytest.raises(Unauthorized):
        accounts.sign_in("ada", "something else entirely")
    assert accounts.sign_in("ada", "another long password")


def test_guessed_names_do_not_fill_the_store(clock, monkeypatch):
    accounts = opened(clock)
    monkeypatch.setattr("threadline.engine.passwords._BUCKET_DIGITS", 1)
    for number in range(200):
        accounts.failures.note(f"guess {number}")
    assert len(list(scan_pages(accounts.store, SIGN_IN_FAILURES))) <= 16


def test_a_session_ends_when_it_says_in_the_cache_too(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    _, secret = accounts.sign_in("ada", PASSWORD)
    clock.now += SESSION_LENGTH - 1
    assert accounts.find(secret)
    clock.now += 1
    assert accounts.find(secret) is None
    clock.now -= SESSION_LENGTH
    assert accounts.find(secret)


@pytest.mark.parametrize("end", ["remove", "set_password", "made_anew", "sign_out"])
def test_a_session_ends_with_its_account(clock, end):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    _, secret = accounts.sign_in("ada", PASSWORD)
    assert accounts.find(secret)
    elsewhere = opened(clock, accounts.store)
    assert elsewhere.find(secret)
    if end == "sign_out":
        accounts.sign_out(secret)
        accounts.sign_out(secret)
    elif end == "set_password":
        accounts.set_password("shop", "ada", "another long password")
    else:
        accounts.remove("shop", "ada")
        if end == "made_anew":
            accounts.create("shop", "ada", PASSWORD, "admin")
    assert accounts.find(secret) is None
    clock.now += 5_000_000
    assert elsewhere.find(secret) is None


def test_a_new_role_holds_in_sessions_that_there_are(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    _, secret = accounts.sign_in("ada", PASSWORD)
    accounts.set_role("shop", "ada", "viewer")
    found = accounts.find(secret)
    assert found is not None
    assert found.role == "viewer"


def test_a_token_opens_a_session_that_ends_with_it(clock):
    accounts = opened(clock)
    credentials = accounts.credentials
    token, api_secret = credentials.create("shop", "token", "robot", ["read", "write"])
    session, secret = accounts.sign_in_with_token(api_secret)
    assert (session.name, session.role, session.token_scopes) == ("robot", "operator", ("read", "write"))
    assert accounts.find(secret) == session
    credentials.revoke("shop", token.id)
    clock.now += 5_000_000
    assert accounts.find(secret) is None
    with pytest.raises(Unauthorized):
        accounts.sign_in_with_token(api_secret)


def test_a_token_of_the_settings_opens_a_session_and_a_write_key_does_not(clock):
    accounts = opened(clock, fixed=fixed_credentials([("web", "w" * 20)], [("ops", "t" * 20)], "shop"))
    session, secret = accounts.sign_in_with_token("t" * 20)
    assert session.role == "admin"
    assert accounts.find(secret) == session
    with pytest.raises(Unauthorized):
        accounts.sign_in_with_token("w" * 20)


def test_an_account_has_a_bounded_number_of_sessions_and_ended_ones_are_removed(clock):
    accounts = opened(clock)
    accounts.create("shop", "ada", PASSWORD, "admin")
    secrets = []
    for _ in range(SESSIONS_MAX + 2):
        clock.now += MINUTE
        secrets.append(accounts.sign_in("ada", PASSWORD)[1])
    assert [bool(accounts.find(each)) for each in secrets] == [False] * 2 + [True] * SESSIONS_MAX
    clock.now += SESSION_LENGTH
    accounts.sign_in("ada", PASSWORD)
    assert len(list(scan_pages(accounts.store, SESSION))) == 1


def test_accounts_are_listed_by_workspace_and_names_are_taken_once(clock):
    accounts = opened(clock)
    accounts.create("shop", "bob", PASSWORD, "viewer")
    accounts.create("shop", "ada", PASSWORD, "admin")
    accounts.create("other", "eve", PASSWORD, "admin")
    assert [each.name for each in accounts.entries("shop")] == ["ada", "bob"]
    for workspace in ("shop", "other"):
        with pytest.raises(Conflict):
            accounts.create(workspace, "Ada", PASSWORD, "viewer")
    with pytest.raises(NotFound):
        accounts.remove("shop", "eve")
    accounts.remove("shop", "ADA")
    assert [each.name for each in accounts.entries("shop")] == ["bob"]
    assert [item.key.partition for item in scan_pages(accounts.store, ACCOUNT)] == ["bob", "eve"]


@pytest.mark.parametrize(
    ("name", "password", "role", "param"),
    [
        ("", PASSWORD, "viewer", "name"),
        ("a b", PASSWORD, "viewer", "name"),
        ("a/b", PASSWORD, "viewer", "name"),
        ("x" * 101, PASSWORD, "viewer", "name"),
        ("ada", "short", "viewer", "password"),
        ("ada", "x" * 1_001, "viewer", "password"),
        ("ada", PASSWORD, "owner", "role"),
    ],
)
def test_what_cannot_be_an_account_is_refused_by_parameter(clock, name, password, role, param):
    with pytest.raises(InvalidValue) as refused:
        opened(clock).create("shop", name, password, role)
    assert refused.value.param == param


def test_a_hash_says_how_it_was_made_and_is_never_made_twice():
    hasher = Hasher()
    one, other = hasher.hashed(PASSWORD), hasher.hashed(PASSWORD)
    assert one.startswith("scrypt.16384.5.")
    assert one != other
    hasher.cost, hasher.rounds = 16, 1
    assert hasher.matches(PASSWORD, one)
    assert hasher.matches("ﬁve wide words here", hasher.hashed("five wide words here"))
