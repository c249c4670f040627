"""The network that an address belongs to."""

import pytest

from voicepipe.base.networks import is_of, network_of


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("8.8.4.7", "8.8.4.0/24"),
        ("2600:1f18:7:1::9", "2600:1f18:7::/48"),
        ("::ffff:8.8.4.7", "8.8.4.0/24"),
        ("fe80::1%eth0", ""),
        ("10.1.2.3", ""),
        ("172.17.0.1", ""),
        ("100.64.1.1", ""),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("testclient", ""),
        ("", ""),
    ],
)
def test_an_address_is_known_by_its_network_alone(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("address", "network", "is_theirs"),
    [
        ("8.8.4.200", "8.8.4.0/24", True),
        ("9.9.9.5", "8.8.4.0/24", False),
        ("8.8.4.200", "2600:1f18:7::/48", False),
        ("2600:1f18:8::1", "2600:1f18:7::/48", False),
        ("127.0.0.1", "8.8.4.0/24", False),
        ("8.8.4.200", "", False),
        ("", "", False),
    ],
    ids=["theirs", "of another", "by IPv4", "another of IPv6", "a proxy", "no token", "nothing"],
)
def test_sound_from_another_network_is_not_of_who_asked(address: str, network: str, is_theirs: bool) -> None:
    assert is_of(address, network) is is_theirs
