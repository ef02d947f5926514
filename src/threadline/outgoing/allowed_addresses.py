"""Which addresses may be called: those of the internet, and the networks that the settings allow."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.lists import comma_separated

REACHABLE, NOT_REACHABLE, NOT_STATED = "true", "false", "n/a"
"""The registries' column "Globally Reachable"; a deprecated block has no entry in it."""

REGISTERED = (
    ("0.0.0.0/8", NOT_REACHABLE, "this network"),
    ("0.0.0.0/32", NOT_REACHABLE, "this host on this network"),
    ("10.0.0.0/8", NOT_REACHABLE, "private use"),
    ("100.64.0.0/10", NOT_REACHABLE, "shared by customers of a network"),
    ("127.0.0.0/8", NOT_REACHABLE, "loopback"),
    ("169.254.0.0/16", NOT_REACHABLE, "link local"),
    ("172.16.0.0/12", NOT_REACHABLE, "private use"),
    ("192.0.0.0/24", NOT_REACHABLE, "IETF protocol assignments"),
    ("192.0.0.0/29", NOT_REACHABLE, "IPv4 service continuity"),
    ("192.0.0.8/32", NOT_REACHABLE, "dummy address"),
    ("192.0.0.9/32", REACHABLE, "Port Control Protocol, anycast"),
    ("192.0.0.10/32", REACHABLE, "TURN, anycast"),
    ("192.0.0.170/32", NOT_REACHABLE, "NAT64 discovery"),
    ("192.0.0.171/32", NOT_REACHABLE, "NAT64 discovery"),
    ("192.0.2.0/24", NOT_REACHABLE, "documentation"),
    ("192.31.196.0/24", REACHABLE, "AS112"),
    ("192.52.193.0/24", REACHABLE, "AMT"),
    ("192.88.99.0/24", NOT_STATED, "6to4 relays, deprecated"),
    ("192.88.99.2/32", NOT_REACHABLE, "6a44 relays"),
    ("192.168.0.0/16", NOT_REACHABLE, "private use"),
    ("192.175.48.0/24", REACHABLE, "AS112"),
    ("198.18.0.0/15", NOT_REACHABLE, "benchmarking"),
    ("198.51.100.0/24", NOT_REACHABLE, "documentation"),
    ("203.0.113.0/24", NOT_REACHABLE, "documentation"),
    ("224.0.0.0/4", NOT_REACHABLE, "multicast, which has a registry of its own"),
    ("240.0.0.0/4", NOT_REACHABLE, "reserved"),
    ("255.255.255.255/32", NOT_REACHABLE, "broadcast"),
    ("::/128", NOT_REACHABLE, "unspecified"),
    ("::1/128", NOT_REACHABLE, "loopback"),
    ("::ffff:0:0/96", NOT_REACHABLE, "IPv4-mapped"),
    ("64:ff9b::/96", REACHABLE, "NAT64"),
    ("64:ff9b:1::/48", NOT_REACHABLE, "NAT64 for local use"),
    ("100::/64", NOT_REACHABLE, "discard only"),
    ("100:0:0:1::/64", NOT_REACHABLE, "dummy prefix"),
    ("2001::/23", NOT_REACHABLE, "IETF protocol assignments"),
    ("2001::/32", NOT_STATED, "Teredo"),
    ("2001:1::1/128", REACHABLE, "Port Control Protocol, anycast"),
    ("2001:1::2/128", REACHABLE, "TURN, anycast"),
    ("2001:1::3/128", REACHABLE, "DNS-SD registration, anycast"),
    ("2001:2::/48", NOT_REACHABLE, "benchmarking"),
    ("2001:3::/32", REACHABLE, "AMT"),
    ("2001:4:112::/48", REACHABLE, "AS112"),
    ("2001:10::/28", NOT_STATED, "ORCHID, deprecated"),
    ("2001:20::/28", REACHABLE, "ORCHIDv2"),
    ("2001:30::/28", REACHABLE, "remote ids of drones"),
    ("2001:db8::/32", NOT_REACHABLE, "documentation"),
    ("2002::/16", NOT_STATED, "6to4, deprecated"),
    ("2620:4f:8000::/48", REACHABLE, "AS112"),
    ("3fff::/20", NOT_REACHABLE, "documentation"),
    ("5f00::/16", NOT_REACHABLE, "segment routing"),
    ("fc00::/7", NOT_REACHABLE, "unique local"),
    ("fe80::/10", NOT_REACHABLE, "link local"),
)
"""(block, whether it is globally reachable, what for). The longest block that contains an address decides."""

UNICAST = "2000::/3"
"""Of IPv6, only this is given to networks; what lies outside, and is not registered above, belongs to nobody."""

NEARBY = ("192.0.0.9/32", "192.0.0.10/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128")
"""Registered as reachable, and answered by whichever device is nearest, such as the gateway of a private network."""

CLOUDS = (
    ("169.254.169.254/32", "metadata: AWS, GCP, Azure, Oracle, DigitalOcean, Hetzner, IBM, OpenStack and others"),
    ("169.254.170.2/32", "credentials of tasks: AWS ECS"),
    ("169.254.170.23/32", "credentials of pods: AWS EKS"),
    ("169.254.169.253/32", "DNS: AWS"),
    ("169.254.169.123/32", "time: AWS"),
    ("169.254.42.42/32", "metadata: Scaleway"),
    ("169.254.0.23/32", "metadata: Tencent"),
    ("168.63.129.16/32", "agent, DNS and health of every machine: Azure; a public address"),
    ("192.0.0.192/32", "metadata: Oracle"),
    ("100.100.100.200/32", "metadata: Alibaba"),
    ("fd00:ec2::254/128", "metadata: AWS"),
    ("fd00:ec2::23/128", "credentials of pods: AWS EKS"),
    ("fd00:ec2::253/128", "DNS: AWS"),
    ("fd20:ce::254/128", "metadata: GCP"),
    ("fd00:c1::a9fe:a9fe/128", "metadata: Oracle"),
    ("fd00:42::42/128", "metadata: Scaleway"),
    ("fe80::a9fe:a9fe/128", "metadata: OpenStack"),
)
"""What answers to machines of a cloud, often with credentials; all but Azure's lie in registered blocks as well."""


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_EVERYWHERE: tuple[Network, ...] = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network(UNICAST)


def _special() -> dict[int, list[tuple[Network, bool]]]:
    """The special networks of each version of IP and whether they are public, those that decide first."""
    refused = [(ipaddress.ip_network(block), False) for block in (*NEARBY, *dict(CLOUDS))]
    registered = [(ipaddress.ip_network(block), column == REACHABLE) for block, column, _ in REGISTERED]
    registered.sort(key=lambda network: -network[0].prefixlen)
    return {
        version: [network for network in (*refused, *registered) if network[0].version == version] for version in (4, 6)
    }


_SPECIAL = _special()


class Refused(Exception):
    """An address that is not called."""


def read_networks(text: str) -> tuple[Network, ...]:
    """The networks of a list separated by commas; ``*`` is every one. Raises `InvalidSetting`."""
    networks: list[Network] = []
    for part in comma_separated(text):
        try:
            networks += _EVERYWHERE if part == "*" else (ipaddress.ip_network(part),)
        except ValueError as error:
            raise InvalidSetting(f"webhook_private_addresses: {error}; write it like 10.1.0.0/16") from None
    return tuple(networks)


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
