"""Who a user is by their JSON Web Token: signature, expiry, issuer, audience; nothing in it is believed unchecked."""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from joserfc import jwk, jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError

from threadline.kernel.errors import InvalidSetting, Unauthorized
from threadline.kernel.time import SECOND, Clock
from threadline.settings import Settings
from threadline.surfaces.http.callers.jwt_keys import KeyFile, fetch

TOKEN_LENGTH_MAX = 16_384
SECRET_BYTES = 32
"""What RFC 7518, section 3.2, asks of a secret for HS256."""
RSA_BITS = 2_048
"""What RFC 7518, section 3.3, asks of a key for RS256."""

_KEY_OF = {"HS256": "oct", "RS256": "RSA", "ES256": "EC"}
"""The algorithms that are taken, each with the one type of key that it may be checked with."""
_CURVE = "P-256"

log = logging.getLogger("threadline.http")

Key = jwk.OctKey | jwk.RSAKey | jwk.ECKey


class User(NamedTuple):
    """Whom a token names."""

    id: str
    email: str = ""
    """Only if the issuer says that it was verified."""


class TokenChecks:
    """Checks signature and claims of tokens.

    A secret checks HS256 and nothing else, the keys of the issuer RS256 and ES256 and nothing else: a public key is
    never taken for a secret, whatever the token says of itself.
    """

    def __init__(
        self,
        clock: Clock,
        leeway_seconds: int,
        claims: Mapping[str, Any],
        secret: jwk.OctKey | None = None,
        file: KeyFile | None = None,
    ) -> None:
        self._secret = secret
        self._file = file
        self._registry = jws.JWSRegistry(strict_check_header=False)
        # The header may hold a chain of certificates, and the token as a whole has a limit already.
        self._registry.max_header_length = TOKEN_LENGTH_MAX
        self._claims = jwt.JWTClaimsRegistry(now=lambda: clock() // SECOND, leeway=leeway_seconds, **claims)

    async def claims(self, token: str) -> dict[str, Any]:
        """What a token says. Raises `Unauthorized`, and `Unavailable` if the keys cannot be had."""
        algorithm, kid = _header(token)
        known = await self._keys(algorithm, kid)
        if not known:
            named = "" if kid is None or algorithm == "HS256" else f" with the key id {kid[:64]!r}"
            raise Unauthorized(f"no key of this server fits a token of algorithm {algorithm[:32]!r}{named}")
        return self._checked(token, algorithm, known)

    async def _keys(self, algorithm: str, kid: str | None) -> list[Key]:
        if algorithm == "HS256":
            return [] if self._secret is None else [self._secret]
        if self._file is None or algorithm not in _KEY_OF:
            return []
        fitting = _fitting(await self._file.keys(), algorithm, kid)
        # A kid that is not known may be of a key that is new: keys rotate before anybody is told.
        return fitting or _fitting(await self._file.newer_keys(), algorithm, kid)

    def _checked(self, token: str, algorithm: str, keys: Iterable[Key]) -> dict[str, Any]:
        problem: Exception | None = None
        for key in keys:
            try:
                claims = jwt.decode(token, key, [algorithm], self._registry).claims
            except (JoseError, ValueError, TypeError, RecursionError) as error:
                problem = error
                continue
            try:
                self._claims.validate(claims)
            except ExpiredTokenError:
                raise Unauthorized("the token has expired") from None
            except (JoseError, ValueError, TypeError) as error:
                # Its signature is good: that another key does not fit is not what is wrong with it.
                raise Unauthorized(f"the token is not valid: {error}") from None
            return claims
        raise Unauthorized(f"the token is not valid: {problem}") from None


class WebTokens:
    """Checks tokens by the settings ``jwt_*``. Raises `InvalidSetting` for a secret that is none."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        load: Callable[[str], bytes] = fetch,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._user_claim = settings.jwt_user_claim
        secret, file = _secret(settings.jwt_secret), None
        if settings.jwt_keys:
            file = KeyFile("jwt_keys", settings.jwt_keys, settings.jwt_keys_cache_seconds, load, seconds)
        claims: dict[str, Any] = {"exp": {"essential": True}, self._user_claim: {"essential": True}}
        if settings.jwt_issuer:
            claims["iss"] = {"essential": True, "value": settings.jwt_issuer}
        if settings.jwt_audience:
            claims["aud"] = {"essential": True, "value": settings.jwt_audience}
        self._checks = TokenChecks(clock, settings.jwt_leeway_seconds, claims, secret, file)

    async def user(self, token: str) -> User:
        """The user that a token names. Raises `Unauthorized`, and `Unavailable` if the keys cannot be had."""
        return self._user(await self._checks.claims(token))

    def _user(self, claims: dict[str, Any]) -> User:
        id = claims[self._user_claim]
        if type(id) is int:
            id = str(id)
        if type(id) is not str or not id.strip():
            raise Unauthorized(f"the token's claim {self._user_claim!r} names nobody")
        email = claims.get("email")
        verified = claims.get("email_verified") is True
        return User(id.strip(), email if verified and type(email) is str else "")


def _secret(text: str) -> jwk.OctKey | None:
    if not text:
        return None
    if (size := len(text.encode())) < SECRET_BYTES:
        raise InvalidSetting(
            f"jwt_secret has {size} bytes and needs {SECRET_BYTES}: who sees a token could guess a shorter one",
            hint="make one, and give it to the issuer too: python -c 'import secrets; print(secrets.token_hex(32))'",
        )
    try:
        return jwk.OctKey.import_key(text)
    except (JoseError, ValueError) as error:
        raise InvalidSetting(f"jwt_secret: {error}", hint="public keys belong in `jwt_keys`") from None


def _header(token: str) -> tuple[str, str | None]:
    """Algorithm and key id as the token tells them: only good for choosing a key that then has to fit."""
    if len(token) > TOKEN_LENGTH_MAX:
        raise Unauthorized(f"the token has more than {TOKEN_LENGTH_MAX} characters")
    if token.count(".") != 2:
        raise Unauthorized("send `Authorization: Bearer <JSON Web Token>`")
    first = token.partition(".")[0]
    try:
        header = msgspec.json.decode(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise Unauthorized("the token's header is not JSON") from None
    algorithm = header.get("alg") if type(header) is dict else None
    kid = header.get("kid") if type(header) is dict else None
    if type(algorithm) is not str:
        raise Unauthorized("the token's header names no algorithm")
    if not isinstance(kid, str | None):
        raise Unauthorized("the token's header has a key id that is not text")
    return algorithm, kid


def _fitting(published: Iterable[dict[str, Any]], algorithm: str, kid: str | None) -> list[Key]:
    """The keys that a token of this algorithm may be checked with, by what the issuer says of each."""
    keys: list[Key] = []
    for data in published:
        if data.get("kty") != _KEY_OF[algorithm] or (kid is not None and data.get("kid") != kid):
            continue
        if data.get("use", "sig") != "sig" or data.get("alg", algorithm) != algorithm:
            continue
        if algorithm == "ES256" and data.get("crv") != _CURVE:
            continue
        try:
            key = (jwk.RSAKey if algorithm == "RS256" else jwk.ECKey).import_key(data)
        except (JoseError, ValueError, TypeError) as error:
            log.warning("a key that the issuer publishes cannot be read: %s", error)
            continue
        if isinstance(key, jwk.RSAKey) and (bits := key.raw_value.key_size) < RSA_BITS:
            log.warning("a key that the issuer publishes is not taken: it has %d bits, RS256 needs %d", bits, RSA_BITS)
            continue
        keys.append(key)
    return keys
