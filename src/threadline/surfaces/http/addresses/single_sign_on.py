"""Signing in to the console through an OpenID Connect provider: there, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.accounts import Opened
from threadline.engine.engine import Engine
from threadline.kernel.errors import Forbidden, InvalidSetting, ThreadlineError, Unauthorized
from threadline.kernel.extra import from_source
from threadline.kernel.time import MINUTE, SECOND, Clock, is_over
from threadline.settings import Settings
from threadline.surfaces.console.actions import local_address
from threadline.surfaces.http.addresses.sign_in import SignIn
from threadline.surfaces.http.answers.browser import is_secure, redirect
from threadline.surfaces.http.answers.problem import server_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.provider import Begun, Named, Provider

PATH = "/sign-in/provider"
RETURN = f"{PATH}/return"
COOKIE = "threadline_sign_in"
AWAY_LENGTH = 10 * MINUTE
"""How long somebody may take at the provider."""
_PURPOSE = "sign in by provider"
_GIVEN = {"by": "provider"}


class SingleSignOn:
    """Sends browsers to the provider, and takes them in when they come back."""

    def __init__(self, engine: Engine, workspace: str, provider: Provider, sign_in: SignIn) -> None:
        self._engine = engine
        self._workspace = workspace
        self._provider = provider
        self._sign_in = sign_in

    def routes(self) -> Iterator[Route]:
        """The way there, and the address that the provider has to know."""
        yield Route("GET", PATH, self._leave)
        yield Route("GET", RETURN, self._come_back)

    async def _leave(self, request: Request, names: Mapping[str, str]) -> Response:
        next_ = local_address(request.query_params.get("next", ""))
        try:
            address, begun = await self._provider.begin(server_of(request) + RETURN)
        except ThreadlineError as error:
            return self._sign_in.first_page(request, {"next": next_}, error)
        until = self._engine.clock() + AWAY_LENGTH
        sign = partial(self._engine.signer.sign, _PURPOSE, self._workspace, *begun, next_, until)
        response = redirect(address)
        response.set_cookie(
            COOKIE,
            await self._sign_in.look(sign),
            max_age=AWAY_LENGTH // SECOND,
            httponly=True,
            samesite="lax",
            path=PATH,
            secure=is_secure(request),
        )
        return response

    async def _come_back(self, request: Request, names: Mapping[str, str]) -> Response:
        next_ = ""
        try:
            begun, next_ = await self._begun(request)
            named = await self._provider.finish(begun, request.query_params, server_of(request) + RETURN)
            work = partial(self._let_in, named)
            opened = await self._sign_in.attempt(request, work, "account", named.name, _GIVEN)
            response = self._sign_in.let_in(request, opened, next_)
        except ThreadlineError as error:
            response = self._sign_in.first_page(request, {"next": next_}, error)
        # One journey, one cookie: what was brought back once is good for nothing more.
        response.delete_cookie(COOKIE, path=PATH)
        return response

    async def _begun(self, request: Request) -> tuple[Begun, str]:
        cookie = request.cookies.get(COOKIE, "")
        signed = await self._sign_in.look(partial(self._engine.signer.read, _PURPOSE, cookie))
        if signed is None or is_over(int(signed.values[-1]), self._engine.clock(), AWAY_LENGTH):
            raise Unauthorized("this sign-in did not begin in this browser, or it took too long; begin again")
        state, nonce, verifier, next_, _ = map(str, signed.values)
        return Begun(state, nonce, verifier), next_

    def _let_in(self, named: Named) -> Opened:
        accounts = self._engine.provider_accounts
        if named.role is None:
            accounts.end_sessions(named.id, named.name)
            raise Forbidden(
                "the provider knows you, but none of your groups may use this console",
                hint="Whoever runs it names the groups in `oidc_roles`.",
            )
        return accounts.sign_in(self._workspace, named.id, named.name, named.role)


def provider_of(settings: Settings, clock: Clock) -> Provider | None:
    """The provider of the settings, if there is one. Raises `InvalidSetting`, also without the library that checks
    signatures."""
    if not settings.oidc_issuer:
        return None
    try:
        from threadline.surfaces.http.callers.oidc import OidcProvider
    except ImportError as error:
        raise InvalidSetting(
            f"oidc_issuer needs a library that is not there: {error.name}", hint=from_source("oidc")
        ) from None
    return OidcProvider(settings, clock)
