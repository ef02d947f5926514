"""Ports to the web: where the world reaches this server, what its links say, and what is fetched from elsewhere."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Signed(NamedTuple):
    """What a token says."""

    workspace: str
    values: tuple[str | int, ...] = ()


class Signer(Protocol):
    """Signs what a link must name and nobody may make up or read: a recipient and a topic, a mail, an address."""

    def sign(self, purpose: str, workspace: str, *values: str | int) -> str:
        """An opaque token for URLs, the same for equal values. It never expires."""
        ...

    def read(self, purpose: str, token: str) -> Signed | None:
        """What was signed for this purpose; None for whatever this store has not signed."""
        ...

    def rotate(self) -> int:
        """Sign with a new key from now on; tokens of earlier keys stay valid. Answers how many keys there are."""
        ...


class PublicAddress(Protocol):
    """Where the world reaches this server."""

    @property
    def is_local(self) -> bool:
        """Whether nobody has set `public_url`, so that links lead to this machine at best."""
        ...

    def url(self, path: str) -> str:
        """The link to a path that begins with a slash. Raises `InvalidSetting` where the address is unknown."""
        ...


class Web(Protocol):
    """Fetches what is at an address of the internet. Whoever asks has checked that the address may be asked."""

    def get(self, url: str, bytes_max: int) -> bytes:
        """The body at an address, at most so long; redirects are not followed. Raises `Unavailable`."""
        ...

    def texts(self, name: str) -> list[str]:
        """What DNS has of a name as texts (TXT); none where there is no such name. Raises `Unavailable`."""
        ...
