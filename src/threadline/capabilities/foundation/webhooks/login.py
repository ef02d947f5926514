"""How calls of a destination are authorised: passwords, tokens and keys, each in an environment variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.declaring import Problems, text
from threadline.kernel.limits import WEBHOOK_URL_LENGTH_MAX

SECRET_WANTED = "an environment variable such as env:CRM_SECRET: secrets stay out of files"
_PATTERN = "env:[A-Za-z_][A-Za-z0-9_]*"
_FITS = text(SECRET_WANTED, _PATTERN)
_PREFIX = "env:"
SECRET_FORM = _FITS.then(lambda secret: secret.removeprefix(_PREFIX))
Secret = Annotated[str, SECRET_FORM]
_PRINTABLE = "[\\x20-\\x7e]*"


def secret_in(value: str) -> str:
    """The environment variable that stands in place of a value as ``env:NAME``; empty: it is no secret."""
    return value.removeprefix(_PREFIX) if value.startswith(_PREFIX) else ""


class Basic(msgspec.Struct, frozen=True, kw_only=True):
    """A user and a password (RFC 7617)."""

    user: Annotated[str, text("a user without a colon", r"[^:\x00-\x1f\x7f]*", least=0, most=200)]
    password: Annotated[Secret, Meta(examples=["env:CRM_PASSWORD"])]


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """An access token by client credentials (RFC 6749, 4.4), fetched when it is needed and kept until it ends."""

    token_url: Annotated[
        str, Meta(max_length=WEBHOOK_URL_LENGTH_MAX, examples=["https://login.example.com/oauth2/token"])
    ]
    client_id: Annotated[str, text(most=500)]
    client_secret: Annotated[Secret, Meta(examples=["env:CRM_CLIENT_SECRET"])]
    scope: Annotated[str, text(least=0, most=1_000)] = ""
    audience: Annotated[str, text(least=0, most=1_000), Meta(description="Some issuers want it.")] = ""
    credentials: Annotated[
        Literal["header", "body"], Meta(description="Where client and secret stand in the request for a token.")
    ] = "header"

    def problems(self, written: object) -> Problems:
        """What is wrong with the address."""
        parts = urlsplit(self.token_url) if self.token_url.startswith(("https://", "http://")) else None
        if parts is None or not parts.hostname or "@" in parts.netloc:
            yield "token_url", "`token_url` must be an address that begins with https://, without a password"


class Hmac(msgspec.Struct, frozen=True, kw_only=True):
    """A signature of the body."""

    secret: Annotated[Secret, Meta(examples=["env:CRM_KEY"], description="The key, as it is.")]
    header: Annotated[str, text("the name of a header", r"[A-Za-z0-9-]{1,100}")] = "X-Signature"
    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: Annotated[
        str, text(pattern=_PRINTABLE, least=0, most=50), Meta(description="Stands before it, such as `sha256=`.")
    ] = ""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """One way to authorise calls."""

    one_of: ClassVar[tuple[str, ...]] = ("basic", "bearer", "oauth", "hmac")

    basic: Basic | None = None
    bearer: Annotated[Secret, Meta(examples=["env:CRM_TOKEN"], description="A token that does not change.")] = ""
    oauth: OAuth | None = None
    hmac: Hmac | None = None

    @property
    def header(self) -> str:
        """The header that it sets."""
        return "Authorization" if self.hmac is None else self.hmac.header

    @property
    def secret_names(self) -> Iterator[str]:
        """The environment variables that it needs."""
        if self.basic is not None:
            yield self.basic.password
        if self.bearer:
            yield self.bearer
        if self.oauth is not None:
            yield self.oauth.client_secret
        if self.hmac is not None:
            yield self.hmac.secret
