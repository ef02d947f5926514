"""Answers that callers may keep: ETag, If-None-Match and 304 (RFC 9110, sections 8.8.3, 13.1.2 and 15.4.5)."""

from __future__ import annotations

import hashlib
import re

from starlette.requests import Request
from starlette.responses import Response

REVALIDATED = "private, no-cache"
"""A browser may keep the answer, a proxy may not, and whoever keeps it asks each time if it still holds."""

_TAG = re.compile(r'(?:W/)?("[!#-~\x80-\xff]*")')


def revalidated(request: Request, body: bytes, status: int, headers: dict[str, str], media_type: str) -> Response:
    """The answer with its ETag, or 304 if the caller has it.

    The tag is a hash of the answer: whatever the answer depends on, it is another one if and only if the answer is.
    """
    tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {**headers, "cache-control": REVALIDATED, "etag": tag, "vary": "Authorization, Accept"}
    if request.method in ("GET", "HEAD") and _is_known(request.headers.getlist("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, media_type)


def _is_known(given: list[str], tag: str) -> bool:
    return any(value.strip() == "*" or tag in _TAG.findall(value) for value in given)
