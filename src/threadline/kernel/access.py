"""Ports of who may ask: write keys and tokens, and accounts of people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from threadline.kernel.roles import Role


class Credential(Protocol):
    """A write key or a token, without its secret."""

    @property
    def id(self) -> str: ...  # noqa: D102 — the fields of `KeyEntry`
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def workspace(self) -> str: ...  # noqa: D102
    @property
    def scopes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def created_at(self) -> int: ...  # noqa: D102
    @property
    def expires_at(self) -> int: ...  # noqa: D102


class Credentials(Protocol):
    """Write keys and tokens."""

    def create(
        self,
        workspace: str,
        kind: Literal["write_key", "token"],
        name: str,
        scopes: Iterable[str] = (),
        *,
        expires_at: int = 0,
    ) -> tuple[Credential, str]:
        """A new credential and its secret, which is shown this once; it opens nothing from ``expires_at`` on, 0: it
        does not expire."""
        ...

    def used(self, workspace: str) -> Mapping[str, int]:
        """When each credential was last used, by id, to the hour; those that never were are left out."""
        ...

    def entries(self, workspace: str) -> Sequence[Credential]:
        """The credentials of a workspace, oldest first."""
        ...

    def revoke(self, workspace: str, id: str) -> Credential:
        """Revoke a credential, at once in this process; raises `NotFound`."""
        ...


class Account(Protocol):
    """Somebody who may sign in, without their password."""

    @property
    def name(self) -> str: ...  # noqa: D102 — the fields of `AccountEntry`
    @property
    def workspace(self) -> str: ...  # noqa: D102
    @property
    def role(self) -> Role: ...  # noqa: D102
    @property
    def created_at(self) -> int: ...  # noqa: D102
    @property
    def has_second_factor(self) -> bool: ...  # noqa: D102
    @property
    def by_provider(self) -> bool: ...  # noqa: D102
    @property
    def reset_until(self) -> int: ...  # noqa: D102


class Accounts(Protocol):
    """Accounts of people who use the console."""

    def create(self, workspace: str, name: str, password: str, role: Role) -> Account:
        """A new account. Raises `InvalidValue` for what cannot be, `Conflict` for a name that is taken."""
        ...

    def entries(self, workspace: str) -> Sequence[Account]:
        """The accounts of a workspace, by name."""
        ...

    def remove(self, workspace: str, name: str) -> Account:
        """Remove an account and end its sessions; raises `NotFound`."""
        ...

    def set_role(self, workspace: str, name: str, role: Role) -> Account:
        """Give an account another role, also in the sessions that it has; raises `NotFound`."""
        ...

    def set_password(self, workspace: str, name: str, password: str) -> Account:
        """Give an account another password, and end its sessions; raises `NotFound`."""
        ...


class SecondFactors(Protocol):
    """Second factors of accounts."""

    def reset(self, workspace: str, name: str) -> Account:
        """Take the second factor from an account whose owner has lost it; raises `NotFound`."""
        ...


class PasswordLinks(Protocol):
    """Links with which somebody sets the password of an account."""

    def make(self, workspace: str, name: str) -> tuple[Account, str]:
        """The secret of a link that is good once; raises `NotFound`, and `Conflict` for who signs in through a
        provider."""
        ...
