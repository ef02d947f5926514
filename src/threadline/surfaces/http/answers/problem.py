"""Errors as RFC 9457 problem documents: the same shape from every address, whatever went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from threadline.kernel.errors import (
    InvalidValue,
    LimitExceeded,
    ThreadlineError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
UNAVAILABLE_RETRY_SECONDS = 1
"""When a client that was told 503 may come again: by then a commit or two has passed."""


class Internal(ThreadlineError):
    """A fault of the server; its log tells more."""

    code, is_shown = "internal", True


class MethodNotAllowed(InvalidValue):
    """This address exists, but not for this method; the header Allow names those it takes."""

    code, status = "method_not_allowed", 405

    def __init__(self, allowed: str) -> None:
        super().__init__(f"this address takes {allowed}")
        self.allowed = allowed


class UnsupportedEncoding(InvalidValue):
    """The body is compressed in a way that is not read here; send it plain or with gzip."""

    code, status = "unsupported_encoding", 415


class UnsupportedFormat(InvalidValue):
    """The events come in a format that is not read here; send JSON."""

    code, status = "unsupported_format", 415


class HeadTooLarge(LimitExceeded):
    """The head of a request, its address and headers, is larger than the server takes; the connection is closed."""

    code, status = "head_too_large", 431


class HeadTooSlow(InvalidValue):
    """The head of a request did not come in time; the connection is closed."""

    code, status = "head_too_slow", 408


class BodyTooSlow(InvalidValue):
    """The body of a request did not come in time; the connection is closed."""

    code, status = "body_too_slow", 408


class MalformedRequest(InvalidValue):
    """What came is no request of HTTP/1.1; the connection is closed."""

    code = "malformed_request"


class NotInstalled(ThreadlineError):
    """This server lacks the library for it; its operator can install the extra that the hint names."""

    code, status, is_shown = "not_installed", 501, True


class NotNow(Unavailable):
    """The server cannot do this now; nothing was half written, and the same request may succeed later."""

    is_shown = True


class RateLimited(TooManyRequests):
    """A rate limit is used up; nothing of the request was recorded."""

    def __init__(self, message: str, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Problem(msgspec.Struct, omit_defaults=True):
    """An error as RFC 9457 tells it; ``code`` is stable and machine-readable."""

    type: Annotated[
        str, Meta(description="Where this kind of error is explained.", extra_json_schema={"format": "uri"})
    ]
    title: str
    status: int
    code: str
    detail: str = ""
    instance: str = ""
    """The path that was asked for."""
    hint: str = ""
    """What to do about it."""
    param: Annotated[str, Meta(description="The parameter that is at fault, where it is one.")] = ""
    message: str = ""
    """`detail` once more: Segment's and RudderStack's clients look for it here, and retry for minutes without it."""


def problem(error: ThreadlineError, instance: str, server: str) -> Response:
    """The answer that tells an error; of one that is inside only of which kind it is. ``server`` is the address under
    which it was asked for."""
    title, text = title_of(error), text_of(error)
    body = Problem(
        type=f"{server}/docs#error-{error.code}",
        title=title,
        status=error.status,
        code=error.code,
        detail=text,
        instance=instance,
        hint="" if error.is_inside else error.hint,
        param=error.param,
        message=text,
    )
    return Response(msgspec.json.encode(body), error.status, headers_of(error), MEDIA_TYPE)


def title_of(error: ThreadlineError) -> str:
    """Which kind of error it is, as a sentence."""
    return (type(error).__doc__ or error.code).split(";")[0].split(". ")[0].rstrip(".")


def text_of(error: ThreadlineError) -> str:
    """What clients are shown of an error."""
    return f"{title_of(error)}; the server's log tells more" if error.is_inside else str(error)


def server_of(request: Request) -> str:
    """The address under which the server was asked, as the client wrote it."""
    return f"{scheme_of(request)}://{request.base_url.netloc}"


def scheme_of(request: Request) -> str:
    """Whether the client came by http or https, to us or to a proxy before us that ends TLS. Whoever makes it up
    misleads nobody but themselves."""
    return forwarded_scheme(request.headers.get("x-forwarded-proto", ""), request.url.scheme)


def forwarded_scheme(forwarded: str, otherwise: str) -> str:
    """The scheme that a header `X-Forwarded-Proto` names, the first proxy's; another one where it names none."""
    scheme = forwarded.partition(",")[0].strip().lower()
    return scheme if scheme in ("http", "https") else otherwise


def unexpected() -> Internal:
    """What clients are shown of a fault of ours: nothing of what is inside."""
    return Internal("something went wrong on the server; its log tells more")


def headers_of(error: ThreadlineError) -> Mapping[str, str]:
    """The headers that belong to an error, such as when to come again."""
    headers: dict[str, Any] = {}
    if isinstance(error, RateLimited):
        # Segment's clients read the second, all others the first; both in seconds.
        headers["retry-after"] = headers["x-ratelimit-reset"] = str(error.retry_seconds)
    elif isinstance(error, Unavailable):
        headers["retry-after"] = str(UNAVAILABLE_RETRY_SECONDS)
    elif isinstance(error, Unauthorized):
        headers["www-authenticate"] = 'Bearer realm="threadline"'
    elif isinstance(error, MethodNotAllowed):
        headers["allow"] = error.allowed
    return headers
