"""The file with the names of a fleet's hosts: what it may say, and what is told of what it may not."""

from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voicepipe.base.errors import ConfigError
from voicepipe.config import load_hosts

SHIPPED = (ROOT / "pops" / "deploy" / "hosts.toml").read_text()


def loaded(folder: Path, text: str) -> str:
    """What is wrong with this text."""
    file = folder / "hosts.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_hosts(file)
    return str(error.value).removeprefix(f"{file}: ")


def test_the_shipped_file_is_a_fleet_of_two_regions() -> None:
    fleet = load_hosts(ROOT / "pops" / "deploy" / "hosts.toml")
    assert [host.pops for host in fleet.hosts if host.pops] == [("fra1",), ("sin1",)]
    assert sum(host.nats for host in fleet.hosts) == 3 and sum(host.directory for host in fleet.hosts) == 2
    assert fleet.is_probed and fleet.takes_phones


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('"fra1.example.com"', '"fra1"', "hosts[1]: name: 'fra1' is no host's name; give one with its domain"),
        ('"fra1.example.com"', '"eu-1.example.com"', "hosts.name: eu-1.example.com is taken"),
        ('"eu-1.example.com"', '"voice.example.com"', "hosts.name: voice.example.com is taken"),
        ('"203.0.113.12"', '"fra1.example.com"', "address: 'fra1.example.com' is no IPv4 address of one host"),
        ('"203.0.113.12"', '""', "is no IPv4 address of one host"),
        ("place = [50.1, 8.7]               # l", "place = []  # l", "place: is missing; give latitude and longitude"),
        ('["sin1"]', '["fra1"]', "hosts.pops: fra1 is taken"),
        ('["harbour-house"]', '["probe"]', "customers: probe is taken"),
        ('["harbour-house"]', "[]", "customers: cannot be []; allowed: a list of lower-case letters"),
        ("nats = true", "", "hosts: none has nats; a fleet needs at least one"),
        ("zone = ", "zones = ", "zones: there is no such key; did you mean zone?"),
    ],
)
def test_what_is_wrong(tmp_path: Path, was: str, now: str, said: str) -> None:
    assert was in SHIPPED
    assert said.removeprefix("hosts[1]: ") in loaded(tmp_path, SHIPPED.replace(was, now))
