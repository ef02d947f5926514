"""Second factors of accounts: apps are set up, their codes and recovery codes taken, each once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from threadline.engine.accounts import Account, Accounts, Opened, Session, Step, key_of
from threadline.engine.one_time_codes import (
    SecondFactor,
    enrolment_address,
    fresh_recovery_codes,
    fresh_secret,
    recovery_hash,
    secret_text,
    step_of,
)
from threadline.kernel.errors import Conflict, Forbidden, NotFound, Unauthorized, Unavailable

_SEALED = "second factor"
_WRONG_CODE = "the code is wrong, or was used already"


class Enrolment(NamedTuple):
    """An app that is being set up as second factor."""

    ticket: str
    """What has to come back with its first code."""
    secret: str
    """To type into the app."""
    address: str
    """The same as an ``otpauth`` address."""


class Enrolled(NamedTuple):
    """A session that has begun with a second factor that is new."""

    opened: Opened
    recovery_codes: list[str]
    """The only time that they are shown."""


class SecondFactors:
    """The second factors of a store's accounts. Thread-safe. What is stored opens nothing without the signing key."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def confirm(self, ticket: str, code: str) -> Opened:
        """The session of who gave the password for this ticket, by a code of their app or a recovery code.

        Raises `Unauthorized` for a wrong one, and `TooManyRequests` after some of them, from wherever they came.
        """
        account, _ = self._accounts.of_ticket("code", ticket)
        self._use_code(account, code)
        return self._accounts.begin(account)

    def confirm_new(self, ticket: str, code: str) -> Enrolled:
        """The same with an app that is set up on the way: the session, and the recovery codes."""
        account, sealed = self._accounts.of_ticket("app at sign-in", ticket)
        recovery_codes = self._enrol(account, sealed, code)
        return Enrolled(self._accounts.begin(account), recovery_codes)

    def enrolment_at_sign_in(self, ticket: str) -> Enrolment:
        """An app to set up for who gave the password for this ticket, and must have a second factor."""
        return self._enrolment("app at sign-in", self._accounts.of_ticket("no app yet", ticket)[0])

    def enrolment(self, session: Session) -> Enrolment:
        """An app to set up for who is signed in."""
        return self._enrolment("app", self._accounts.own(session))

    def enrol(self, session: Session, ticket: str, code: str) -> list[str]:
        """Take an app that is set up, and shows this code, as second factor; answers the recovery codes."""
        account, sealed = self._accounts.of_ticket("app", ticket)
        if account.name != self._accounts.own(session).name:
            raise Unauthorized("this app was being set up for another account; begin again")
        return self._enrol(account, sealed, code)

    def renew_recovery(self, session: Session, password: str, address: str) -> list[str]:
        """New recovery codes in place of the former."""
        account = self._accounts.checked_own(session, password, address)
        if account.second_factor is None:
            raise NotFound("this account has no second factor")
        recovery_codes = fresh_recovery_codes()
        hashes = tuple(map(recovery_hash, recovery_codes))
        changed = msgspec.structs.replace(account.second_factor, recovery=hashes)
        self._change(account, changed)
        return recovery_codes

    def drop_second_factor(self, session: Session, password: str, address: str) -> None:
        """Sign in without a code from now on. Raises `Forbidden` where the role must have one."""
        account = self._accounts.checked_own(session, password, address)
        if account.role in self._accounts.second_factor_roles:
            raise Forbidden(f"who has the role {account.role} signs in with a second factor here")
        self._accounts.change(account.workspace, account.name, second_factor=None)

    def reset(self, workspace: str, name: str) -> Account:
        """Take the second factor from an account whose owner has lost it; raises `NotFound`."""
        return self._accounts.change(workspace, name, second_factor=None)

    def _enrol(self, account: Account, sealed: str, code: str) -> list[str]:
        if account.second_factor is not None:
            raise Conflict("this account has a second factor already; turn it off first")
        throttled = f"{key_of(account.name)}\n{account.stamp}\nnew app"
        self._accounts.failures.refuse(throttled)
        step = step_of(self._unsealed(account, sealed), _digits(code), self._accounts.clock(), 0)
        if step is None:
            self._accounts.failures.note(throttled)
            raise Unauthorized("this is not the code that the app shows now; check the clock of the phone")
        recovery_codes = fresh_recovery_codes()
        made = SecondFactor(
            sealed=sealed,
            since=self._accounts.clock(),
            last_step=step,
            recovery=tuple(map(recovery_hash, recovery_codes)),
        )
        self._change(account, made)
        return recovery_codes

    def _change(self, account: Account, factor: SecondFactor) -> None:
        # One that was taken away since it was read must not come back, nor a code that was used be good again.
        if not self._accounts.change_if_same(account, second_factor=factor):
            raise Unavailable("somebody else is changing this account; try again")

    def _use_code(self, account: Account, code: str) -> None:
        """Take a code, which is then used up. Guesses are counted by account alone: who makes them has the password."""
        factor = account.second_factor
        if factor is None:
            raise Unauthorized("the second factor was taken from this account a moment ago; sign in again")
        throttled = f"{key_of(account.name)}\n{account.stamp}\ncode"
        self._accounts.failures.refuse(throttled)
        digest, step = recovery_hash(code), None
        if digest in factor.recovery:
            changed = msgspec.structs.replace(factor, recovery=tuple(h for h in factor.recovery if h != digest))
        else:
            secret = self._unsealed(account, factor.sealed)
            step = step_of(secret, _digits(code), self._accounts.clock(), factor.last_step)
            changed = factor if step is None else msgspec.structs.replace(factor, last_step=step)
        if changed is factor:
            self._accounts.failures.note(throttled)
            raise Unauthorized(_WRONG_CODE)
        # Two who bring one code at once: one of them is first.
        if not self._accounts.change_if_same(account, second_factor=changed):
            raise Unauthorized(_WRONG_CODE)
        self._accounts.failures.forget(throttled)

    def _enrolment(self, step: Step, account: Account) -> Enrolment:
        secret = fresh_secret()
        sealed = self._accounts.signer.sign(_SEALED, account.workspace, key_of(account.name), secret.hex())
        address = enrolment_address(account.name, secret)
        return Enrolment(self._accounts.ticket(step, account, sealed), secret_text(secret), address)

    def _unsealed(self, account: Account, sealed: str) -> bytes:
        signed = self._accounts.signer.read(_SEALED, sealed)
        if signed is None or signed[:2] != (account.workspace, (key_of(account.name), signed.values[1])):
            raise Unavailable("the second factor cannot be read; an admin can reset it")
        return bytes.fromhex(str(signed.values[1]))

    def enrolment_of(self, step: Step, ticket: str) -> Enrolment:
        """The app that is being set up with a ticket, once more. Raises `Unauthorized`."""
        account, sealed = self._accounts.of_ticket(step, ticket)
        secret = self._unsealed(account, sealed)
        return Enrolment(ticket, secret_text(secret), enrolment_address(account.name, secret))


def _digits(code: str) -> str:
    return "".join(code.split())
