"""Which addresses may be called: those of the internet, and the networks that the settings allow."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.lists import comma_separated
from threadline.senders.special_addresses import CLOUDS, NEARBY, REACHABLE, REGISTERED, UNICAST

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_EVERYWHERE: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network(UNICAST)


def _special() -> dict[int, list[tuple[Network, bool]]]:
    """The special networks of each version of IP and whether they are public, those that decide first."""
    refused = [(ipaddress.ip_network(block), False) for block in (*NEARBY, *dict(CLOUDS))]
    registered = [(ipaddress.ip_network(block), column == REACHABLE) for block, column, _ in REGISTERED]
    registered.sort(key=lambda each: -each[0].prefixlen)
    return {version: [each for each in (*refused, *registered) if each[0].version == version] for version in (4, 6)}


_SPECIAL = _special()


class Refused(Exception):
    """An address that is not called."""


def read_networks(text: str) -> tuple[Network, ...]:
    """The networks of a list separated by commas; ``*`` is every one. Raises `InvalidSetting`."""
    found: list[Network] = []
    for part in comma_separated(text):
        try:
            found += _EVERYWHERE if part == "*" else (ipaddress.ip_network(part),)
        except ValueError as error:
            raise InvalidSetting(f"webhook_private_addresses: {error}; write it like 10.1.0.0/16") from None
    return tuple(found)


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet's: none of this machine, of a private network, a group or of no use."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    for network, is_reachable in _SPECIAL[address.version]:
        if address in network:
            return is_reachable
    return address.version == 4 or address in _UNICAST


def check_address(text: str, networks: Sequence[Network]) -> None:
    """Raise `Refused` for an address that is neither public nor in one of these networks."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        raise Refused(f"{text[:64]} is not an address") from None
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if not is_public(address) and not any((inner or address) in network for network in networks):
        raise Refused(f"{address} is not public; the setting webhook_private_addresses would allow it")
