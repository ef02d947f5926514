"""OpenID Connect: whom a provider names, by the authorization code flow with PKCE, state and nonce.

Nothing that comes back is believed unchecked: the state is that of this browser, the issuer the one that was asked, the
code is exchanged with the verifier that only this server has, and the ID token is signed by the provider's keys for
this client, in time, with the nonce of this sign-in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from threadline.kernel.errors import Forbidden, InvalidSetting, Unauthorized
from threadline.kernel.lists import comma_separated
from threadline.kernel.roles import ROLES, Role
from threadline.kernel.time import Clock
from threadline.outgoing.fetching import answered, fetched
from threadline.settings import Settings
from threadline.surfaces.http.answers.problem import NotNow
from threadline.surfaces.http.callers.jwt import TokenChecks
from threadline.surfaces.http.callers.jwt_keys import AGAIN_SECONDS, KeyFile, aside
from threadline.surfaces.http.callers.provider import Begun, Named

DISCOVERY = "/.well-known/openid-configuration"
SECONDS_MAX = 5
BYTES_MAX = 1_000_000
METADATA_SECONDS = 3_600.0
KEYS_SECONDS = 300.0
CODE_LENGTH_MAX = 4_096
EVERYBODY = "*"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SHOWN_MAX = 200


class _Metadata(NamedTuple):
    authorize: str
    token: str
    userinfo: str
    by_post: bool
    """Whether it takes a client's secret in the form alone."""
    says_issuer: bool
    """Whether it promises to name itself when it sends a browser back (RFC 9207)."""
    checks: TokenChecks


Load = Callable[[str], bytes]
Ask = Callable[[str, Mapping[str, str], bytes | None], tuple[int, bytes]]


def _load(url: str) -> bytes:
    return fetched(url, "application/json", SECONDS_MAX, BYTES_MAX)


def _ask(url: str, headers: Mapping[str, str], form: bytes | None) -> tuple[int, bytes]:
    return answered(url, {"accept": "application/json", **headers}, form, SECONDS_MAX, BYTES_MAX)


class OidcProvider:
    """The provider of the settings ``oidc_*``. Lives on the server's event loop. Raises `InvalidSetting`."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        load: Load = _load,
        ask: Ask = _ask,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._issuer = settings.oidc_issuer
        self._clock = clock
        self._load = load
        self._ask = ask
        self._seconds = seconds
        self._roles = _roles(settings.oidc_roles)
        self._metadata: _Metadata | None = None
        self._looked_at = -METADATA_SECONDS
        _refuse_unusable(settings)

    async def begin(self, back: str) -> tuple[str, Begun]:
        """Where to send a browser, and what to compare with when it comes back to the address ``back``."""
        metadata = await self._discovered()
        begun = Begun(*(secrets.token_urlsafe(32) for _ in Begun._fields))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": back,
            "scope": self._settings.oidc_scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{metadata.authorize}{'&' if '?' in metadata.authorize else '?'}{urlencode(query)}", begun

    async def finish(self, begun: Begun, query: Mapping[str, str], back: str) -> Named:
        """Whom the provider names, by what the browser has brought back. Raises `Unauthorized`, `Forbidden`, and
        `Unavailable` where the provider cannot be reached."""
        metadata = await self._discovered()
        if not hmac.compare_digest(query.get("state", "").encode("utf-8", "replace"), begun.state.encode()):
            raise Unauthorized("this sign-in did not begin in this browser, or another one began since; begin again")
        issuer = query.get("iss")
        if issuer != self._issuer and (issuer is not None or metadata.says_issuer):
            raise Unauthorized("the answer is of another provider than the one that was asked; begin again")
        if "error" in query:
            reason = " ".join(query[name] for name in ("error", "error_description") if query.get(name))
            raise Unauthorized(f"the provider did not sign you in: {reason[:_SHOWN_MAX]}")
        code = query.get("code", "")
        if not 1 <= len(code) <= CODE_LENGTH_MAX:
            raise Unauthorized("the provider sent no code; begin again")
        tokens = await self._exchanged(metadata, code, begun.verifier, back)
        claims = await metadata.checks.claims(_text(tokens.get("id_token")))
        self._refuse_foreign(claims, begun.nonce)
        missing = {self._settings.oidc_groups_claim, self._settings.oidc_name_claim} - claims.keys()
        if missing and metadata.userinfo and _text(tokens.get("access_token")):
            claims = {**await self._userinfo(metadata, _text(tokens["access_token"]), claims["sub"]), **claims}
        return self._named(claims)

    async def _discovered(self) -> _Metadata:
        """What the provider publishes about itself, an hour old at most."""
        age = self._seconds() - self._looked_at
        if self._metadata is None or age >= METADATA_SECONDS:
            try:
                document = _object(await aside(partial(self._load, self._issuer.rstrip("/") + DISCOVERY)))
                self._metadata = self._read(document)
                self._looked_at = self._seconds()
            except (OSError, ValueError, RecursionError) as error:
                if self._metadata is None:
                    raise NotNow(f"the identity provider cannot be asked now: {str(error)[:_SHOWN_MAX]}") from None
                # What it was stays good for a while: a provider that stumbles must not lock everybody out.
                self._looked_at = self._seconds() - METADATA_SECONDS + AGAIN_SECONDS
        return self._metadata

    def _read(self, document: Mapping[str, Any]) -> _Metadata:
        if document.get("issuer") != self._issuer:
            raise ValueError(f"it calls itself {str(document.get('issuer'))[:_SHOWN_MAX]!r}, not as oidc_issuer says")
        addresses = {
            name: _text(document.get(name)) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        }
        userinfo = _text(document.get("userinfo_endpoint"))
        for name, address in {**addresses, **({"userinfo_endpoint": userinfo} if userinfo else {})}.items():
            if not _is_safe(address):
                raise ValueError(f"its {name} is no https address")
        file = KeyFile("oidc_issuer", addresses["jwks_uri"], KEYS_SECONDS, self._load, self._seconds)
        claims = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._settings.oidc_client_id},
            "exp": {"essential": True},
            "iat": {"essential": True},
            "sub": {"essential": True},
            "nonce": {"essential": True},
        }
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return _Metadata(
            addresses["authorization_endpoint"],
            addresses["token_endpoint"],
            userinfo,
            "client_secret_basic" not in methods and "client_secret_post" in methods,
            document.get("authorization_response_iss_parameter_supported") is True,
            TokenChecks(self._clock, self._settings.oidc_leeway_seconds, claims, file=file),
        )

    async def _exchanged(self, metadata: _Metadata, code: str, verifier: str, back: str) -> Mapping[str, Any]:
        id, secret = self._settings.oidc_client_id, self._settings.oidc_client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "code_verifier": verifier,
            "client_id": id,
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if secret and metadata.by_post:
            form["client_secret"] = secret
        elif secret:
            pair = f"{quote(id, safe='')}:{quote(secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return await self._asked(metadata.token, headers, urlencode(form).encode(), "the code")

    async def _userinfo(self, metadata: _Metadata, access_token: str, subject: str) -> Mapping[str, Any]:
        headers = {"authorization": f"Bearer {access_token}"}
        claims = await self._asked(metadata.userinfo, headers, None, "the question who you are")
        if claims.get("sub") != subject:
            raise Unauthorized("the provider speaks of two different people; begin again")
        return claims

    async def _asked(self, url: str, headers: Mapping[str, str], form: bytes | None, what: str) -> Mapping[str, Any]:
        status = 0

        def ask() -> bytes:
            nonlocal status
            status, body = self._ask(url, headers, form)
            return body

        try:
            answer = _object(await aside(ask))
        except (OSError, ValueError, RecursionError) as error:
            if status < 400 or status >= 500:
                raise NotNow(f"the identity provider cannot be asked now: {str(error)[:_SHOWN_MAX]}") from None
            answer = {}
        if status != 200:
            reason = _text(answer.get("error"))[:_SHOWN_MAX] or f"status {status}"
            raise Unauthorized(f"the provider refused {what}: {reason}; begin again")
        return answer

    def _refuse_foreign(self, claims: Mapping[str, Any], nonce: str) -> None:
        if not hmac.compare_digest(_text(claims.get("nonce")).encode("utf-8", "replace"), nonce.encode()):
            raise Unauthorized("the token is of another sign-in; begin again")
        audience, party = claims.get("aud"), claims.get("azp")
        is_shared = isinstance(audience, list) and len(audience) > 1
        if (party is not None or is_shared) and party != self._settings.oidc_client_id:
            raise Unauthorized("the token was made for another client")

    def _named(self, claims: Mapping[str, Any]) -> Named:
        name, claim = _text(claims.get(self._settings.oidc_name_claim)), self._settings.oidc_name_claim
        if not name:
            raise Forbidden(f"the provider says nothing in {claim!r}, after which accounts are named here")
        if claim == "email" and claims.get("email_verified") is False:
            raise Forbidden("the provider has not verified your address")
        groups = claims.get(self._settings.oidc_groups_claim)
        in_groups = [_text(group) for group in (groups if isinstance(groups, list) else [groups])]
        roles = {role for group, role in self._roles if group in in_groups or group == EVERYBODY}
        role = max(roles, key=ROLES.index) if roles else None
        return Named(f"{self._issuer} {_text(claims['sub'])}", name, role)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(body: bytes) -> Mapping[str, Any]:
    content = msgspec.json.decode(body)
    if not isinstance(content, dict):
        raise ValueError("the answer is no JSON object")
    return content


def _is_safe(url: str) -> bool:
    """Whether nobody on the way can read or change what goes there."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def _refuse_unusable(settings: Settings) -> None:
    if not _is_safe(settings.oidc_issuer):
        raise InvalidSetting("oidc_issuer: give the https address of the provider, such as https://id.example.com")
    if not settings.oidc_client_id:
        raise InvalidSetting("oidc_client_id: the provider has to know this server by a name; register it there")
    if "openid" not in settings.oidc_scopes.split():
        raise InvalidSetting("oidc_scopes: `openid` must be one of them")


def _roles(text: str) -> list[tuple[str, Role]]:
    roles: list[tuple[str, Role]] = []
    for pair in comma_separated(text):
        group, _, given = (part.strip() for part in pair.rpartition("="))
        role = next((role for role in ROLES if role == given), None)
        if not group or role is None:
            hint = f"write group=role with commas between them; roles are {', '.join(ROLES)}"
            raise InvalidSetting(f"oidc_roles: {pair[:80]!r} gives no group a role", hint=hint)
        roles.append((group, role))
    if not roles:
        raise InvalidSetting("oidc_roles: without a group that has a role nobody could sign in", hint="staff=viewer")
    return roles
