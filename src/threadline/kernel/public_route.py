"""A public route: an address of its own form, such as a page behind a link in a mail, or another program's protocol.

An unsubscribe link, a preference centre, a tracking pixel, a provider's callback or webhook receiver: whatever no API
token protects, or whose form another program decides. What callers of the API ask is an operation instead.

    >>> from threadline.kernel.public_route import PublicAnswer, PublicRoute
    >>> hello = PublicRoute(
    ...     name="hello", summary="Greet whoever asks.", method="GET", path="/hello/{name}",
    ...     answer=lambda engine, request: PublicAnswer(request.path["name"].encode(), "text/plain"),
    ... )
    >>> hello.per_minute
    600

Options: ``body_bytes_max``, ``per_minute`` and ``same_per_minute`` (rate limits by network address), ``scope`` (asks
for a token), ``records`` (that it was opened is what happened). GET and HEAD only show; what changes anything takes
POST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from threadline.kernel.ports import Ports

PUBLIC_BODY_BYTES_MAX = 256 * 1024
"""The default bound of a body: anybody may send one, and it is read into memory."""
PUBLIC_PER_MINUTE = 600
"""The default bound of requests from one network address (IPv6: its /64), all at once or over a minute."""


@dataclass(frozen=True, slots=True)
class PublicRequest:
    """What anybody may have sent. Nothing of it is trusted: the route checks a token or a signature itself."""

    path: Mapping[str, str]
    """The path parameters by name."""
    query: Mapping[str, str]
    """Of a name that is given more than once, the last value."""
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    now: int
    """The instant to read at."""
    method: str = "GET"
    """HEAD where only the headers are asked for, of a route for GET."""
    workspace: str = "default"
    """That of the token, where the route has a scope."""


@dataclass(frozen=True, slots=True)
class PublicAnswer:
    """A page or a plain answer. It is never cached."""

    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] | None = None
    """Further headers; they win over those that every public answer has, such as the Content-Security-Policy."""


@dataclass(frozen=True, slots=True)
class PublicRoute:
    """Declared like an operation and found by discovery; served over HTTP only.

    GET and HEAD only show: programs that scan mail follow every link. What changes anything takes POST.
    """

    name: str
    summary: str
    """One line, imperative, ends with a full stop."""
    method: Literal["GET", "POST"]
    path: str
    """Names of path parameters stand in braces."""
    answer: Callable[[Ports, PublicRequest], PublicAnswer]
    """May block. Raises the errors of `threadline.kernel.errors`, which become problems as for an operation."""
    body_bytes_max: int = PUBLIC_BODY_BYTES_MAX
    per_minute: int = PUBLIC_PER_MINUTE
    """Requests that are taken from one network address. Of more where one address stands for many people, as the image
    proxies of mailbox providers do."""
    same_per_minute: int = 0
    """Of these for the same path, such as one link in one mail; 0: as many as for all."""
    scope: Literal["", "read", "write", "admin"] = ""
    """What a token must hold; empty: anybody may ask, and the route checks a token or a signature itself."""
    records: bool = False
    """For GET: that it was asked for is itself what happened, such as a click. It changes nothing else."""
