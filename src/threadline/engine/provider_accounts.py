"""Accounts of people whom an identity provider names: made when they first come, with the role that it gives them."""

from __future__ import annotations

import secrets

from threadline.engine.accounts import Accounts, Opened
from threadline.kernel.errors import Forbidden
from threadline.kernel.limits import ACCOUNT_NAME_LENGTH_MAX
from threadline.kernel.roles import Role


class ProviderAccounts:
    """The accounts of a store that have no password here."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def sign_in(self, workspace: str, provider_id: str, name: str, role: Role) -> Opened:
        """A new session of whom an identity provider names, with the role that their groups have here.

        The account is made when they come first. Raises `Forbidden` for a name that is somebody else's account: who
        chooses their own name at the provider must not become an admin here by it.
        """
        account = self._accounts.named(name)
        if account is not None and (account.workspace, account.provider_id) != (workspace, provider_id):
            raise Forbidden(
                f"an account named {name[:ACCOUNT_NAME_LENGTH_MAX]!r} exists already, and it is not yours by this "
                "provider",
                hint="An admin removes it first: `threadline accounts remove NAME`.",
            )
        if account is None:
            account = self._accounts.add(workspace, name, role, "", provider_id)
        elif account.role != role:
            account = self._accounts.change(workspace, name, role=role)
        return self._accounts.begin(account)

    def end_sessions(self, provider_id: str, name: str) -> None:
        """End the sessions of whom the provider no longer lets in; nothing happens to anybody else."""
        account = self._accounts.named(name)
        if account is not None and account.provider_id == provider_id:
            self._accounts.change(account.workspace, account.name, stamp=secrets.token_hex(8))
