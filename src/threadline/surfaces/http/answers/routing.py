"""Finds the handler of a request by the raw path, so that a person's id may hold any character, a slash too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from threadline.kernel.errors import InvalidValue, NotFound
from threadline.surfaces.http.answers.problem import MethodNotAllowed

PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, OPTIONS",
    # Browsers do not count Authorization among what the star allows.
    "access-control-allow-headers": "*, authorization, content-type",
    "access-control-max-age": "86400",
}
"""What a browser asks before it sends to another origin."""

Handler = Callable[[Request, Mapping[str, str]], Awaitable[Response]]


class Route(NamedTuple):
    """One method of one address. Names of path parameters stand in braces."""

    method: str
    path: str
    handler: Handler
    open_to_browsers: bool = False
    """Whether pages of other origins may send here (CORS); only where a public write key is enough."""


class _Address(NamedTuple):
    pattern: tuple[str, ...]
    methods: dict[str, Route]


class Router:
    """All routes, by their segments; literal segments win over parameters."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        addresses: dict[tuple[str, ...], _Address] = {}
        for route in self.routes:
            pattern = tuple(route.path.split("/"))
            address = addresses.setdefault(pattern, _Address(pattern, {}))
            assert route.method not in address.methods, f"two routes for {route.method} {route.path}"
            address.methods[route.method] = route
        self._literal: dict[tuple[str, ...], list[_Address]] = {}
        self._with_names: dict[int, list[_Address]] = {}
        """By how many segments they have."""
        for address in sorted(addresses.values(), key=lambda a: [part.startswith("{") for part in a.pattern]):
            if "{" in "".join(address.pattern):
                self._with_names.setdefault(len(address.pattern), []).append(address)
            else:
                self._literal[address.pattern] = [address]

    def find(self, method: str, raw_path: bytes) -> tuple[Route, dict[str, str]]:
        """The route and its path parameters; HEAD goes where GET goes, OPTIONS to the first route there is.

        Raises `NotFound`, `MethodNotAllowed` and, for what is not UTF-8, `InvalidValue`.
        """
        path = raw_path[:-1] if len(raw_path) > 1 and raw_path.endswith(b"/") else raw_path
        try:
            parts = tuple([unquote_to_bytes(part).decode() for part in path.split(b"/")])
        except UnicodeDecodeError:
            raise InvalidValue("the path is not UTF-8") from None
        wanted = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for address in (*self._literal.get(parts, ()), *self._with_names.get(len(parts), ())):
            names = _match(address.pattern, parts)
            if names is None:
                continue
            if wanted in address.methods:
                return address.methods[wanted], names
            if wanted == "OPTIONS":
                return next(iter(address.methods.values())), names
            allowed.update(address.methods)
        if allowed:
            raise MethodNotAllowed(", ".join(sorted(_with_implied(allowed))))
        raise NotFound("there is nothing at this address", hint="/docs lists every address")

    def methods(self, path: str) -> str:
        """The methods of a route's path, as the header Allow tells them."""
        methods = {route.method for route in self.routes if route.path == path}
        return ", ".join(sorted(_with_implied(methods)))


def _with_implied(methods: set[str]) -> set[str]:
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())


def _match(pattern: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            if not part:
                return None
            names[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return names
