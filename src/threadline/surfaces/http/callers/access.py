"""Who is asking: the credential in a request's headers, query or body, and whether it is enough."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from concurrent.futures import Executor

from starlette.requests import Request

from threadline.engine.credentials import Credential, Credentials
from threadline.kernel.errors import Forbidden, Unauthorized

TOKEN_HINT = "`threadline keys create --kind token --name NAME --scopes read` makes one."
SECRETS_MAX = 8
"""Secrets of one request that are looked up; each may cost a read of the store."""


class Access:
    """Looks credentials up. The first usable one in a request decides.

    What was found a moment ago is answered at once, without another thread; what must be read is read in ``threads``,
    because while the event loop waits for a store, nobody is served.
    """

    def __init__(self, credentials: Credentials, threads: Executor) -> None:
        self._credentials = credentials
        self._threads = threads

    async def sender(self, secrets: Sequence[str]) -> Credential | None:
        """The credential that lets a request record: a write key, or a token with the scope write."""
        for secret in secrets:
            credential = await self._find(secret)
            if credential is not None and credential.records:
                return credential
        return None

    async def sender_in_body(self, secret: str) -> Credential | None:
        """The same for what stands in the body, which may be a write key only: a body is kept and shown where a token
        has no business."""
        credential = await self._find(secret) if secret else None
        return credential if credential is not None and credential.kind == "write_key" else None

    async def no_sender(self, secrets: Sequence[str]) -> Unauthorized | Forbidden:
        """The refusal of a request with no credential that lets it record."""
        for secret in secrets:
            if (credential := await self._find(secret)) is not None:
                return _lacks("write", credential)
        return Unauthorized(
            "send a write key: as the user of Basic authorization, as a Bearer token, or as `writeKey` in the body",
            hint="threadline keys create --name NAME makes one",
        )

    async def token(self, request: Request, scope: str | None) -> Credential:
        """The token of a request, if it holds a scope; None: any will do. Raises `Unauthorized` or `Forbidden`."""
        for secret in secrets_of(request):
            credential = await self._find(secret)
            if credential is None:
                continue
            if credential.kind == "write_key":
                raise Forbidden(
                    "a write key only records; ask with a token",
                    hint=TOKEN_HINT,
                )
            if scope is not None and not credential.allows(scope):
                raise _lacks(scope, credential)
            return credential
        raise Unauthorized(
            "send `Authorization: Bearer <token>`",
            hint=TOKEN_HINT,
        )

    async def _find(self, secret: str) -> Credential | None:
        known = self._credentials.recall(secret)
        if known is not None:
            return known.credential
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._credentials.find, secret)


def _lacks(scope: str, token: Credential) -> Forbidden:
    return Forbidden(f"this token lacks the scope {scope!r}; it has {', '.join(token.scopes)}")


def secrets_of(request: Request) -> tuple[str, ...]:
    """What a request offers as its credential, in its headers and its query; some of it may open nothing."""
    scheme, rest = authorization(request)
    offered: list[str] = []
    if scheme == "bearer":
        offered.append(rest)
    elif scheme == "basic":
        offered += _basic(rest)
    # Webhook senders that can be given nothing but an address put it there (CloudEvents webhooks, section 3), and what
    # a browser sends as a beacon has no headers of its own.
    for name in ("access_token", "writeKey"):
        if f"{name}=".encode() in request.scope["query_string"]:
            offered += request.query_params.getlist(name)
    return tuple(filter(None, offered))[:SECRETS_MAX]


def authorization(request: Request) -> tuple[str, str]:
    """The scheme and the credential of the header `Authorization`, empty without one. Raises `Unauthorized` for two.

    A proxy in front may have looked at the other one.
    """
    given = request.headers.getlist("authorization")
    if len(given) > 1:
        raise Unauthorized("send the header `Authorization` once")
    scheme, _, rest = given[0].partition(" ") if given else ("", "", "")
    return scheme.lower(), rest.strip()


def _basic(text: str) -> tuple[str, ...]:
    try:
        user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ()
    return (user, password)
