"""Where a page may go is decided by the address that would be connected to."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.egress.policy import Policy, parse_entry, split_authority
from farm.protocol.plan import Egress

CLOSED_UNLESS_NAMED = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
]
NEVER = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.1.1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "::169.254.169.254",
    "2606:4700::5efe:a9fe:a9fe",
]
EVERYTHING = Policy.of(
    Egress(allow=("0.0.0.0/0", "::/0", "example.com", "metadata.google.internal"))
)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"]
)
def test_a_public_address_is_open(address: str) -> None:
    assert Policy().refuses("example.com", 80, address) is None


@pytest.mark.parametrize("address", CLOSED_UNLESS_NAMED)
def test_a_special_address_is_closed(address: str) -> None:
    assert Policy().refuses("example.com", 80, address) is not None


@pytest.mark.parametrize("address", CLOSED_UNLESS_NAMED)
def test_a_special_address_is_open_to_a_host_that_is_named(address: str) -> None:
    assert Policy.of(Egress(allow=("example.com",))).refuses("EXAMPLE.com.", 80, address) is None


@pytest.mark.parametrize("address", NEVER)
def test_link_local_and_metadata_stay_closed_whatever_is_allowed(address: str) -> None:
    assert EVERYTHING.refuses("example.com", 80, address) is not None


@pytest.mark.parametrize("name", ["metadata.google.internal", "METADATA.google.internal."])
def test_a_metadata_name_is_not_even_resolved(name: str) -> None:
    assert EVERYTHING.refuses_name(name) is not None


def test_a_port_in_an_entry_opens_that_port_alone() -> None:
    policy = Policy.of(Egress(allow=("shop.test:8080", "127.0.0.2:81", "[::1]:82")))
    assert policy.refuses("shop.test", 8080, "10.0.0.1") is None
    assert policy.refuses("shop.test", 8081, "10.0.0.1") is not None
    assert policy.refuses("other.test", 8080, "10.0.0.1") is not None
    assert policy.refuses("127.0.0.2", 81, "127.0.0.2") is None
    assert policy.refuses("127.0.0.2", 80, "127.0.0.2") is not None
    assert policy.refuses("localhost", 82, "::1") is None


def test_a_network_opens_the_addresses_in_it_and_no_others() -> None:
    policy = Policy.of(Egress(allow=("10.1.0.0/16", "fd00:1::/32")))
    assert policy.refuses("a.test", 80, "10.1.2.3") is None
    assert policy.refuses("a.test", 80, "::ffff:10.1.2.3") is None
    assert policy.refuses("a.test", 80, "10.2.0.1") is not None
    assert policy.refuses("a.test", 80, "fd00:1::5") is None


@pytest.mark.parametrize(
    "entry", ["", ":80", "a b", "host:0", "host:99999", "host:x", "host:1:2", "1.2.3.4/99", "[::1"]
)
def test_an_entry_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_entry(entry)


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_in_ipv6_never_opens_it(address: ipaddress.IPv4Address) -> None:
    plain = Policy().refuses("example.com", 80, str(address))
    number = int(address)
    wrapped = [
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)),
        f"2606:4700::5efe:{address}",
    ]
    for text in wrapped:
        assert plain is None or Policy().refuses("example.com", 80, text) is not None


@given(st.ip_addresses(network="169.254.0.0/16") | st.ip_addresses(network="fe80::/10"))
def test_no_link_local_address_is_ever_open(address: ipaddress.IPv4Address) -> None:
    assert EVERYTHING.refuses(str(address), 80, str(address)) is not None


@given(st.text())
def test_splitting_an_authority_gives_a_host_or_a_value_error(text: str) -> None:
    try:
        host, port = split_authority(text, default_port=80)
    except ValueError:
        return
    assert host
    assert port is not None
    assert 0 < port < 65_536
