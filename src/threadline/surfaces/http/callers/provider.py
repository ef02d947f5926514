"""What signing in through an identity provider needs of one, whatever library checks its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from threadline.kernel.roles import Role


class Begun(NamedTuple):
    """A sign-in that was sent to the provider: what only this browser and this server know of it."""

    state: str
    nonce: str
    verifier: str


class Named(NamedTuple):
    """Whom the provider names."""

    id: str
    """Issuer and subject: what never changes, and belongs to nobody else."""
    name: str
    role: Role | None
    """What their groups give them here; None: nothing."""


class Provider(Protocol):
    """An identity provider; see `oidc.OidcProvider`."""

    async def begin(self, back: str) -> tuple[str, Begun]:
        """Where to send a browser, and what to compare with when it comes back to the address ``back``."""
        ...

    async def finish(self, begun: Begun, query: Mapping[str, str], back: str) -> Named:
        """Whom the provider names, by what the browser has brought back. Raises `Unauthorized` and `Forbidden`."""
        ...
