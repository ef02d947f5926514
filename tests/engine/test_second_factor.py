"""The second factor and links to set a password: a code opens once, guesses end, and what is stored opens nothing."""

from __future__ import annotations

import base64
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tests.engine.test_accounts import PASSWORD, Clock
from threadline.engine.accounts import SECOND_STEP_LENGTH, Accounts, Opened, Pending, Session
from threadline.engine.credentials import Credentials
from threadline.engine.one_time_codes import RECOVERY_CODES, STEP, code_at, recovery_hash, step_of
from threadline.engine.password_links import LINK_LENGTH, PasswordLinks
from threadline.engine.passwords import FAILURES_WITHIN
from threadline.engine.second_factors import SecondFactors
from threadline.engine.signer import Signer
from threadline.kernel.errors import Conflict, Forbidden, InvalidValue, TooManyRequests, Unauthorized, Unavailable
from threadline.kernel.limits import SIGN_IN_FAILURES_MAX
from threadline.kernel.roles import Role
from threadline.kernel.store import Store
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore

RFC_SECRET = b"12345678901234567890"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock, required: Collection[Role] = (), store: Store | None = None) -> Accounts:
    store = store or MemoryStore()
    accounts = Accounts(store, clock, Credentials(store, clock), Signer(store), required)
    accounts.hasher.cost, accounts.hasher.rounds = 16, 1
    if accounts.named("ada") is None:
        accounts.create("shop", "ada", PASSWORD, "admin")
    return accounts


def session_of(accounts: Accounts) -> Session:
    made = accounts.sign_in("ada", PASSWORD)
    assert isinstance(made, Opened)
    return made.session


def secret_of(text: str) -> bytes:
    return base64.b32decode(text)


def enrolled(accounts: Accounts, clock: Clock) -> tuple[bytes, list[str]]:
    """The secret and the recovery codes of an account that has turned its second factor on a while ago."""
    session = session_of(accounts)
    enrolment = SecondFactors(accounts).enrolment(session)
    secret = secret_of(enrolment.secret)
    recovery_codes = SecondFactors(accounts).enrol(session, enrolment.ticket, code_at(secret, clock.now // STEP))
    clock.now += 3 * STEP
    return secret, recovery_codes


def ticket(accounts: Accounts) -> str:
    made = accounts.sign_in("ada", PASSWORD)
    assert isinstance(made, Pending)
    return made.ticket


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ],
)
def test_a_code_is_that_of_the_examples_of_rfc_6238(seconds: int, code: str) -> None:
    assert code_at(RFC_SECRET, seconds * SECOND // STEP) == code


def test_a_code_is_good_one_step_early_and_late_and_no_further() -> None:
    now = 1_000 * STEP
    for apart, is_good in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        step = step_of(RFC_SECRET, code_at(RFC_SECRET, 1_000 + apart), now, 0)
        assert step == (1_000 + apart if is_good else None)


@pytest.mark.parametrize("code", ["", "１２３４５６", "12345", "1234567", "\x00", "é" * 6, "🔑" * 6, "\ud800" * 6])
def test_what_is_no_code_opens_nothing(clock: Clock, code: str) -> None:
    accounts = opened(clock)
    enrolled(accounts, clock)
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).confirm(ticket(accounts), code)


def test_a_password_alone_opens_nothing_once_the_second_factor_is_on(clock: Clock) -> None:
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    made = accounts.sign_in("ada", PASSWORD)
    assert isinstance(made, Pending)
    assert accounts.find(made.ticket) is None
    session, cookie = SecondFactors(accounts).confirm(made.ticket, code_at(secret, clock.now // STEP))
    assert accounts.find(cookie) == session


def test_a_code_that_was_taken_opens_nothing_again_nor_does_an_earlier_one(clock: Clock) -> None:
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    code, earlier = code_at(secret, clock.now // STEP), code_at(secret, clock.now // STEP - 1)
    SecondFactors(accounts).confirm(ticket(accounts), code)
    for used in (code, earlier):
        with pytest.raises(Unauthorized, match="used already"):
            SecondFactors(accounts).confirm(ticket(accounts), used)


def test_of_many_who_bring_one_code_at_once_one_gets_in(clock: Clock) -> None:
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    code, pending = code_at(secret, clock.now // STEP), ticket(accounts)

    def bring(number: int) -> bool:
        try:
            return bool(SecondFactors(accounts).confirm(pending, code))
        except (Unauthorized, TooManyRequests):
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(bring, range(8))) == 1


def test_a_recovery_code_opens_once_however_it_is_written(clock: Clock) -> None:
    accounts = opened(clock)
    _, recovery_codes = enrolled(accounts, clock)
    assert len(set(recovery_codes)) == RECOVERY_CODES
    SecondFactors(accounts).confirm(ticket(accounts), recovery_codes[0].upper().replace("-", " "))
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).confirm(ticket(accounts), recovery_codes[0])
    SecondFactors(accounts).confirm(ticket(accounts), recovery_codes[1])
    fresh = SecondFactors(accounts).renew_recovery(_session(accounts, recovery_codes[2]), PASSWORD, "")
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).confirm(ticket(accounts), recovery_codes[3])
    SecondFactors(accounts).confirm(ticket(accounts), fresh[3])


def _session(accounts: Accounts, code: str) -> Session:
    return SecondFactors(accounts).confirm(ticket(accounts), code).session


def test_guesses_end_for_the_account_and_begin_again_later(clock: Clock) -> None:
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    for _ in range(SIGN_IN_FAILURES_MAX):
        with pytest.raises(Unauthorized):
            SecondFactors(accounts).confirm(ticket(accounts), "000000")
    with pytest.raises(TooManyRequests):
        SecondFactors(accounts).confirm(ticket(accounts), code_at(secret, clock.now // STEP))
    clock.now += FAILURES_WITHIN
    SecondFactors(accounts).confirm(ticket(accounts), code_at(secret, clock.now // STEP))


def test_a_ticket_ends_with_its_time_with_the_password_and_for_another_step(clock: Clock) -> None:
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    pending = ticket(accounts)
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).confirm_new(pending, code_at(secret, clock.now // STEP))
    clock.now += SECOND_STEP_LENGTH
    with pytest.raises(Unauthorized, match="too long"):
        SecondFactors(accounts).confirm(pending, code_at(secret, clock.now // STEP))
    pending = ticket(accounts)
    accounts.set_password("shop", "ada", "another long password")
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).confirm(pending, code_at(secret, clock.now // STEP))


def test_a_role_that_must_have_one_sets_it_up_before_it_is_in(clock: Clock) -> None:
    accounts = opened(clock, required=("admin",))
    made = accounts.sign_in("ada", PASSWORD)
    assert isinstance(made, Pending)
    assert made.must_enrol
    enrolment = SecondFactors(accounts).enrolment_at_sign_in(made.ticket)
    with pytest.raises(Unauthorized, match="app shows now"):
        SecondFactors(accounts).confirm_new(enrolment.ticket, "000000")
    assert accounts.named("ada") == opened(clock, store=accounts.store).named("ada")
    code = code_at(secret_of(enrolment.secret), clock.now // STEP)
    finished = SecondFactors(accounts).confirm_new(enrolment.ticket, code)
    assert accounts.find(finished.opened.secret) == finished.opened.session
    with pytest.raises(Conflict):
        SecondFactors(accounts).confirm_new(enrolment.ticket, code)
    with pytest.raises(Forbidden, match="admin"):
        SecondFactors(accounts).drop_second_factor(finished.opened.session, PASSWORD, "")


def test_a_session_without_a_second_factor_ends_once_its_role_must_have_one(clock: Clock) -> None:
    before = opened(clock)
    before.create("shop", "bob", PASSWORD, "viewer")
    secrets = {}
    for name in ("ada", "bob"):
        made = before.sign_in(name, PASSWORD)
        assert isinstance(made, Opened)
        secrets[name] = made.secret
    token = before.sign_in_with_token(before.credentials.create("shop", "token", "import", ["admin"])[1])
    after = opened(clock, required=("admin",), store=before.store)
    assert after.find(secrets["ada"]) is None
    assert after.find(secrets["bob"]) is not None
    assert after.find(token.secret) == token.session
    after.set_role("shop", "bob", "admin")
    assert after.find(secrets["bob"]) is None
    made = after.sign_in("bob", PASSWORD)
    assert isinstance(made, Pending)
    assert made.must_enrol


def test_an_account_of_a_provider_keeps_its_session_where_its_role_must_have_a_second_factor(clock: Clock) -> None:
    accounts = opened(clock, required=("admin",))
    account = accounts.add("shop", "eve", "admin", "", provider_id="https://id.example eve")
    begun = accounts.begin(account)
    assert accounts.find(begun.secret) == begun.session


def test_a_viewer_is_not_asked_where_admins_are(clock: Clock) -> None:
    accounts = opened(clock, required=("admin",))
    accounts.create("shop", "vera", PASSWORD, "viewer")
    assert isinstance(accounts.sign_in("vera", PASSWORD), Opened)


def test_an_app_is_set_up_for_the_account_that_asked(clock: Clock) -> None:
    accounts = opened(clock)
    accounts.create("shop", "bob", PASSWORD, "viewer")
    enrolment = SecondFactors(accounts).enrolment(session_of(accounts))
    other = accounts.sign_in("bob", PASSWORD)
    assert isinstance(other, Opened)
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).enrol(
            other.session, enrolment.ticket, code_at(secret_of(enrolment.secret), clock.now // STEP)
        )


def test_turning_it_off_takes_the_password(clock: Clock) -> None:
    accounts = opened(clock)
    session = session_of(accounts)
    enrolled(accounts, clock)
    with pytest.raises(Unauthorized):
        SecondFactors(accounts).drop_second_factor(session, "wrong words here", "")
    SecondFactors(accounts).drop_second_factor(session, PASSWORD, "")
    assert isinstance(accounts.sign_in("ada", PASSWORD), Opened)


def test_an_admin_resets_it_and_neither_the_old_app_nor_its_codes_open_anything(clock: Clock) -> None:
    accounts = opened(clock, required=("admin",), store=(former := opened(clock)).store)
    secret, recovery_codes = enrolled(former, clock)
    pending = ticket(accounts)
    assert not SecondFactors(accounts).reset("shop", "ada").has_second_factor
    for code in (code_at(secret, clock.now // STEP), recovery_codes[0]):
        with pytest.raises(Unauthorized):
            SecondFactors(accounts).confirm(pending, code)
    made = accounts.sign_in("ada", PASSWORD)
    assert isinstance(made, Pending)
    assert made.must_enrol


def test_recovery_codes_that_are_renewed_while_an_admin_resets_the_factor_do_not_bring_it_back(clock: Clock) -> None:
    accounts = opened(clock)
    enrolled(accounts, clock)
    session = accounts.begin(accounts.account("shop", "ada")).session
    matches = accounts.hasher.matches

    def slowly(password: str, stored: str) -> bool:
        SecondFactors(accounts).reset("shop", "ada")
        return matches(password, stored)

    accounts.hasher.matches = slowly  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="somebody else is changing this account"):
        SecondFactors(accounts).renew_recovery(session, PASSWORD, "")
    assert not accounts.account("shop", "ada").has_second_factor


def test_nothing_that_is_stored_of_it_opens_the_account(clock: Clock) -> None:
    accounts = opened(clock)
    secret, recovery_codes = enrolled(accounts, clock)
    _, link = PasswordLinks(accounts).make("shop", "ada")
    stored = b"".join(item.value for table in accounts.store.tables() for item in accounts.store.scan(table, limit=99))
    text = base64.b32encode(secret)
    for plain in (secret, text, secret.hex().encode(), recovery_codes[0].encode(), link.encode()):
        assert plain not in stored
    assert recovery_hash(recovery_codes[0]).encode() in stored


def test_a_secret_of_another_account_is_not_taken_for_ones_own(clock: Clock) -> None:
    """Whoever can write to the store alone cannot make an account's codes those of an app that they have."""
    accounts = opened(clock)
    secret, _ = enrolled(accounts, clock)
    accounts.create("shop", "bob", PASSWORD, "admin")
    ada = accounts.named("ada")
    assert ada is not None
    accounts.change("shop", "bob", second_factor=msgspec.structs.replace(ada.second_factor, last_step=0))
    made = accounts.sign_in("bob", PASSWORD)
    assert isinstance(made, Pending)
    with pytest.raises(Exception, match="cannot be read"):
        SecondFactors(accounts).confirm(made.ticket, code_at(secret, clock.now // STEP))


# --- links to set a password ----------------------------------------------------------------------


def test_a_link_sets_the_password_once_and_ends_the_sessions(clock: Clock) -> None:
    accounts = opened(clock)
    _, cookie = accounts.sign_in("ada", PASSWORD)
    account, link = PasswordLinks(accounts).make("shop", "ada")
    assert account.reset_until == clock.now + LINK_LENGTH
    assert PasswordLinks(accounts).account_of(link).name == "ada"
    with pytest.raises(InvalidValue):
        PasswordLinks(accounts).set_password(link, "short")
    PasswordLinks(accounts).set_password(link, "four other words here")
    assert accounts.find(cookie) is None
    assert isinstance(accounts.sign_in("ada", "four other words here"), Opened)
    with pytest.raises(Unauthorized, match="was used"):
        PasswordLinks(accounts).set_password(link, "and once more, please")


def test_of_two_who_bring_one_link_at_once_one_sets_the_password(clock: Clock) -> None:
    accounts = opened(clock)
    _, link = PasswordLinks(accounts).make("shop", "ada")
    hashed = accounts.hasher.hashed

    def overtaken(password: str) -> str:
        accounts.hasher.hashed = hashed  # type: ignore[method-assign]
        PasswordLinks(accounts).set_password(link, "four other words here")
        return hashed(password)

    accounts.hasher.hashed = overtaken  # type: ignore[method-assign]
    with pytest.raises(Unauthorized, match="was used"):
        PasswordLinks(accounts).set_password(link, "words of somebody else")
    assert isinstance(accounts.sign_in("ada", "four other words here"), Opened)


def test_a_link_ends_with_its_day_with_a_newer_one_and_with_another_password(clock: Clock) -> None:
    accounts = opened(clock)
    _, first = PasswordLinks(accounts).make("shop", "ada")
    _, second = PasswordLinks(accounts).make("shop", "ada")
    with pytest.raises(Unauthorized):
        PasswordLinks(accounts).account_of(first)
    clock.now += LINK_LENGTH
    with pytest.raises(Unauthorized):
        PasswordLinks(accounts).account_of(second)
    _, third = PasswordLinks(accounts).make("shop", "ada")
    accounts.set_password("shop", "ada", "another long password")
    for link in (third, "", "x" * 40, first[:-1], third + "A"):
        with pytest.raises(Unauthorized):
            PasswordLinks(accounts).set_password(link, "four other words here")


def test_a_link_leaves_the_second_factor_on(clock: Clock) -> None:
    accounts = opened(clock)
    enrolled(accounts, clock)
    _, link = PasswordLinks(accounts).make("shop", "ada")
    PasswordLinks(accounts).set_password(link, "four other words here")
    assert isinstance(accounts.sign_in("ada", "four other words here"), Pending)
