"""Who is asking: the credential that a request brings and whether it is enough, and the address that it came from."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import lru_cache
from typing import Any

from starlette.requests import Request

from threadline.engine.credentials import Credential, Credentials
from threadline.kernel.errors import Forbidden, InvalidSetting, Unauthorized
from threadline.kernel.lists import comma_separated

# --- credentials -----------------------------------------------------------------------------------

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
    for given in request.headers.getlist("x-write-key"):  # of Jitsu's clients, which want a key with a colon
        offered += given.split(":", 1)
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


# --- addresses -------------------------------------------------------------------------------------

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

HOPS_MAX = 32
"""Addresses of one X-Forwarded-For that are looked at, from the nearest."""
EVERYBODY = "*"
IPV6_PREFIX = 64
"""One customer of a network is given at least so many addresses, so a limit counts by the prefix."""


class ClientAddress:
    """Finds the client behind proxies. ``trusted`` lists addresses and networks, separated by commas; ``*`` is all.

    Each proxy adds the address that it heard from at the end of X-Forwarded-For, so the list is read from there: the
    first address that is not of a trusted proxy is the client's. What stands before it anybody may have made up.
    Raises `InvalidSetting` for what is neither an address nor a network.
    """

    def __init__(self, trusted: str) -> None:
        names = comma_separated(trusted)
        self._everybody = EVERYBODY in names
        self._networks = tuple(_network(name) for name in names if name != EVERYBODY)

    def resolve(self, scope: Mapping[str, Any]) -> str:
        """The client's address of an ASGI scope; "" where the server told none."""
        peer = scope.get("client")
        host = peer[0] if peer else ""
        forwarded: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                forwarded.append(value)
        if not forwarded or not self._trusts(_parsed(host)):
            return host
        hops = b",".join(forwarded).decode("latin-1").split(",")
        for hop in reversed(hops[-HOPS_MAX:]):
            address = _parsed(_without_port(hop.strip()))
            if address is None:
                # A trusted proxy wrote nothing that can be read: the nearest address that is known stands.
                return host
            host = str(address)
            if not self._trusts(address):
                break
        return host

    def _trusts(self, address: Address | None) -> bool:
        if self._everybody:
            return True
        return address is not None and any(
            address in network for network in self._networks if network.version == address.version
        )


def client_host(request: Request) -> str:
    """The address that a request came from, as `ClientAddress` has found it; "" where the server told none."""
    return request.client.host if request.client else ""


def limited_name(host: str) -> str:
    """The name under which a limit counts an address: itself, or the network of an IPv6 one."""
    address = _parsed(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return host if address is None else str(address)


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name)
    except ValueError as error:
        raise InvalidSetting(
            f"forwarded_allow_ips: {name!r} is neither an address nor a network ({error})",
            hint="write addresses or networks with commas between them, such as 10.0.0.0/8,192.0.2.7",
        ) from None


@lru_cache(maxsize=4_096)
def _parsed(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    # An IPv4 client of a socket that takes both is told as ::ffff:192.0.2.1.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
