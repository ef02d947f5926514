"""Which addresses are public, and may be called."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.senders.allowed_addresses import is_public


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "::", "::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::", "2001:db8::1", "2001::1",
    ],
)  # fmt: skip
def test_what_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_what_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_within_another_is_judged_as_itself(address: ipaddress.IPv4Address) -> None:
    forms = [f"::ffff:{address}", f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"]
    assert {is_public(ipaddress.ip_address(form)) for form in forms} == {is_public(address)}
