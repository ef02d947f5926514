"""Fetches a document that the settings name, within limits of time and size."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows where a document has moved to, but never from TLS to where others could change it."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """None, or the request for the new address. Raises `OSError`."""
        if req.type == "https" and not newurl.lower().startswith("https:"):
            fp.close()
            raise OSError(f"it redirects to an address without TLS: {newurl[:200]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(Redirects)
"""The standard library's, because it goes through the proxies that the environment names."""


def fetched(url: str, accept: str, seconds_max: float, bytes_max: int) -> bytes:
    """The content at an http address. Raises `OSError`."""
    request = urllib.request.Request(url, headers={"accept": accept})
    try:
        with _OPENER.open(request, timeout=seconds_max) as answer:
            return content(answer.read1, seconds_max, bytes_max)
    except HTTPException as error:
        raise OSError(f"the answer is broken: {error!r}") from None


class _Nowhere(urllib.request.HTTPRedirectHandler):
    """Follows nothing: what goes with a secret goes where it was sent."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Raises `OSError`."""
        fp.close()
        raise OSError("it redirects, which an address that is sent secrets must not")


_STRICT = urllib.request.build_opener(_Nowhere)


def answered(
    url: str, headers: Mapping[str, str], form: bytes | None, seconds_max: float, bytes_max: int
) -> tuple[int, bytes]:
    """Status and content of the answer to a request with secrets: a POST of a form, or a GET. Raises `OSError`."""
    request = urllib.request.Request(url, form, dict(headers))
    try:
        with _STRICT.open(request, timeout=seconds_max) as answer:
            return answer.status, content(answer.read1, seconds_max, bytes_max)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, content(error.read, seconds_max, bytes_max)
    except HTTPException as error:
        raise OSError(f"the answer is broken: {error!r}") from None


def content(
    read: Callable[[int], bytes], seconds_max: float, bytes_max: int, seconds: Callable[[], float] = time.monotonic
) -> bytes:
    """All that comes, within limits of time and size. Raises `OSError` for what goes beyond one.

    The time-out of a socket is one for each piece: an answer that drips would never end by it.
    """
    until, body = seconds() + seconds_max, b""
    while piece := read(bytes_max + 1 - len(body)):
        body += piece
        if len(body) > bytes_max:
            raise OSError(f"the answer has more than {bytes_max} bytes")
        if seconds() > until:
            raise OSError(f"the answer takes longer than {seconds_max} s")
    return body
