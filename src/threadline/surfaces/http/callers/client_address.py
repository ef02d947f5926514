"""Where a request came from: the peer's address, or what proxies that are trusted say about it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from starlette.requests import Request

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.lists import comma_separated

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
