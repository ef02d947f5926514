"""Which addresses are public, and may be called."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.outgoing.allowed_addresses import (
    CLOUDS,
    NEARBY,
    REACHABLE,
    REGISTERED,
    Address,
    Network,
    Refused,
    check_address,
    is_public,
    read_networks,
)

BLOCKS = [ipaddress.ip_network(block) for block, _, _ in REGISTERED]


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "::", "::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::", "2002:808:808::1", "2001:db8::1", "2001::1", "192.0.0.192", "168.63.129.16", "3fff::1",
        "64:ff9b::a83f:8110", "64:ff9b:1::808:808", "2001:0:808:808:0:f227:5601:5601", "::808:808", "4000::1",
        "5f00::1",
    ],
)  # fmt: skip
def test_what_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    ["8.8.8.8", "1.1.1.1", "168.63.129.15", "168.63.129.17", "2606:4700:4700::1111", "::ffff:8.8.8.8",
     "64:ff9b::808:808", "192.0.1.0", "2a00::1"],
)  # fmt: skip
def test_what_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("block", [block for block, _ in CLOUDS])
def test_metadata_of_a_cloud_is_called_in_no_form_that_an_ipv4_address_has(block: str) -> None:
    address = ipaddress.ip_network(block)[0]
    forms = [str(address)]
    if address.version == 4:
        high, low = divmod(int(address), 1 << 16)
        forms += [f"::ffff:{address}", f"64:ff9b::{high:x}:{low:x}", f"64:ff9b:1::{high:x}:{low:x}", f"::{address}"]
        forms += [
            f"2002:{high:x}:{low:x}::1",
            f"2001:0:{high:x}:{low:x}::",
            f"2001::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        ]
    for form in forms:
        with pytest.raises(Refused, match="is not public"):
            check_address(form, ())


def test_metadata_of_a_cloud_is_called_where_a_network_is_allowed() -> None:
    for form in ("169.254.169.254", "::ffff:169.254.169.254"):
        check_address(form, read_networks("169.254.0.0/16"))
    check_address("168.63.129.16", read_networks("*"))


@given(st.ip_addresses(v=4))
def test_an_address_within_another_is_judged_as_itself(address: ipaddress.IPv4Address) -> None:
    forms = [f"::ffff:{address}", f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"]
    assert {is_public(ipaddress.ip_address(form)) for form in forms} == {is_public(address)}


def edges() -> Iterator[Address]:
    """The first and the last address of each registered block, and their neighbours outside."""
    for block in BLOCKS:
        for at in (block[0], block[-1]):
            for number in (int(at) - 1, int(at), int(at) + 1):
                if 0 <= number < 1 << at.max_prefixlen:
                    yield type(at)(number)


def in_registry(address: Address) -> bool:
    """What the registries say of an address: reckoned in whole numbers, from the table alone."""
    best, answer = -1, address.version == 4 or int(address) >> 125 == 1
    for block, column, _ in REGISTERED:
        first, _, length = block.partition("/")
        start = ipaddress.ip_address(first)
        shift = start.max_prefixlen - int(length)
        if start.version == address.version and int(start) >> shift == int(address) >> shift and int(length) > best:
            best, answer = int(length), column == REACHABLE
    return answer


REFUSED = [ipaddress.ip_network(block) for block in (*NEARBY, *dict(CLOUDS))]


def is_ours(address: Address) -> bool:
    """What is to be public: what the registry says, but for the nearest devices, the clouds and what NAT64 leads to."""
    if address.version == 6 and int(address) >> 32 in (0xFFFF, 0x64FF9B << 64):
        address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return in_registry(address) and not any(address in block for block in REFUSED)


def test_every_edge_of_a_registered_block_is_judged_as_the_registry_says() -> None:
    addresses = set(edges())
    assert len(addresses) > 4 * len(BLOCKS)
    assert {str(each): is_public(each) for each in addresses} == {str(each): is_ours(each) for each in addresses}


@given(st.one_of(st.ip_addresses(), st.sampled_from(BLOCKS).flatmap(lambda block: st.ip_addresses(network=block))))
def test_every_address_is_judged_as_the_registry_says(address: Address) -> None:
    assert is_public(address) == is_ours(address)


NOT_AS_PYTHON = {
    "::ffff:0:0/96": "judged by the IPv4 address within, which Python does from 3.13 on",
    "64:ff9b::/96": "judged by the IPv4 address within",
    "64:ff9b:1::/48": "registered in 2017; Python has it from 3.11.10 on",
    "100:0:0:1::/64": "registered in 2025",
    "192.0.0.0/24": "Python before 3.11.10 has a few addresses of it, and later calls two global that are nearby",
    "192.88.99.0/24": "deprecated; Python says that it is global",
    "2001::/23": "Python before 3.11.10 has a few blocks of it, and knows 2001:1::1 to 3 as global, which are nearby",
    "2002::/16": "deprecated; Python says that it is global before 3.11.10",
    "3fff::/20": "registered in 2024",
    "5f00::/16": "registered in 2024",
    "168.63.129.16/32": "Azure's, and of the internet for everybody else",
    "fec0::/10": "deprecated, outside of what is given to networks",
    "::/3": "outside of what is given to networks",
    "4000::/2": "outside of what is given to networks",
    "8000::/1": "outside of what is given to networks",
}
"""Where Python's own `ipaddress`, of one version or another, answers otherwise, and why."""


@given(st.one_of(st.ip_addresses(), st.sampled_from(BLOCKS).flatmap(lambda block: st.ip_addresses(network=block))))
def test_what_python_judges_otherwise_is_explained(address: Address) -> None:
    by_python = address.is_global and not (address.is_multicast or address.is_reserved)
    explained: list[Network] = [ipaddress.ip_network(block) for block in NOT_AS_PYTHON]
    if is_public(address) != by_python:
        assert any(address in block for block in explained if block.version == address.version), address


def test_every_edge_that_python_judges_otherwise_is_explained() -> None:
    explained: list[Network] = [ipaddress.ip_network(block) for block in NOT_AS_PYTHON]
    others = [each for each in edges() if is_public(each) != (each.is_global and not each.is_multicast)]
    assert others, "no version of Python has the tables of today"
    for each in others:
        assert any(each in block for block in explained if block.version == each.version), each
