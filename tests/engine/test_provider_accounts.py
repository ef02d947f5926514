"""Accounts of whom an identity provider names: made once, with the role of today, and nobody else's."""

from __future__ import annotations

import pytest

from tests.engine.test_accounts import PASSWORD, Clock
from tests.engine.test_second_factor import opened
from threadline.engine.password_links import PasswordLinks
from threadline.engine.provider_accounts import ProviderAccounts
from threadline.engine.second_factors import SecondFactors
from threadline.kernel.errors import Conflict, Forbidden, Unauthorized


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_provider_makes_the_account_and_says_its_role_each_time(clock: Clock) -> None:
    accounts = opened(clock)
    session, cookie = ProviderAccounts(accounts).sign_in("shop", "https://id.example 7", "bob@example.com", "viewer")
    assert (session.name, session.role) == ("bob@example.com", "viewer")
    ProviderAccounts(accounts).sign_in("shop", "https://id.example 7", "bob@example.com", "operator")
    again = accounts.find(cookie)
    assert again is not None
    assert again.role == "operator"
    ProviderAccounts(accounts).end_sessions("https://id.example 7", "bob@example.com")
    assert accounts.find(cookie) is None


def test_a_name_that_is_another_account_is_not_taken_over_through_a_provider(clock: Clock) -> None:
    accounts = opened(clock)
    ProviderAccounts(accounts).sign_in("shop", "https://id.example 7", "bob", "viewer")
    for provider_id, name in (("https://id.example 8", "ADA"), ("https://id.example 8", "bob"), ("https://x 7", "bob")):
        with pytest.raises(Forbidden, match="exists already"):
            ProviderAccounts(accounts).sign_in("shop", provider_id, name, "admin")
    ProviderAccounts(accounts).end_sessions("https://id.example 8", "ada")


def test_who_comes_through_a_provider_has_no_password_here(clock: Clock) -> None:
    accounts = opened(clock)
    session, _ = ProviderAccounts(accounts).sign_in("shop", "https://id.example 7", "bob", "viewer")
    with pytest.raises(Unauthorized):
        accounts.sign_in("bob", "")
    for refused in (
        lambda: accounts.set_password("shop", "bob", PASSWORD),
        lambda: PasswordLinks(accounts).make("shop", "bob"),
        lambda: SecondFactors(accounts).enrolment(session),
    ):
        with pytest.raises((Conflict, Forbidden)):
            refused()
