"""Links with which somebody sets the password of an account: made by an admin, good once, and for a day."""

from __future__ import annotations

import hmac
import secrets

from threadline.engine.accounts import Account, Accounts, key_of
from threadline.engine.credentials import hash_secret
from threadline.kernel.errors import Conflict, Unauthorized
from threadline.kernel.time import DAY, is_over

LINK_LENGTH = DAY
_PURPOSE = "set a password"


class PasswordLinks:
    """The links of a store's accounts. Only the hash of the last one of each is stored."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def make(self, workspace: str, name: str) -> tuple[Account, str]:
        """The secret of a link with which somebody sets their password, once; an earlier link opens nothing any more.

        Raises `NotFound`, and `Conflict` for who signs in through a provider.
        """
        account = self._accounts.account(workspace, name)
        if account.by_provider:
            raise Conflict(f"{account.name!r} signs in through an identity provider, and has no password here")
        secret = secrets.token_urlsafe(24)
        until = self._accounts.clock() + LINK_LENGTH
        changed = self._accounts.change(workspace, name, reset_hash=hash_secret(secret), reset_until=until)
        return changed, self._accounts.signer.sign(_PURPOSE, workspace, key_of(name), secret)

    def account_of(self, link: str) -> Account:
        """The account whose password a link sets. Raises `Unauthorized` for one that is used, replaced or too old."""
        signed = self._accounts.signer.read(_PURPOSE, link)
        account = None if signed is None else self._accounts.named(str(signed.values[0]))
        ended = account is None or is_over(account.reset_until, self._accounts.clock(), LINK_LENGTH)
        if signed is not None and account is not None and not ended:
            is_last = hmac.compare_digest(hash_secret(str(signed.values[1])), account.reset_hash)
            if is_last:
                return account
        raise Unauthorized(
            "this link was used, is too old, or a newer one was made", hint="Ask an admin for a new one."
        )

    def set_password(self, link: str, new: str) -> Account:
        """Set the password of the account of a link, and end its sessions; the link opens nothing any more.

        Of two who bring one link at once, one sets the password.
        """
        self.account_of(link)  # before its costly hash is made
        hashed = self._accounts.hasher.hashed(new)
        while True:
            account = self.account_of(link)
            fresh = {"password": hashed, "stamp": secrets.token_hex(8), "reset_hash": "", "reset_until": 0}
            if self._accounts.change_if_same(account, **fresh):
                return account
