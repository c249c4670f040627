"""The network that an address belongs to."""

import pytest

from voicepipe.networks import may_be_of, network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.0/24"),
        ("2001:db8:7:1::9", "2001:db8:7::/48"),
        ("::ffff:198.51.100.7", "198.51.100.0/24"),
        ("fe80::1%eth0", "fe80::/48"),
        ("10.1.2.3", "10.1.2.0/24"),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("testclient", ""),
        ("", ""),
    ],
)
def test_an_address_is_known_by_its_network_alone(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("address", "network", "may"),
    [
        ("198.51.100.200", "198.51.100.0/24", True),
        ("203.0.113.5", "198.51.100.0/24", False),
        ("198.51.100.200", "2001:db8:7::/48", True),
        ("2001:db8:8::1", "2001:db8:7::/48", False),
        ("127.0.0.1", "198.51.100.0/24", False),
        ("127.0.0.1", "2001:db8:7::/48", False),
        ("198.51.100.200", "", False),
        ("", "", False),
    ],
    ids=["theirs", "of another", "by IPv4", "another of IPv6", "a proxy", "a proxy, by IPv6", "no token", "nothing"],
)
def test_sound_from_another_network_is_not_of_who_asked(address: str, network: str, may: bool) -> None:
    assert may_be_of(address, network) is may
