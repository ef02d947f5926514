"""Addresses that are not ordinary ones of the internet: the registries' tables, and those of clouds, as data.

Sources: IANA, "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry" (RFC 6890, RFC 8190),
as of 2025-10; "IPv4 Multicast Address Space" and "IPv6 Global Unicast Address Assignments"; and the clouds' own
manuals. Python's `ipaddress` has the tables of the day on which its release was made.
"""

from __future__ import annotations

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
