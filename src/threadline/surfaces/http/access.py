"""Who is asking: the credential in a request's headers, query or body, and whether it is enough."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from starlette.requests import Request

from threadline.engine.credentials import Credential, Credentials
from threadline.kernel.errors import Forbidden, Unauthorized
from threadline.kernel.operation import Operation


class Access:
    """Looks credentials up. The first usable one in a request decides."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def sender(self, request: Request, in_body: str = "") -> Credential | None:
        """The credential that lets a request record: a write key, or a token with the scope write."""
        for secret in (*_secrets(request), in_body):
            found = self._credentials.find(secret) if secret else None
            if found is not None and found.records:
                return found
        return None

    def reader(self, request: Request, operation: Operation) -> Credential:
        """The token that lets a request ask for an operation. Raises `Unauthorized` or `Forbidden`."""
        return self.token(request, operation.scope)

    def token(self, request: Request, scope: str) -> Credential:
        """The token of a request, if it holds a scope."""
        for secret in _secrets(request):
            found = self._credentials.find(secret)
            if found is None:
                continue
            if found.kind == "write_key":
                raise Forbidden(
                    "a write key only records; ask with a token", hint="threadline keys create --token NAME"
                )
            if not found.allows(scope):
                raise Forbidden(f"this token lacks the scope {scope!r}; it has {', '.join(found.scopes)}")
            return found
        raise Unauthorized("send `Authorization: Bearer <token>`", hint="threadline keys create --token NAME makes one")


def no_sender() -> Unauthorized:
    """The refusal of a request that may not record."""
    return Unauthorized(
        "send a write key: as the user of Basic authorization, as a Bearer token, or as `writeKey` in the body",
        hint="threadline keys create NAME makes one",
    )


def _secrets(request: Request) -> Iterator[str]:
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    scheme, rest = scheme.lower(), rest.strip()
    if scheme == "bearer" and rest:
        yield rest
    elif scheme == "basic":
        yield from filter(None, _basic(rest))
    # Webhook senders that can be given nothing but an address put it there (CloudEvents webhooks, section 3).
    if b"access_token=" in request.scope["query_string"]:
        yield from filter(None, request.query_params.getlist("access_token"))


def _basic(text: str) -> tuple[str, ...]:
    try:
        user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ()
    return (user, password)
