"""The user of a request, whom the JSON Web Token of an application names."""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request

from threadline.kernel.errors import InvalidSetting, InvalidValue, Unauthorized
from threadline.kernel.extra import from_source
from threadline.kernel.time import Clock
from threadline.settings import Settings
from threadline.surfaces.http.callers.access import authorization

USER_LENGTH_MAX = 100
"""Of a user's id here, characters: what the addresses of applications have always taken."""


class NamedUser(Protocol):
    """Whom a web token names."""

    @property
    def id(self) -> str:
        """The user's id."""
        ...

    @property
    def email(self) -> str:
        """A verified e-mail address, or "" if the token tells none."""
        ...


class Tokens(Protocol):
    """What checks web tokens; see `jwt.WebTokens`."""

    async def user(self, token: str) -> NamedUser:
        """The user that a token names. Raises `Unauthorized`."""
        ...


class WebUsers:
    """Finds the user of a request; without settings for web tokens there is none."""

    def __init__(self, tokens: Tokens | None) -> None:
        self._tokens = tokens

    async def user(self, request: Request) -> NamedUser:
        """The user whom the request's token names. Raises `Unauthorized`."""
        if self._tokens is None:
            raise Unauthorized("this server takes no web tokens", hint="set jwt_secret or jwt_keys")
        scheme, token = authorization(request)
        if scheme != "bearer" or not token:
            raise Unauthorized("send `Authorization: Bearer <JSON Web Token>`")
        user = await self._tokens.user(token)
        if len(user.id) > USER_LENGTH_MAX:
            raise InvalidValue(f"the user's id has more than {USER_LENGTH_MAX} characters")
        return user

    def may_name(self, request: Request) -> bool:
        """Whether the request has the form of one with a web token, rather than with a token of this server's own."""
        scheme, token = authorization(request)
        return self._tokens is not None and scheme == "bearer" and token.count(".") == 2


def web_users(settings: Settings, clock: Clock) -> WebUsers:
    """What finds users by these settings. Raises `InvalidSetting` without the library that checks signatures."""
    if not settings.jwt_secret and not settings.jwt_keys:
        return WebUsers(None)
    try:
        from threadline.surfaces.http.callers.jwt import WebTokens
    except ImportError as error:
        raise InvalidSetting(
            f"jwt_secret and jwt_keys need a library that is not there: {error.name}",
            hint=from_source("jwt"),
        ) from None
    return WebUsers(WebTokens(settings, clock))
